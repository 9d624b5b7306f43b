import type { SpendCaps } from '../domain/roles.ts';

export type SpendScope = 'role' | 'project';
export type Period = 'day' | 'month';

/** What a model costs, in USD per token, per request and per rerank search. Null: unknown. */
export interface ModelPrice {
  readonly promptUsd: number;
  readonly completionUsd: number;
  readonly requestUsd: number;
}

/** Dearest search of a reranker in the catalogue; their token prices may read 0 although searches cost money. */
const SEARCH_USD = 0.0025;
const DOCUMENTS_PER_SEARCH = 100;

export interface CallSize {
  /** UTF-8 bytes of everything that is read. */
  readonly promptBytes: number;
  readonly maxOutputTokens: number;
  /** Documents of a rerank; 0 otherwise. */
  readonly documents: number;
}

/**
 * At most this many USD: two bytes a token (no tokeniser in use makes more of ordinary text) and every output token used.
 * Null when the price is unknown.
 */
export function upperEstimateUsd(price: ModelPrice | null, size: CallSize): number | null {
  if (price === null) return null;
  const tokens =
    Math.ceil(size.promptBytes / 2) * price.promptUsd + size.maxOutputTokens * price.completionUsd + price.requestUsd;
  if (size.documents === 0) return tokens;
  return tokens + Math.ceil(size.documents / DOCUMENTS_PER_SEARCH) * SEARCH_USD;
}

export interface SpendRefusal {
  readonly reason: 'spend_cap' | 'price_unknown';
  readonly scope: SpendScope;
  readonly id: string;
  readonly period: Period;
}

export interface CapReached {
  readonly reason: 'spend_cap' | 'price_unknown';
  readonly period: Period;
  readonly capUsd: number;
  readonly untilWallMs: number;
}

/** Survives a restart as JSON. Keys of `spent`: `<scope>|<id>|<YYYY-MM-DD or YYYY-MM>`. */
export interface SpendState {
  readonly version: 1;
  readonly spent: Readonly<Record<string, number>>;
}

/** Months with spending that are kept; a cap looks at one. */
const KEPT_MONTHS = 2;

/** A cap that the last call did not fit under, and the call's estimate (null: without a price). */
interface Stop {
  readonly period: Period;
  readonly key: string;
  readonly estimateUsd: number | null;
}

interface Reservation {
  readonly usd: number;
  readonly keys: readonly string[];
}

/**
 * USD by role and project, per UTC day and month. A call reserves its upper estimate before it starts and is settled with
 * the reported cost, on the day of its start. What runs when the process dies is kept as spent: the cost of those calls is
 * not known, and a cap must not be passed by crashing.
 */
export class Spend {
  readonly #spent = new Map<string, number>();
  readonly #reserved = new Map<string, number>();
  readonly #reservations = new Map<string, Reservation>();
  readonly #caps = new Map<string, SpendCaps>();
  readonly #stops = new Map<string, Stop>();
  #revision = 0;

  constructor(state: SpendState | null = null) {
    for (const [key, usd] of Object.entries(state?.spent ?? {}))
      if (Number.isFinite(usd) && usd > 0) this.#spent.set(key, usd);
  }

  /** Grows with each change worth saving. */
  get revision(): number {
    return this.#revision;
  }

  setCaps(scope: SpendScope, id: string, caps: SpendCaps): void {
    this.#caps.set(`${scope}|${id}`, caps);
  }

  /** The cap that the call would pass; null: none. An unknown price is refused where a cap is set. */
  check(role: string, project: string, estimateUsd: number | null, wallMs: number): SpendRefusal | null {
    for (const [scope, id] of scopesOf(role, project)) {
      const caps = this.#caps.get(`${scope}|${id}`);
      if (caps === undefined) continue;
      for (const [period, cap] of [
        ['day', caps.dayUsd],
        ['month', caps.monthUsd],
      ] as const) {
        if (cap === null) continue;
        if (this.#fits(scope, id, period, cap, estimateUsd, wallMs)) continue;
        this.#stops.set(`${scope}|${id}`, { period, key: periodKey(period, wallMs), estimateUsd });
        return { reason: estimateUsd === null ? 'price_unknown' : 'spend_cap', scope, id, period };
      }
    }
    return null;
  }

  #fits(scope: SpendScope, id: string, period: Period, cap: number, estimateUsd: number | null, wallMs: number) {
    if (estimateUsd === null) return false;
    const total = this.total(scope, id, period, wallMs);
    return total.spentUsd + total.reservedUsd + estimateUsd <= cap + 1e-9;
  }

  /** The cap that keeps calls of this scope from starting, and until when: it is spent, or the last call asked for did not fit. */
  #reached(scope: SpendScope, id: string, wallMs: number): CapReached | null {
    const caps = this.#caps.get(`${scope}|${id}`);
    const stop = this.#stops.get(`${scope}|${id}`);
    for (const [period, cap] of [
      ['month', caps?.monthUsd ?? null],
      ['day', caps?.dayUsd ?? null],
    ] as const) {
      if (cap === null) continue;
      const untilWallMs = endOf(period, wallMs);
      if (cap > 0 && this.total(scope, id, period, wallMs).spentUsd >= cap)
        return { reason: 'spend_cap', period, capUsd: cap, untilWallMs };
      if (stop?.period !== period || stop.key !== periodKey(period, wallMs)) continue;
      if (this.#fits(scope, id, period, cap, stop.estimateUsd, wallMs)) continue;
      const reason = stop.estimateUsd === null ? 'price_unknown' : 'spend_cap';
      return { reason, period, capUsd: cap, untilWallMs };
    }
    return null;
  }

  reserve(call: string, role: string, project: string, estimateUsd: number | null, wallMs: number): void {
    for (const [scope, id] of scopesOf(role, project)) this.#stops.delete(`${scope}|${id}`);
    const keys = scopesOf(role, project).flatMap(([scope, id]) => [
      `${scope}|${id}|${dayOf(wallMs)}`,
      `${scope}|${id}|${monthOf(wallMs)}`,
    ]);
    const usd = estimateUsd ?? 0;
    this.#reservations.set(call, { usd, keys });
    for (const key of keys) add(this.#reserved, key, usd);
    if (usd > 0) this.#revision++;
  }

  /**
   * `costUsd` null: not reported, the estimate stands. A call is settled once; more is ignored.
   *
   * @returns what has been booked now
   */
  settle(call: string, costUsd: number | null): number {
    const reservation = this.#reservations.get(call);
    if (reservation === undefined) return 0;
    this.#reservations.delete(call);
    const usd = costUsd !== null && Number.isFinite(costUsd) && costUsd >= 0 ? costUsd : reservation.usd;
    for (const key of reservation.keys) {
      add(this.#reserved, key, -reservation.usd);
      add(this.#spent, key, usd);
    }
    if (usd > 0 || reservation.usd > 0) this.#revision++;
    return usd;
  }

  /** Calls that have not been settled. */
  running(): readonly string[] {
    return [...this.#reservations.keys()];
  }

  total(
    scope: SpendScope,
    id: string,
    period: Period,
    wallMs: number,
  ): { readonly spentUsd: number; readonly reservedUsd: number } {
    const key = `${scope}|${id}|${periodKey(period, wallMs)}`;
    return { spentUsd: this.#spent.get(key) ?? 0, reservedUsd: this.#reserved.get(key) ?? 0 };
  }

  /** Roles and projects with a cap or with spending in the current month. */
  report(wallMs: number): readonly SpendLine[] {
    const month = monthOf(wallMs);
    const ids = new Set<string>(this.#caps.keys());
    for (const key of this.#spent.keys()) if (key.endsWith(`|${month}`)) ids.add(key.slice(0, key.lastIndexOf('|')));
    return [...ids].map((key) => {
      const cut = key.indexOf('|');
      const scope = key.slice(0, cut) === 'role' ? 'role' : 'project';
      const id = key.slice(cut + 1);
      return {
        scope,
        id,
        day: this.total(scope, id, 'day', wallMs),
        month: this.total(scope, id, 'month', wallMs),
        caps: this.#caps.get(key) ?? { dayUsd: null, monthUsd: null },
        reached: this.#reached(scope, id, wallMs),
      };
    });
  }

  /**
   * What must be saved, running reservations counted as spent. Months are forgotten by number and not by the clock: one that is set a
   * year ahead and back must not take the spending of this month with it.
   */
  state(wallMs: number): SpendState {
    const months = [...this.#spent.keys(), ...this.#reserved.keys()].map(monthOfKey);
    const kept = new Set([monthOf(wallMs), ...[...new Set(months)].sort().slice(-KEPT_MONTHS)]);
    const spent: Record<string, number> = {};
    for (const map of [this.#spent, this.#reserved]) {
      for (const [key, usd] of map) {
        if (!kept.has(monthOfKey(key))) map.delete(key);
        else if (usd > 0) spent[key] = (spent[key] ?? 0) + usd;
      }
    }
    return { version: 1, spent };
  }
}

export interface SpendLine {
  readonly scope: SpendScope;
  readonly id: string;
  readonly day: { readonly spentUsd: number; readonly reservedUsd: number };
  readonly month: { readonly spentUsd: number; readonly reservedUsd: number };
  readonly caps: SpendCaps;
  /** Null: a call like the last may start. */
  readonly reached: CapReached | null;
}

function scopesOf(role: string, project: string): readonly (readonly [SpendScope, string])[] {
  return [
    ['role', role],
    ['project', project],
  ];
}

function periodKey(period: Period, wallMs: number): string {
  return period === 'day' ? dayOf(wallMs) : monthOf(wallMs);
}

function endOf(period: Period, wallMs: number): number {
  const date = new Date(wallMs);
  const [year, month, day] = [date.getUTCFullYear(), date.getUTCMonth(), date.getUTCDate()];
  return period === 'day' ? Date.UTC(year, month, day + 1) : Date.UTC(year, month + 1, 1);
}

function monthOfKey(key: string): string {
  return key.slice(key.lastIndexOf('|') + 1).slice(0, 7);
}

function dayOf(wallMs: number): string {
  return new Date(wallMs).toISOString().slice(0, 10);
}

function monthOf(wallMs: number): string {
  return new Date(wallMs).toISOString().slice(0, 7);
}

function add(map: Map<string, number>, key: string, usd: number): void {
  const next = (map.get(key) ?? 0) + usd;
  // Sums and differences of the same figures leave dust; a running sum must come back to nothing.
  if (Math.abs(next) < 1e-12) map.delete(key);
  else map.set(key, next);
}
