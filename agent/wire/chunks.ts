/** Chunks up to this size are copied together, so that a small one does not keep alive the large buffer it was read into. */
const COPY_BELOW = 32 * 1024;
const BLOCK_BYTES = 16 * 1024;

/** Bytes that wait for a slow reader, in order. Memory used stays near the bytes held, however small the chunks were. */
export class ChunkQueue {
  #chunks: Uint8Array[] = [];
  #head = 0;
  #bytes = 0;
  /** Last chunk while there is room behind it. */
  #open: { readonly block: Uint8Array; used: number } | null = null;

  get bytes(): number {
    return this.#bytes;
  }

  push(chunk: Uint8Array): void {
    this.#bytes += chunk.length;
    if (chunk.length >= COPY_BELOW) {
      this.#seal();
      this.#chunks.push(chunk);
      return;
    }
    let rest = chunk;
    while (rest.length > 0) {
      this.#open ??= { block: new Uint8Array(BLOCK_BYTES), used: 0 };
      const { block, used } = this.#open;
      const part = rest.subarray(0, BLOCK_BYTES - used);
      block.set(part, used);
      this.#open.used += part.length;
      rest = rest.subarray(part.length);
      if (this.#open.used === BLOCK_BYTES) this.#seal();
    }
  }

  /** The next bytes, or null. The receiver owns them. */
  shift(): Uint8Array | null {
    if (this.#head === this.#chunks.length) this.#seal();
    const chunk = this.#chunks[this.#head];
    if (chunk === undefined) return null;
    this.#head += 1;
    if (this.#head === this.#chunks.length) {
      this.#chunks = [];
      this.#head = 0;
    }
    this.#bytes -= chunk.length;
    return chunk;
  }

  clear(): void {
    this.#chunks = [];
    this.#head = 0;
    this.#bytes = 0;
    this.#open = null;
  }

  #seal(): void {
    if (this.#open === null) return;
    this.#chunks.push(this.#open.block.subarray(0, this.#open.used));
    this.#open = null;
  }
}
