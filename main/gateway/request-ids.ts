import type { RequestId } from '../domain/ids.ts';

const BYTES = 12;
const POOLED = 128;

/** Ids of requests: ours always, never a client's. Random bytes are drawn in bulk, since each draw costs a system call. */
export class RequestIds {
  readonly #randomBytes: (count: number) => Uint8Array;
  #pool = '';

  constructor(randomBytes: (count: number) => Uint8Array) {
    this.#randomBytes = randomBytes;
  }

  next(): RequestId {
    if (this.#pool.length === 0) this.#pool = Buffer.from(this.#randomBytes(BYTES * POOLED)).toString('hex');
    const id = `req_${this.#pool.slice(0, BYTES * 2)}`;
    this.#pool = this.#pool.slice(BYTES * 2);
    return id as RequestId;
  }
}
