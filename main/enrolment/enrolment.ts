import type { StepReport } from '../../agent/wire/enrolment.ts';
import type { NodeId } from '../domain/ids.ts';
import type { Said } from '../domain/said.ts';
import type { Clock } from '../domain/time.ts';
import { type Step, withStep } from './steps.ts';

/** From the making of the command to the first report, and from each report to the next. */
export const WAIT_MS = 30 * 60_000;
/** From the making of the command to its last use, however often the machine reports. */
export const WHOLE_MS = 2 * 3_600_000;

export interface Wish {
  readonly model: string | null;
  readonly engine: 'ollama' | null;
  readonly baseWeight: number;
}

export type EnrolmentState = 'waiting' | 'running' | 'joined' | 'failed' | 'expired';

/** One machine that is being added: what was asked for, what was heard, and until when its token lives. */
export class Enrolment {
  readonly id: string;
  readonly wish: Wish;
  readonly createdAtMs: number;
  readonly #clock: Clock;
  readonly #createdMs: number;
  #deadlineMs: number;
  #state: EnrolmentState = 'waiting';
  #steps: readonly Step[] = [];
  #node: NodeId | null = null;

  constructor(id: string, wish: Wish, clock: Clock) {
    this.id = id;
    this.wish = wish;
    this.#clock = clock;
    this.createdAtMs = Math.round(clock.wallMs());
    this.#createdMs = clock.nowMs();
    this.#deadlineMs = this.#createdMs + WAIT_MS;
  }

  get state(): EnrolmentState {
    return this.#state;
  }

  get steps(): readonly Step[] {
    return this.#steps;
  }

  get node(): NodeId | null {
    return this.#node;
  }

  /** A failed one can still be run again: it is over only when it has joined or its time is. */
  get over(): boolean {
    return this.#state === 'joined' || this.#state === 'expired' || this.leftMs <= 0;
  }

  get leftMs(): number {
    // The monotonic clock stands still while a computer sleeps; a token must not live the longer for it.
    const slept = this.#clock.wallMs() - this.createdAtMs - (this.#clock.nowMs() - this.#createdMs);
    return this.#deadlineMs - this.#clock.nowMs() - Math.max(0, slept);
  }

  get expiresAtMs(): number {
    return this.createdAtMs + Math.round(this.#deadlineMs - this.#createdMs);
  }

  /** @returns true when this report is the one that made it fail */
  heard(report: Omit<StepReport, 'v' | 'detail'>, detail: Said | null): boolean {
    const before = this.#state;
    const nowMs = this.#clock.nowMs();
    this.#deadlineMs = Math.min(this.#createdMs + WHOLE_MS, Math.max(this.#deadlineMs, nowMs + WAIT_MS));
    this.#steps = withStep(this.#steps, report, detail, Math.round(this.#clock.wallMs()));
    this.#state = report.state === 'failed' ? 'failed' : 'running';
    return this.#state === 'failed' && before !== 'failed';
  }

  joined(node: NodeId): void {
    this.heard({ code: 'join', state: 'done', percent: null }, null);
    this.#node = node;
    this.#state = 'joined';
  }

  /** Its time is over; what failed is still said by its steps. @returns true when it is expired now */
  expire(): boolean {
    if (this.#state === 'joined' || this.#state === 'expired') return false;
    this.#state = 'expired';
    return true;
  }
}
