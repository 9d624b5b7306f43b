import type { RequestId } from '../domain/ids.ts';
import type { Clock } from '../domain/time.ts';

const TIME_DIGITS = 10;
const RANDOM_BYTES = 7;
const POOLED = 128;
/** Ten hexadecimal digits of milliseconds: they come again after 34 years. */
const TIME_RANGE = 2 ** (4 * TIME_DIGITS);

/**
 * Ids of requests: ours always, never a client's. They begin with the time, so that the database writes them next to each other:
 * with ids at random each of a batch of 500 touches another page of its index. Random bytes are drawn in bulk, since each draw
 * costs a system call.
 */
export class RequestIds {
  readonly #randomBytes: (count: number) => Uint8Array;
  readonly #clock: Pick<Clock, 'wallMs'>;
  #pool = '';
  #timeMs = Number.NaN;
  #time = '';

  constructor(randomBytes: (count: number) => Uint8Array, clock: Pick<Clock, 'wallMs'>) {
    this.#randomBytes = randomBytes;
    this.#clock = clock;
  }

  next(): RequestId {
    if (this.#pool.length === 0) this.#pool = Buffer.from(this.#randomBytes(RANDOM_BYTES * POOLED)).toString('hex');
    const id = `req_${this.#prefix()}${this.#pool.slice(0, RANDOM_BYTES * 2)}`;
    this.#pool = this.#pool.slice(RANDOM_BYTES * 2);
    return id as RequestId;
  }

  #prefix(): string {
    const timeMs = Math.floor(this.#clock.wallMs());
    if (timeMs !== this.#timeMs) {
      this.#timeMs = timeMs;
      this.#time = (timeMs % TIME_RANGE).toString(16).padStart(TIME_DIGITS, '0');
    }
    return this.#time;
  }
}
