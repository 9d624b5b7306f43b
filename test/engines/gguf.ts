/** Writes GGUF version 3, the file format of llama.cpp: metadata, tensor directory, then 32-byte aligned float32 data. */

export interface Tensor {
  readonly name: string;
  /** Rows first, as in PyTorch; GGUF lists them the other way round. */
  readonly shape: readonly number[];
  readonly values: Float32Array;
}

export type Metadata =
  | readonly [key: string, type: 'u32' | 'i32' | 'f32', value: number]
  | readonly [key: string, type: 'bool', value: boolean]
  | readonly [key: string, type: 'str', value: string]
  | readonly [key: string, type: 'str[]', value: readonly string[]]
  | readonly [key: string, type: 'i32[]' | 'f32[]', value: readonly number[]];

const ALIGNMENT = 32;
const TYPE_IDS = { u32: 4, i32: 5, f32: 6, bool: 7, str: 8, array: 9 } as const;

function u32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}
function u64(value: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(BigInt(value));
  return bytes;
}
function i32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32LE(value);
  return bytes;
}
function f32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeFloatLE(value);
  return bytes;
}
function string(value: string): Buffer {
  const bytes = Buffer.from(value);
  return Buffer.concat([u64(bytes.length), bytes]);
}

function encode(entry: Metadata): Buffer {
  const key = string(entry[0]);
  switch (entry[1]) {
    case 'u32':
      return Buffer.concat([key, u32(TYPE_IDS.u32), u32(entry[2])]);
    case 'i32':
      return Buffer.concat([key, u32(TYPE_IDS.i32), i32(entry[2])]);
    case 'f32':
      return Buffer.concat([key, u32(TYPE_IDS.f32), f32(entry[2])]);
    case 'bool':
      return Buffer.concat([key, u32(TYPE_IDS.bool), Buffer.from([entry[2] ? 1 : 0])]);
    case 'str':
      return Buffer.concat([key, u32(TYPE_IDS.str), string(entry[2])]);
    case 'str[]':
      return array(key, TYPE_IDS.str, entry[2].map(string));
    case 'i32[]':
      return array(key, TYPE_IDS.i32, entry[2].map(i32));
    case 'f32[]':
      return array(key, TYPE_IDS.f32, entry[2].map(f32));
  }
}

function array(key: Buffer, type: number, items: readonly Buffer[]): Buffer {
  return Buffer.concat([key, u32(TYPE_IDS.array), u32(type), u64(items.length), ...items]);
}

const padding = (length: number) => (ALIGNMENT - (length % ALIGNMENT)) % ALIGNMENT;

export function gguf(metadata: readonly Metadata[], tensors: readonly Tensor[]): Buffer {
  const head: Buffer[] = [Buffer.from('GGUF'), u32(3), u64(tensors.length), u64(metadata.length)];
  for (const entry of metadata) head.push(encode(entry));
  const data: Buffer[] = [];
  let offset = 0;
  for (const { name, shape, values } of tensors) {
    head.push(string(name), u32(shape.length), ...[...shape].reverse().map(u64), u32(0), u64(offset));
    const bytes = Buffer.from(values.buffer, values.byteOffset, values.byteLength);
    data.push(bytes, Buffer.alloc(padding(bytes.length)));
    offset += bytes.length + padding(bytes.length);
  }
  const front = Buffer.concat(head);
  return Buffer.concat([front, Buffer.alloc(padding(front.length)), ...data]);
}
