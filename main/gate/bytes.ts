/** Vectors travel and rest as little-endian float32 on every machine. */
export function toBytes(values: Float32Array): Uint8Array {
  const bytes = new Uint8Array(values.length * 4);
  const view = new DataView(bytes.buffer);
  values.forEach((value, i) => {
    view.setFloat32(i * 4, value, true);
  });
  return bytes;
}

/** Null when the bytes do not divide into floats. */
export function fromBytes(bytes: Uint8Array): Float32Array | null {
  if (bytes.length % 4 !== 0) return null;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  return Float32Array.from({ length: bytes.length / 4 }, (_, i) => view.getFloat32(i * 4, true));
}

/** SHA-256 as lower-case hex, injected: this room imports no cryptography. */
export type Digest = (bytes: Uint8Array) => string;
