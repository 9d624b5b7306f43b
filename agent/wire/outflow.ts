import { type FrameWriter, INITIAL_WINDOW_BYTES, MAX_DATA_BYTES } from './frames.ts';
import type { Mux, Sendable } from './mux.ts';

const MAX_CREDIT = 2 ** 31;

/** The sending half of one stream: bytes go out in order, as far as the receiver's window and the socket let them. */
export class Outflow implements Sendable {
  queued = false;
  readonly #id: number;
  readonly #mux: Mux;
  readonly #writer: FrameWriter;
  readonly #emptied: () => void;
  #credit: number;
  #chunks: Uint8Array[] = [];
  #head = 0;
  #offset = 0;
  #bytes = 0;

  /** `sent` bytes of the initial window are used up already. `emptied` runs when waiting bytes have all been sent. */
  constructor(mux: Mux, writer: FrameWriter, id: number, sent: number, emptied: () => void) {
    this.#mux = mux;
    this.#writer = writer;
    this.#id = id;
    this.#credit = INITIAL_WINDOW_BYTES - sent;
    this.#emptied = emptied;
  }

  /** Bytes written and not yet sent. */
  get waiting(): number {
    return this.#bytes;
  }

  /** False: some of it has to wait; `emptied` will tell. The chunk must not change any more. */
  write(chunk: Uint8Array): boolean {
    const length = chunk.length;
    if (length === 0) return this.#bytes === 0;
    if (this.#bytes === 0 && length <= MAX_DATA_BYTES && length <= this.#credit && !this.#mux.congested) {
      this.#credit -= length;
      this.#writer.data(this.#id, chunk);
      this.#mux.touch();
      return true;
    }
    this.#chunks.push(chunk);
    this.#bytes += length;
    this.#mux.enqueue(this);
    return this.#bytes === 0;
  }

  /** The receiver lets `bytes` more through. False: no receiver grants that much. */
  grant(bytes: number): boolean {
    this.#credit += bytes;
    if (this.#credit > MAX_CREDIT) return false;
    if (this.#bytes > 0) this.#mux.enqueue(this);
    return true;
  }

  sendSlice(writer: FrameWriter): boolean {
    const chunk = this.#chunks[this.#head];
    if (chunk === undefined || this.#credit === 0) return false;
    const length = Math.min(chunk.length - this.#offset, MAX_DATA_BYTES, this.#credit);
    writer.data(this.#id, chunk.subarray(this.#offset, this.#offset + length));
    this.#credit -= length;
    this.#bytes -= length;
    this.#offset += length;
    if (this.#offset === chunk.length) this.#next();
    if (this.#bytes === 0) {
      this.#emptied();
      return false;
    }
    return this.#credit > 0;
  }

  /** Forgets what waits. */
  clear(): void {
    this.#chunks = [];
    this.#head = 0;
    this.#offset = 0;
    this.#bytes = 0;
  }

  #next(): void {
    this.#offset = 0;
    this.#head += 1;
    if (this.#head > 256) {
      this.#chunks = this.#chunks.slice(this.#head);
      this.#head = 0;
    }
    if (this.#bytes === 0) this.clear();
  }
}
