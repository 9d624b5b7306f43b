const FAILURES_TO_PARK = 2;
const FIRST_INTERVAL_MS = 20_000;
const LONGEST_INTERVAL_MS = 300_000;

export type ParkingState = 'open' | 'parked' | 'trial';

/**
 * Circuit breaker of one provider: two failures in a row, or one silence, park it; after 20 s (doubling to 5 min while trials
 * fail) a single attempt is let through as a trial, whose success opens it again.
 */
export class Parking {
  failuresInRow = 0;
  untilMs: number | null = null;
  state: ParkingState = 'open';
  private intervalMs = FIRST_INTERVAL_MS;

  /** @returns true when the state has changed. */
  failed(silent: boolean, nowMs: number): boolean {
    this.failuresInRow += 1;
    if (this.state === 'parked') return false;
    if (this.state === 'open' && !silent && this.failuresInRow < FAILURES_TO_PARK) return false;
    if (this.state === 'trial') this.intervalMs = Math.min(this.intervalMs * 2, LONGEST_INTERVAL_MS);
    this.state = 'parked';
    this.untilMs = nowMs + this.intervalMs;
    return true;
  }

  /** It answered. A late answer of an attempt from before does not open a parked one: only a trial does. */
  answered(): boolean {
    if (this.state === 'parked') return false;
    const changed = this.state === 'trial';
    this.failuresInRow = 0;
    this.untilMs = null;
    this.state = 'open';
    this.intervalMs = FIRST_INTERVAL_MS;
    return changed;
  }

  /** A probe from outside has ended: an answer brings the trial forward, it does not replace it. */
  probed(ok: boolean, nowMs: number): boolean {
    if (!ok || this.state !== 'parked') return false;
    return this.toTrial(nowMs);
  }

  /** @returns true when the time of the trial has come. */
  tick(nowMs: number): boolean {
    if (this.state !== 'parked' || this.untilMs === null || nowMs < this.untilMs) return false;
    return this.toTrial(nowMs);
  }

  private toTrial(nowMs: number): boolean {
    this.state = 'trial';
    this.untilMs = nowMs;
    return true;
  }
}
