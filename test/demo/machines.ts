import type { EngineSpec } from './engines-child.ts';
import type { Card } from './gpus.ts';

export interface MachineSpec {
  readonly name: string;
  readonly engines: readonly EngineSpec[];
  readonly cards: readonly Card[];
}

export const MODELS = {
  encoder: 'qwen3-embedding-8b-q8_0',
  codeEncoder: 'nomic-embed-code-f16',
  reranker: 'BAAI/bge-reranker-v2-m3',
  chat: 'qwen3-coder-30b-a3b-instruct-q4_k_m',
  small: 'qwen3-8b-instruct-q4_k_m',
} as const;

const encoder = (rate: number, cosine = 1): EngineSpec => ({
  kind: 'encoder',
  model: MODELS.encoder,
  rate,
  cosine,
  width: 256,
  window: 512,
});
const codeEncoder = (rate: number): EngineSpec => ({
  kind: 'encoder',
  model: MODELS.codeEncoder,
  rate,
  cosine: 1,
  width: 512,
  window: 1024,
});
const chat = (model: string, rate: number, slots: number): EngineSpec => ({
  kind: 'chat',
  model,
  rate,
  slots,
  answerTokens: 96,
});

/** A fast machine, a slow one, and one whose encoder was quantised until its vectors no longer fit the index. */
export const MACHINES: readonly MachineSpec[] = [
  {
    name: 'workstation',
    engines: [
      encoder(90),
      codeEncoder(40),
      { kind: 'reranker', model: MODELS.reranker, lastsMs: 120 },
      chat(MODELS.chat, 32, 2),
    ],
    cards: [
      { name: 'NVIDIA GeForce RTX 4090', totalMiB: 24_564, usedMiB: 19_800, mostW: 450 },
      { name: 'NVIDIA GeForce RTX 4090', totalMiB: 24_564, usedMiB: 17_200, mostW: 450 },
    ],
  },
  {
    name: 'attic-server',
    engines: [encoder(24), codeEncoder(12), chat(MODELS.small, 8, 1)],
    cards: [{ name: 'NVIDIA GeForce RTX 3060', totalMiB: 12_288, usedMiB: 9_100, mostW: 170 }],
  },
  {
    name: 'studio',
    // 0.976: what a 4-bit file of the same name gave against the 8-bit one.
    engines: [encoder(60, 0.976), chat(MODELS.chat, 18, 1)],
    cards: [{ name: 'NVIDIA RTX A4000', totalMiB: 16_376, usedMiB: 13_700, mostW: 140 }],
  },
];
