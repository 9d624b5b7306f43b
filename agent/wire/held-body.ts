const SMALL_BYTES = 4096;
/** A promise is believed up to here; beyond it room is made for what has come. */
const BELIEVED_BYTES = 16 * 1024 * 1024;

/**
 * A body as it comes, in one piece that begins where float32 may be read. Each part is copied at once, so that a message of
 * the wire, or a buffer that is read into again, need not wait for it.
 */
export class HeldBody {
  readonly #maxBytes: number;
  #bytes: Buffer = Buffer.alloc(0);
  #used = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Makes room for what is promised, as far as it may be. */
  expect(bytes: number): void {
    const believed = Math.min(bytes, this.#maxBytes, BELIEVED_BYTES);
    if (believed > this.#bytes.length) this.#make(believed);
  }

  /** False: it is more than may come. */
  take(chunk: Uint8Array): boolean {
    const used = this.#used + chunk.byteLength;
    if (used > this.#maxBytes) return false;
    if (used > this.#bytes.length) this.#make(Math.min(this.#maxBytes, Math.max(used, 2 * this.#used, SMALL_BYTES)));
    this.#bytes.set(chunk, this.#used);
    this.#used = used;
    return true;
  }

  whole(): Buffer {
    return this.#used === this.#bytes.length ? this.#bytes : this.#bytes.subarray(0, this.#used);
  }

  #make(bytes: number): void {
    const room = Buffer.allocUnsafeSlow(bytes);
    room.set(this.#bytes.subarray(0, this.#used));
    this.#bytes = room;
  }
}
