import { isIPv6 } from 'node:net';
import type { Clock } from '../../main/domain/time.ts';

export const UNPROVED_MS = 5000;
export const UNPROVED_PER_ADDRESS = 4;
export const UNPROVED_IN_ALL = 16;
export const WRONG_CODES_PER_ADDRESS = 5;
export const SHUT_OUT_MS = 30 * 60_000;

/** Whom limits are counted for: an IPv4 address, or the /64 of an IPv6 address, of which anybody may own a whole one. */
export function addressGroup(address: string): string {
  const plain = address.replace(/%.*$/, '').toLowerCase();
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/.exec(plain);
  if (mapped?.[1] !== undefined) return mapped[1];
  if (!isIPv6(plain)) return plain;
  const [before = '', after] = plain.split('::');
  const head = before === '' ? [] : before.split(':');
  const tail = after === undefined || after === '' ? [] : after.split(':');
  const groups =
    after === undefined ? head : [...head, ...Array(Math.max(0, 8 - head.length - tail.length)).fill('0'), ...tail];
  return `${groups
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(':')}::/64`;
}

/** Limits on peers that have not proved themselves. Who has is never held up by them. */
export class Admission {
  readonly #clock: Clock;
  readonly #unproved = new Map<string, number>();
  readonly #wrong = new Map<string, { count: number; untilMs: number }>();
  #inAll = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get unproved(): number {
    return this.#inAll;
  }

  /** Room for one more socket of that address: a function that gives it back (once), or null. */
  admit(address: string): (() => void) | null {
    const group = addressGroup(address);
    const count = this.#unproved.get(group) ?? 0;
    if (count >= UNPROVED_PER_ADDRESS || this.#inAll >= UNPROVED_IN_ALL) return null;
    this.#unproved.set(group, count + 1);
    this.#inAll += 1;
    let held = true;
    return () => {
      if (!held) return;
      held = false;
      this.#inAll -= 1;
      const left = (this.#unproved.get(group) ?? 1) - 1;
      if (left === 0) this.#unproved.delete(group);
      else this.#unproved.set(group, left);
    };
  }

  isShutOut(address: string): boolean {
    const entry = this.#wrong.get(addressGroup(address));
    return entry !== undefined && entry.count >= WRONG_CODES_PER_ADDRESS && this.#clock.nowMs() < entry.untilMs;
  }

  /** One more wrong code; the fifth shuts the address out. Forgotten 30 minutes after the last. */
  wrongCode(address: string): void {
    const now = this.#clock.nowMs();
    for (const [group, entry] of this.#wrong) if (now >= entry.untilMs) this.#wrong.delete(group);
    const group = addressGroup(address);
    const count = (this.#wrong.get(group)?.count ?? 0) + 1;
    this.#wrong.set(group, { count, untilMs: now + SHUT_OUT_MS });
  }

  rightCode(address: string): void {
    this.#wrong.delete(addressGroup(address));
  }
}
