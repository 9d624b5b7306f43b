import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, renameSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { type ChatShape, chatGguf, DEFAULT_CHAT } from './chat-model.ts';
import { DEFAULT_ENCODER, type EncoderShape, encoderGguf, rerankerGguf } from './encoder-model.ts';
import { llamaTools } from './llama.ts';

export type { ChatShape } from './chat-model.ts';
export type { EncoderShape } from './encoder-model.ts';

const folder = path.join(path.dirname(fileURLToPath(import.meta.url)), '../../.cache/models');

/** Raise when the makers change, so that no stale file is taken for a new one. */
const MAKER_VERSION = 1;

function cached(kind: string, shape: object, make: () => Buffer): string {
  const key = createHash('sha256')
    .update(JSON.stringify([MAKER_VERSION, kind, shape]))
    .digest('hex')
    .slice(0, 12);
  const file = path.join(folder, `${kind}-${key}.gguf`);
  if (!existsSync(file)) {
    mkdirSync(folder, { recursive: true });
    const unfinished = `${file}.${process.pid}`;
    writeFileSync(unfinished, make());
    renameSync(unfinished, file);
  }
  return file;
}

/** @returns path of a float32 encoder with mean pooling. */
export function encoderModel(shape: Partial<EncoderShape> = {}): string {
  const full = { ...DEFAULT_ENCODER, ...shape };
  return cached('encoder', full, () => encoderGguf(full));
}

/** @returns path of a cross-encoder; start it with `--reranking`. */
export function rerankerModel(shape: Partial<EncoderShape> = {}): string {
  const full = { ...DEFAULT_ENCODER, ...shape };
  return cached('reranker', full, () => rerankerGguf(full));
}

export function chatModel(shape: Partial<ChatShape> = {}): string {
  const full = { ...DEFAULT_CHAT, ...shape };
  return cached('chat', full, () => chatGguf(full));
}

/** @returns path of a copy whose weights are quantised by llama-quantize. Needs the tools (see `llamaTools`). */
export async function quantised(file: string, type: 'Q8_0' | 'Q5_K_M' | 'Q4_0'): Promise<string> {
  const out = file.replace(/\.gguf$/, `-${type}.gguf`);
  if (existsSync(out)) return out;
  const tools = await llamaTools();
  if (!tools.available) throw new Error(tools.reason);
  const unfinished = `${out}.${process.pid}`;
  const child = spawn(tools.quantize, [file, unfinished, type], { stdio: ['ignore', 'ignore', 'pipe'] });
  let last = '';
  child.stderr.on('data', (text: Buffer) => {
    last = `${last}${text}`.slice(-500);
  });
  const code = await new Promise((resolve) => child.once('close', resolve));
  if (code !== 0) throw new Error(`llama-quantize ended with ${code}: ${last}`);
  renameSync(unfinished, out);
  return out;
}
