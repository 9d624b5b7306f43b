import { MAX_BODY_BYTES } from './frames.ts';

/** Bytes of large request bodies that one data socket may hold at a time. */
export const BODY_POOL_BYTES = 128 * 1024 * 1024;

interface Claim {
  readonly bytes: number;
  readonly granted: () => void;
  state: 'waiting' | 'held' | 'gone';
}

/** Room for large request bodies, first come first served. Bodies inside the initial window need none, so never wait. */
export class BodyPool {
  #free: number;
  #waiting: Claim[] = [];

  /** Never less than one whole body. */
  constructor(bytes: number = BODY_POOL_BYTES) {
    this.#free = Math.max(bytes, MAX_BODY_BYTES);
  }

  get free(): number {
    return this.#free;
  }

  /** `granted` runs once, now or later; the returned function gives the room (or the place in the queue) back. */
  claim(bytes: number, granted: () => void): () => void {
    const claim: Claim = { bytes, granted, state: 'waiting' };
    this.#waiting.push(claim);
    this.#serve();
    return () => {
      if (claim.state === 'held') this.#free += claim.bytes;
      else this.#waiting = this.#waiting.filter((other) => other !== claim);
      if (claim.state === 'gone') return;
      claim.state = 'gone';
      this.#serve();
    };
  }

  #serve(): void {
    for (let first = this.#waiting[0]; first !== undefined && first.bytes <= this.#free; first = this.#waiting[0]) {
      this.#waiting.shift();
      this.#free -= first.bytes;
      first.state = 'held';
      first.granted();
    }
  }
}
