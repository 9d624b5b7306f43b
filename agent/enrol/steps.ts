import type { StepCode, StepDetail, StepReport, StepState } from '../wire/enrolment.ts';

/** A step cannot be done. The sentence is for the person at the machine, the detail for the control plane. */
export class StepFailed extends Error {
  readonly detail: StepDetail;

  constructor(detail: StepDetail, sentence: string) {
    super(sentence);
    this.name = 'StepFailed';
    this.detail = detail;
  }
}

/** What a step has to say while it works. */
export interface Progress {
  /** It would change nothing, only tell. */
  readonly dryRun: boolean;
  /** A line for the person at the machine. */
  say(sentence: string): void;
  /** 0 to 100; passed on at most once a second. */
  percent(value: number): void;
}

export interface StepsParts {
  readonly dryRun: boolean;
  send(report: StepReport): Promise<void>;
  say(sentence: string): void;
  nowMs(): number;
}

const PERCENT_EVERY_MS = 1000;
/** Work that goes on is told even where its figure stands still: the control plane gives up on a machine that is silent. */
const SIGN_EVERY_MS = 60_000;

/** Runs steps one after the other and tells both sides of them. Reports go out in order; one that is lost stops nothing. */
export class Steps {
  readonly #parts: StepsParts;
  #sending: Promise<void> = Promise.resolve();
  #current: StepCode | null = null;

  constructor(parts: StepsParts) {
    this.#parts = parts;
  }

  /** `work` resolves with what was found, or null. @throws StepFailed, when the control plane has been told */
  async run(code: StepCode, title: string, work: (progress: Progress) => Promise<StepDetail | null>): Promise<void> {
    const { dryRun, say } = this.#parts;
    this.#current = code;
    say(title);
    this.#report(code, 'running', null, null);
    let told = { percent: -1, atMs: Number.NEGATIVE_INFINITY };
    const percent = (value: number) => {
      const whole = Math.min(100, Math.max(0, Math.floor(value)));
      const atMs = this.#parts.nowMs();
      const isNews = whole !== told.percent;
      if (atMs - told.atMs < (isNews ? PERCENT_EVERY_MS : SIGN_EVERY_MS)) return;
      told = { percent: whole, atMs };
      if (isNews) say(`  ${whole} %`);
      this.#report(code, 'running', whole, null);
    };
    try {
      const detail = await work({ dryRun, say: (sentence) => say(`  ${sentence}`), percent });
      // Who has joined is known to the control plane from the join itself, and the address is closed from then on.
      if (code !== 'join') this.#report(code, 'done', null, detail);
      await this.#sending;
      this.#current = null;
    } catch (error) {
      await this.fail(error instanceof StepFailed ? error.detail : 'unexpected');
      throw error;
    }
  }

  /** The step that runs, if one does, is over. */
  async fail(detail: StepDetail): Promise<void> {
    if (this.#current !== null) this.#report(this.#current, 'failed', null, detail);
    this.#current = null;
    await this.#sending;
  }

  #report(code: StepCode, state: StepState, percent: number | null, detail: StepDetail | null): void {
    if (this.#parts.dryRun) return;
    const report: StepReport = { v: 1, code, state, percent, detail };
    this.#sending = this.#sending.then(() => this.#parts.send(report)).catch(() => undefined);
  }
}
