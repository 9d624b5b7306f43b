import type { Random } from '../domain/time.ts';

const STEP_MS = 15_000;
/** A cut this soon after a step up is that step's doing. */
const STEP_TO_BLAME_MS = 60_000;
const PLATEAU_WAIT_MS = 600_000;
const PLATEAU_WAIT_MAX_MS = 3_600_000;
/** A value above the plateau that has held this long disproves it. */
const PLATEAU_DISPROVED_MS = 600_000;
const BASE_MS = 2000;
const BASE_MAX_MS = 60_000;
/** Longest jitter on top of a Retry-After. */
const JITTER_MAX_MS = 5000;
/** Least distance to the next start after a refusal that neither cuts nor brings a hint. */
const STALE_PAUSE_MS = 1000;

export type LimitState = 'cooling' | 'backing-off' | 'steady' | 'ramping';

export type LimitEvent =
  | {
      readonly kind: 'cut';
      readonly atMs: number;
      readonly from: number;
      readonly to: number;
      readonly untilMs: number;
    }
  | { readonly kind: 'cooldown-extended'; readonly atMs: number; readonly untilMs: number }
  | { readonly kind: 'step'; readonly atMs: number; readonly from: number; readonly to: number }
  | { readonly kind: 'plateau'; readonly atMs: number; readonly value: number | null };

interface Plateau {
  readonly value: number;
  /** How long to stay before the next try beyond it. */
  readonly waitMs: number;
}

/** What a limit has learnt, so that another may go on from there. Times are distances from when it was told. */
export interface LimitMemory {
  readonly effective: number;
  readonly ceiling: number;
  readonly plateau: Plateau | null;
  readonly baseMs: number;
  readonly coolsForMs: number;
  readonly nextStepInMs: number;
  /** Since the last refusal and its pause were over; null: never refused. */
  readonly cleanForMs: number | null;
}

/**
 * Permits that the account really carries, learnt from refusals: halved once per congestion event, then climbing by the
 * clock. `ceiling` bounds the climb from outside; it never lowers `effective`.
 */
export class Limit {
  readonly #random: Random;
  readonly #record: (event: LimitEvent) => void;
  #effective: number;
  #ceiling: number;
  #cuts = 0;
  #cooldownUntilMs = Number.NEGATIVE_INFINITY;
  /** Null before the first refusal. */
  #cleanFromMs: number | null = null;
  #baseMs = BASE_MS;
  #nextStepMs: number;
  #step: { readonly atMs: number; readonly fromPlateau: boolean } | null = null;
  #plateau: Plateau | null = null;
  #abovePlateauSinceMs: number | null = null;

  constructor(options: {
    readonly ceiling: number;
    readonly nowMs: number;
    readonly random: Random;
    readonly record?: (event: LimitEvent) => void;
    /** Of an earlier limit on the same account, and how long ago it was told. */
    readonly memory?: { readonly of: LimitMemory; readonly ageMs: number } | null;
  }) {
    this.#random = options.random;
    this.#record = options.record ?? (() => undefined);
    this.#ceiling = options.ceiling;
    this.#effective = options.ceiling;
    this.#nextStepMs = options.nowMs + STEP_MS;
    if (options.memory == null) return;
    const { of, ageMs } = options.memory;
    this.#ceiling = of.ceiling;
    this.#effective = of.effective;
    this.#plateau = of.plateau;
    this.#baseMs = of.baseMs;
    if (of.coolsForMs > ageMs) this.#cooldownUntilMs = options.nowMs + of.coolsForMs - ageMs;
    // Nobody watched meanwhile: one step at most.
    this.#nextStepMs = options.nowMs + Math.max(0, of.nextStepInMs - ageMs);
    const cleanForMs = of.coolsForMs > 0 ? -of.coolsForMs : of.cleanForMs;
    if (cleanForMs !== null) this.#cleanFromMs = options.nowMs - ageMs - cleanForMs;
  }

  memory(nowMs: number): LimitMemory {
    return {
      effective: this.#effective,
      ceiling: this.#ceiling,
      plateau: this.#plateau,
      baseMs: this.#baseMs,
      coolsForMs: Math.max(0, this.#cooldownUntilMs - nowMs),
      nextStepInMs: Math.max(0, this.#nextStepMs - nowMs),
      // While it cools the pause says it all, and ends before it is clean.
      cleanForMs: this.#cleanFromMs === null ? null : Math.max(0, nowMs - this.#cleanFromMs),
    };
  }

  get effective(): number {
    return this.#effective;
  }

  get ceiling(): number {
    return this.#ceiling;
  }

  /** Number of the congestion event a call starts in; it must be handed back with the call's refusal. */
  get cuts(): number {
    return this.#cuts;
  }

  get cooldownUntilMs(): number {
    return this.#cooldownUntilMs;
  }

  get plateau(): number | null {
    return this.#plateau?.value ?? null;
  }

  /** When the next step up is due; null when there is nowhere to go. */
  get nextStepMs(): number | null {
    return this.#effective < this.#ceiling ? this.#nextStepMs : null;
  }

  /** Usable permits under the limit's own ceiling. */
  get usable(): number {
    return Math.min(this.#effective, this.#ceiling);
  }

  isCooling(nowMs: number): boolean {
    return nowMs < this.#cooldownUntilMs;
  }

  state(nowMs: number): LimitState {
    if (this.isCooling(nowMs)) return 'cooling';
    if (this.#cleanFromMs !== null && nowMs < this.#cleanFromMs + STEP_MS) return 'backing-off';
    if (this.#effective >= this.#ceiling || this.#effective === this.#plateau?.value) return 'steady';
    return 'ramping';
  }

  /** When the clock alone will change something next: the cooldown's end, a step, the plateau's end. Null: nothing ahead. */
  nextChangeMs(nowMs: number): number | null {
    const times = [this.#disprovedAtMs()];
    if (this.isCooling(nowMs)) times.push(this.#cooldownUntilMs);
    if (this.#effective < this.#ceiling) times.push(this.#nextStepMs);
    const next = Math.min(...times);
    return Number.isFinite(next) ? next : null;
  }

  /** Takes the steps due until now. Every other method expects to be called after it. */
  advance(nowMs: number): void {
    for (;;) {
      const stepMs = this.#nextStepMs;
      const disprovedMs = this.#disprovedAtMs();
      if (Math.min(stepMs, disprovedMs) > nowMs) return;
      if (disprovedMs < stepMs) {
        this.#setPlateau(null, disprovedMs);
        continue;
      }
      if (this.#effective < this.#ceiling) {
        this.#stepUp(stepMs);
      } else {
        // Full: stay on the grid of clean time without walking through every point of an idle night.
        const last = Math.min(nowMs, disprovedMs);
        this.#nextStepMs = stepMs + (Math.floor((last - stepMs) / STEP_MS) + 1) * STEP_MS;
      }
    }
  }

  /** The latency behind a rate's ceiling has drifted. */
  drift(ceiling: number): void {
    this.#ceiling = ceiling;
  }

  /** A discovery or the operator has set the ceiling. `lift`: `effective` follows at once (first discovery, override). */
  discovered(ceiling: number, lift: boolean, nowMs: number): void {
    if (ceiling !== this.#ceiling) this.#setPlateau(null, nowMs);
    this.#ceiling = ceiling;
    if (lift) this.#effective = ceiling;
  }

  /**
   * An account-wide refusal of a call that carried `cutsAtStart`. Only a call of the current congestion event cuts; one
   * that started before the last cut has nothing new to tell, but its Retry-After still holds. True: it has cut.
   */
  refused(nowMs: number, cutsAtStart: number, retryAfterMs: number | null): boolean {
    const cutting = cutsAtStart === this.#cuts;
    if (cutting) this.#cut(nowMs, retryAfterMs);
    else this.#lengthen(nowMs, retryAfterMs);
    this.#cleanFromMs = Math.max(nowMs, this.#cooldownUntilMs);
    this.#nextStepMs = this.#cleanFromMs + this.#waitAtCurrentValue();
    return cutting;
  }

  #cut(nowMs: number, retryAfterMs: number | null): void {
    const from = this.usable;
    const blamed = this.#step !== null && nowMs - this.#step.atMs <= STEP_TO_BLAME_MS ? this.#step : null;
    this.#effective = Math.max(1, Math.floor(from / 2));
    if (blamed !== null) {
      const waited = this.#plateau?.waitMs ?? PLATEAU_WAIT_MS;
      const waitMs = blamed.fromPlateau ? Math.min(2 * waited, PLATEAU_WAIT_MAX_MS) : PLATEAU_WAIT_MS;
      this.#setPlateau({ value: Math.max(1, from - 1), waitMs }, nowMs);
    }
    this.#abovePlateauSinceMs = this.#plateau !== null && this.#effective > this.#plateau.value ? nowMs : null;
    this.#step = null;
    this.#cuts++;
    if (this.#cleanFromMs !== null && nowMs - this.#cleanFromMs >= STEP_MS) this.#baseMs = BASE_MS;
    const pauseMs =
      retryAfterMs === null
        ? this.#baseMs / 2 + this.#random() * this.#baseMs
        : retryAfterMs + this.#random() * Math.min(retryAfterMs / 4, JITTER_MAX_MS);
    this.#baseMs = Math.min(2 * this.#baseMs, BASE_MAX_MS);
    this.#cooldownUntilMs = Math.max(this.#cooldownUntilMs, nowMs + pauseMs);
    this.#record({ kind: 'cut', atMs: nowMs, from, to: this.#effective, untilMs: this.#cooldownUntilMs });
  }

  #lengthen(nowMs: number, retryAfterMs: number | null): void {
    // Without a hint the pause that runs is enough; with none running the refused request must still not return at once.
    const pauseMs = retryAfterMs ?? (this.isCooling(nowMs) ? 0 : STALE_PAUSE_MS);
    if (nowMs + pauseMs <= this.#cooldownUntilMs) return;
    this.#cooldownUntilMs = nowMs + pauseMs;
    this.#record({ kind: 'cooldown-extended', atMs: nowMs, untilMs: this.#cooldownUntilMs });
  }

  #stepUp(atMs: number): void {
    const from = this.#effective;
    const plateau = this.#plateau?.value ?? null;
    const size = plateau !== null && from < plateau ? Math.ceil((plateau - from) / 2) : 1;
    this.#effective = Math.min(this.#ceiling, from + size);
    this.#step = { atMs, fromPlateau: from === plateau };
    if (plateau !== null && this.#effective > plateau) this.#abovePlateauSinceMs ??= atMs;
    this.#nextStepMs = atMs + this.#waitAtCurrentValue();
    this.#record({ kind: 'step', atMs, from, to: this.#effective });
  }

  #waitAtCurrentValue(): number {
    return this.#plateau !== null && this.#effective === this.#plateau.value ? this.#plateau.waitMs : STEP_MS;
  }

  #disprovedAtMs(): number {
    return this.#abovePlateauSinceMs === null
      ? Number.POSITIVE_INFINITY
      : this.#abovePlateauSinceMs + PLATEAU_DISPROVED_MS;
  }

  #setPlateau(plateau: Plateau | null, atMs: number): void {
    if (plateau === null) {
      this.#abovePlateauSinceMs = null;
      // A long wait that belonged to the plateau ends with it.
      this.#nextStepMs = Math.min(this.#nextStepMs, Math.max(atMs, this.#cleanFromMs ?? atMs) + STEP_MS);
    }
    if (plateau?.value !== this.#plateau?.value) {
      this.#record({ kind: 'plateau', atMs, value: plateau?.value ?? null });
    }
    this.#plateau = plateau;
  }
}
