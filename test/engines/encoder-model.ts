import { gguf, type Metadata, type Tensor } from './gguf.ts';
import { gaussian } from './seeded.ts';

/** A BERT of this shape with random but fixed weights; `seed` chooses the weights. */
export interface EncoderShape {
  readonly seed: number;
  readonly dim: number;
  readonly layers: number;
  readonly heads: number;
  readonly ffn: number;
  readonly ctx: number;
}

export const DEFAULT_ENCODER: EncoderShape = { seed: 1, dim: 384, layers: 2, heads: 6, ffn: 768, ctx: 512 };

const SPECIALS = ['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]'];

/** Lower-case WordPiece: specials, printable characters, and pairs of letters or digits; `##` marks a continuation. */
function vocabulary(): string[] {
  const letters = [...'abcdefghijklmnopqrstuvwxyz'];
  const digits = [...'0123456789'];
  const printable: string[] = [];
  for (let code = 33; code < 127; code++) {
    const character = String.fromCharCode(code);
    if (character === character.toLowerCase()) printable.push(character);
  }
  const pairs = (set: readonly string[]) => set.flatMap((a) => set.flatMap((b) => [a + b, `##${a}${b}`]));
  return [
    ...SPECIALS,
    ...printable,
    ...[...digits, ...letters].map((c) => `##${c}`),
    ...pairs(letters),
    ...pairs(digits),
  ];
}

/** Sums of vectors of the token's parts: tokens that share spelling lie close, and so do texts. */
function tokenVectors(vocab: readonly string[], { seed, dim }: EncoderShape): Float32Array {
  const cache = new Map<string, Float32Array>();
  const part = (key: string) => {
    const known = cache.get(key) ?? gaussian(`${seed}:ng:${key}`, dim, 1);
    cache.set(key, known);
    return known;
  };
  const table = new Float32Array(vocab.length * dim);
  vocab.forEach((token, row) => {
    const bare = token.replace(/^##/, '');
    const parts = SPECIALS.includes(token)
      ? [token]
      : [bare, ...bare, (token.startsWith('##') ? '#' : '_') + bare.charAt(0)];
    const scale = 1 / Math.sqrt(parts.length);
    const damp = ['[CLS]', '[SEP]', '[PAD]'].includes(token) ? 0.3 : 1;
    for (const key of parts) {
      const vector = part(key);
      for (let d = 0; d < dim; d++)
        table[row * dim + d] = (table[row * dim + d] ?? 0) + (vector[d] ?? 0) * scale * damp;
    }
  });
  return table;
}

function weights(vocab: readonly string[], shape: EncoderShape): Tensor[] {
  const { seed, dim, layers, ffn, ctx } = shape;
  const tensors: Tensor[] = [];
  const add = (name: string, dims: readonly number[], values: Float32Array) =>
    void tensors.push({ name, shape: dims, values });
  const linear = (name: string, rows: number, columns: number, gain: number) => {
    add(`${name}.weight`, [rows, columns], gaussian(`${seed}:${name}`, rows * columns, gain / Math.sqrt(columns)));
    add(`${name}.bias`, [rows], gaussian(`${seed}:${name}b`, rows, 0.02));
  };
  const norm = (name: string) => {
    add(`${name}.weight`, [dim], new Float32Array(dim).fill(1));
    add(`${name}.bias`, [dim], new Float32Array(dim));
  };
  add('token_embd.weight', [vocab.length, dim], tokenVectors(vocab, shape));
  add('token_types.weight', [2, dim], gaussian(`${seed}:tt`, 2 * dim, 0.05));
  add('position_embd.weight', [ctx, dim], gaussian(`${seed}:pos`, ctx * dim, 0.15));
  norm('token_embd_norm');
  for (let layer = 0; layer < layers; layer++) {
    const block = `blk.${layer}`;
    linear(`${block}.attn_q`, dim, dim, 1.2);
    linear(`${block}.attn_k`, dim, dim, 1.2);
    linear(`${block}.attn_v`, dim, dim, 0.8);
    linear(`${block}.attn_output`, dim, dim, 0.8);
    norm(`${block}.attn_output_norm`);
    linear(`${block}.ffn_up`, ffn, dim, 1);
    linear(`${block}.ffn_down`, dim, ffn, 1);
    norm(`${block}.layer_output_norm`);
  }
  return tensors;
}

function scoringHead({ seed, dim }: EncoderShape): Tensor[] {
  return [
    { name: 'cls.weight', shape: [dim, dim], values: gaussian(`${seed}:cls`, dim * dim, 1 / Math.sqrt(dim)) },
    { name: 'cls.bias', shape: [dim], values: new Float32Array(dim) },
    { name: 'cls.output.weight', shape: [1, dim], values: gaussian(`${seed}:clso`, dim, 2 / Math.sqrt(dim)) },
    { name: 'cls.output.bias', shape: [1], values: new Float32Array(1) },
  ];
}

/** llama.cpp's pooling ids: mean for the encoder, rank for the reranker. */
const POOLING = { encoder: 1, reranker: 4 } as const;

function metadata(kind: keyof typeof POOLING, vocab: readonly string[], shape: EncoderShape): Metadata[] {
  const type = (token: string) => (token === '[UNK]' ? 2 : SPECIALS.includes(token) ? 3 : 1);
  // llama.cpp writes a word's first piece with U+2581 in front and a continuation bare.
  const spelt = (token: string) =>
    SPECIALS.includes(token) ? token : token.startsWith('##') ? token.slice(2) : `\u2581${token}`;
  return [
    ['general.architecture', 'str', 'bert'],
    ['general.name', 'str', `synthetic-${kind}-${shape.seed}`],
    ['general.license', 'str', 'cc0-1.0'],
    ['general.file_type', 'u32', 0],
    ['bert.context_length', 'u32', shape.ctx],
    ['bert.embedding_length', 'u32', shape.dim],
    ['bert.block_count', 'u32', shape.layers],
    ['bert.feed_forward_length', 'u32', shape.ffn],
    ['bert.attention.head_count', 'u32', shape.heads],
    ['bert.attention.layer_norm_epsilon', 'f32', 1e-12],
    ['bert.attention.causal', 'bool', false],
    ['bert.pooling_type', 'u32', POOLING[kind]],
    ['tokenizer.ggml.model', 'str', 'bert'],
    ['tokenizer.ggml.pre', 'str', 'default'],
    ['tokenizer.ggml.tokens', 'str[]', vocab.map(spelt)],
    ['tokenizer.ggml.token_type', 'i32[]', vocab.map(type)],
    ['tokenizer.ggml.token_type_count', 'u32', 2],
    ['tokenizer.ggml.padding_token_id', 'u32', 0],
    ['tokenizer.ggml.unknown_token_id', 'u32', 1],
    ['tokenizer.ggml.bos_token_id', 'u32', 2],
    ['tokenizer.ggml.cls_token_id', 'u32', 2],
    ['tokenizer.ggml.eos_token_id', 'u32', 3],
    ['tokenizer.ggml.seperator_token_id', 'u32', 3], // the format's own spelling
    ['tokenizer.ggml.mask_token_id', 'u32', 4],
  ];
}

export function encoderGguf(shape: EncoderShape): Buffer {
  const vocab = vocabulary();
  return gguf(metadata('encoder', vocab, shape), weights(vocab, shape));
}

export function rerankerGguf(shape: EncoderShape): Buffer {
  const vocab = vocabulary();
  return gguf(metadata('reranker', vocab, shape), [...weights(vocab, shape), ...scoringHead(shape)]);
}
