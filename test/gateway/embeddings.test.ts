import fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';
import { SwitchyardError } from '../../main/domain/errors.ts';
import { floatsRoom, writeFloats } from '../../main/gateway/vector-text.ts';
import { answerEmbed, codeOf, LOCAL_ROUTE, post, SPACE, startGateway, stopAll, USAGE } from './harness.ts';

afterEach(stopAll);

const PATH = '/v1/embeddings';
const textOf = (values: Float32Array): string => {
  const out = Buffer.alloc(floatsRoom(values.length));
  return out.toString('latin1', 0, writeFloats(out, 0, values, 0, values.length));
};

describe('floats as text', () => {
  it('give back the very float32, whatever it is', () => {
    fc.assert(
      fc.property(fc.float32Array({ noNaN: true, noDefaultInfinity: true, minLength: 1, maxLength: 32 }), (values) => {
        const parsed = Float32Array.from(JSON.parse(`[${textOf(values)}]`) as number[]);
        // JSON has no negative zero worth keeping.
        expect([...parsed].map((value) => value + 0)).toEqual([...values].map((value) => value + 0));
      }),
      { numRuns: 2000 },
    );
  });

  it('have nine digits at most and none of an exponent where vectors live', () => {
    expect(textOf(Float32Array.of(0.1, -0.25, 0.001, 0, 1, -1, 0.99999994))).toBe(
      '0.100000001,-0.250000000,0.00100000005,0,1,-1,0.999999940',
    );
  });
});

describe('embeddings', () => {
  it('hand over texts in order, decoded', async () => {
    const harness = await startGateway();
    harness.dispatcher.onEmbed = answerEmbed(4);
    const input = ['plain', 'é\n"quoted"', '\u{1F600}', ' '];
    const response = await post(harness, PATH, { model: 'bge-m3', input, dimensions: 4, truncate: true });
    expect(response.status).toBe(200);
    expect(harness.dispatcher.embeds[0]?.work).toMatchObject({
      texts: input,
      dimensions: 4,
      truncate: true,
      space: null,
    });
    expect(harness.dispatcher.embeds[0]?.work.context).toMatchObject({ role: 'embedding', model: 'bge-m3' });
    // The space is 512 wide: four of it are said to be a cut.
    expect(response.headers.get('x-switchyard-space')).toBe(`${SPACE}/4`);
  });

  it('take one string, and decode a body of megabytes', async () => {
    const harness = await startGateway();
    harness.dispatcher.onEmbed = answerEmbed(4);
    expect((await post(harness, PATH, { model: 'embedding', input: 'one' })).status).toBe(200);
    expect(harness.dispatcher.embeds[0]?.work.texts).toEqual(['one']);
    const long = Array.from({ length: 100 }, (_, index) => `${index} ${'é'.repeat(50_000)}`);
    expect((await post(harness, PATH, { model: 'embedding', input: long })).status).toBe(200);
    expect(harness.dispatcher.embeds[1]?.work.texts).toEqual(long);
  });

  it.each([
    ['header', { 'x-switchyard-space': SPACE }, {}, { space: SPACE, dimensions: null }],
    ['field', {}, { switchyard: { space: SPACE } }, { space: SPACE, dimensions: null }],
    ['header with a width', { 'x-switchyard-space': `${SPACE}/128` }, {}, { space: SPACE, dimensions: 128 }],
  ])('assert a space by %s', async (_how, headers, members, expected) => {
    const harness = await startGateway();
    harness.dispatcher.onEmbed = answerEmbed(4);
    await post(harness, PATH, { model: 'embedding', input: 'a', ...members }, headers as Record<string, string>);
    expect(harness.dispatcher.embeds[0]?.work).toMatchObject(expected);
  });

  it.each([
    ['nonsense', { 'x-switchyard-space': 'mine' }, {}],
    ['two that differ', { 'x-switchyard-space': SPACE }, { switchyard: { space: 'embedding-ffffffff' } }],
    ['another width', { 'x-switchyard-space': `${SPACE}/128` }, { dimensions: 64 }],
  ])('with %s for a space are 409', async (_what, headers, members) => {
    const harness = await startGateway();
    const response = await post(
      harness,
      PATH,
      { model: 'embedding', input: 'a', ...members },
      headers as Record<string, string>,
    );
    expect([response.status, await codeOf(response)]).toEqual([409, 'space_mismatch']);
  });

  it.each(['float', 'base64'])('of 300 rows of 1,024 go out in slices as %s and are complete', async (format) => {
    const harness = await startGateway();
    harness.dispatcher.onEmbed = answerEmbed(1024);
    const input = Array(300).fill('a');
    const response = await post(harness, PATH, { model: 'embedding', input, encoding_format: format });
    const { data } = (await response.json()) as { data: { index: number; embedding: number[] | string }[] };
    expect(data.map((row) => row.index)).toEqual(Array.from({ length: 300 }, (_, index) => index));
    for (const [index, { embedding }] of data.entries()) {
      const bytes = typeof embedding === 'string' ? Buffer.from(embedding, 'base64') : null;
      const first = bytes === null ? Math.fround(Number(embedding[0])) : bytes.readFloatLE(0);
      expect(first).toBe((index + 1) / 4096);
      expect(bytes === null ? embedding.length : bytes.length / 4).toBe(1024);
    }
  });

  it.each([
    ['NaN', (vectors: Float32Array) => vectors.fill(Number.NaN, 3, 4), 2],
    ['infinity', (vectors: Float32Array) => vectors.fill(Number.POSITIVE_INFINITY, 0, 1), 2],
    ['too few vectors', () => undefined, 1],
  ])('with %s from an engine are 502, never 200', async (_what, spoil, count) => {
    const harness = await startGateway();
    harness.dispatcher.onEmbed = ({ sink }) => {
      const vectors = new Float32Array(count * 4).fill(0.5);
      spoil(vectors);
      sink.onAnswer({ route: LOCAL_ROUTE, space: SPACE, count, width: 4, vectors, usage: USAGE });
    };
    const response = await post(harness, PATH, { model: 'embedding', input: ['a', 'b'] });
    expect([response.status, await codeOf(response)]).toEqual([502, 'engine_invalid_response']);
  });

  it('name the failing inputs', async () => {
    const harness = await startGateway();
    harness.dispatcher.onEmbed = ({ sink }) =>
      sink.onFailure(
        new SwitchyardError('input_too_long', undefined, {
          extra: { inputs: [{ index: 1, tokens: 600, limit: 512 }] },
        }),
      );
    const response = await post(harness, PATH, { model: 'embedding', input: ['a', 'b'] });
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({
      error: { code: 'input_too_long', inputs: [{ index: 1, tokens: 600, limit: 512 }] },
    });
  });

  it('are cancelled when the client leaves', async () => {
    const harness = await startGateway();
    const leaving = new AbortController();
    const pending = fetch(`${harness.url}${PATH}`, {
      method: 'POST',
      headers: { authorization: 'Bearer sk-sw-project-one' },
      body: new Blob([JSON.stringify({ model: 'embedding', input: 'a' })], { type: 'application/json' }),
      signal: leaving.signal,
    }).catch(() => undefined);
    await expect.poll(() => harness.dispatcher.embeds.length).toBe(1);
    leaving.abort();
    await expect.poll(() => harness.dispatcher.embeds[0]?.cancelled).toBe(1);
    await pending;
  });
});
