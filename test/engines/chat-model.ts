import { gguf, type Metadata, type Tensor } from './gguf.ts';
import { gaussian } from './seeded.ts';

/** A llama that recites `text` and stops: each word leads to the next. Layers and width only make it slower. */
export interface ChatShape {
  /** Words separated by blanks, each at most once. */
  readonly text: string;
  readonly layers: number;
  /** A multiple of 32. */
  readonly dim: number;
  readonly ctx: number;
}

export const DEFAULT_CHAT: ChatShape = {
  text: 'The gateway sends this request to whichever local engine has a free slot and reports how long it took .',
  layers: 2,
  dim: 128,
  ctx: 2048,
};

const SPECIALS = ['<unk>', '<s>', '</s>'];
const END = 2;
const TEMPLATE = "{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}assistant:";

export function chatGguf(shape: ChatShape): Buffer {
  const { text, layers, dim, ctx } = shape;
  const words = text.split(/\s+/).map((word) => `\u2581${word}`);
  if (new Set(words).size !== words.length) throw new Error('chat model: every word must occur once');
  const bytes = Array.from({ length: 256 }, (_, i) => `<0x${i.toString(16).toUpperCase().padStart(2, '0')}>`);
  const printable = Array.from({ length: 94 }, (_, i) => String.fromCharCode(33 + i));
  const tokens = [...SPECIALS, ...bytes, ...words, ...printable, '\u2581'];
  const first = SPECIALS.length + bytes.length;
  const isWord = (token: number) => token >= first && token < first + words.length;

  // Every token is a random direction plus 1 in the first component; the output row of "next" holds the direction of
  // "previous", so the dot product singles the next word out. The first component bars whatever is no word.
  const embedding = gaussian('chat:embedding', tokens.length * dim, 1);
  for (let token = 0; token < tokens.length; token++) embedding[token * dim] = 1;
  const output = new Float32Array(tokens.length * dim);
  for (let token = 0; token < tokens.length; token++) output[token * dim] = isWord(token) || token === END ? 0 : -30;
  const link = (previous: number, next: number) => {
    for (let d = 1; d < dim; d++) {
      output[next * dim + d] = (output[next * dim + d] ?? 0) + ((embedding[previous * dim + d] ?? 0) * 16) / dim;
    }
  };
  link(tokens.indexOf(':'), first); // the template ends in a colon
  for (let i = 0; i < words.length; i++) link(first + i, i + 1 < words.length ? first + i + 1 : END);

  const ones = new Float32Array(dim).fill(1);
  const tensors: Tensor[] = [
    { name: 'token_embd.weight', shape: [tokens.length, dim], values: embedding },
    { name: 'output_norm.weight', shape: [dim], values: ones },
    { name: 'output.weight', shape: [tokens.length, dim], values: output },
  ];
  const ffn = 2 * dim;
  for (let layer = 0; layer < layers; layer++) {
    const name = (part: string) => `blk.${layer}.${part}.weight`;
    const random = (part: string, rows: number, columns: number) => ({
      name: name(part),
      shape: [rows, columns],
      values: gaussian(`chat:${layer}:${part}`, rows * columns, dim ** -0.5),
    });
    // Work without effect: what a layer adds to the stream is multiplied by zeros at its end.
    const silent = (part: string, rows: number, columns: number) => ({
      name: name(part),
      shape: [rows, columns],
      values: new Float32Array(rows * columns),
    });
    tensors.push(
      { name: name('attn_norm'), shape: [dim], values: ones },
      { name: name('ffn_norm'), shape: [dim], values: ones },
      random('attn_q', dim, dim),
      random('attn_k', dim, dim),
      random('attn_v', dim, dim),
      silent('attn_output', dim, dim),
      random('ffn_gate', ffn, dim),
      random('ffn_up', ffn, dim),
      silent('ffn_down', dim, ffn),
    );
  }

  const type = (token: number) => (token === 0 ? 2 : token < SPECIALS.length ? 3 : token < first ? 6 : 1);
  const score = (token: number) => (token < first ? 0 : isWord(token) ? -1 : -100);
  const metadata: Metadata[] = [
    ['general.architecture', 'str', 'llama'],
    ['general.name', 'str', 'recite'],
    ['general.file_type', 'u32', 0],
    ['llama.context_length', 'u32', ctx],
    ['llama.embedding_length', 'u32', dim],
    ['llama.block_count', 'u32', layers],
    ['llama.feed_forward_length', 'u32', ffn],
    ['llama.attention.head_count', 'u32', dim / 32],
    ['llama.attention.head_count_kv', 'u32', dim / 32],
    ['llama.rope.dimension_count', 'u32', 32],
    ['llama.attention.layer_norm_rms_epsilon', 'f32', 1e-5],
    ['tokenizer.ggml.model', 'str', 'llama'],
    ['tokenizer.ggml.tokens', 'str[]', tokens],
    ['tokenizer.ggml.scores', 'f32[]', tokens.map((_, token) => score(token))],
    ['tokenizer.ggml.token_type', 'i32[]', tokens.map((_, token) => type(token))],
    ['tokenizer.ggml.unknown_token_id', 'u32', 0],
    ['tokenizer.ggml.bos_token_id', 'u32', 1],
    ['tokenizer.ggml.eos_token_id', 'u32', END],
    ['tokenizer.ggml.add_space_prefix', 'bool', false],
    ['tokenizer.chat_template', 'str', TEMPLATE],
  ];
  return gguf(metadata, tensors);
}
