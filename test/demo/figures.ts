import type { RoleId } from '../../main/domain/roles.ts';

/** How one request of a client ended. */
export interface Outcome {
  readonly role: RoleId;
  readonly route: string | null;
  /** The answer's error code; null: served whole. */
  readonly failure: string | null;
  readonly totalMs: number;
}

interface Summary {
  readonly requests: number;
  readonly failures: number;
  readonly local: number;
  readonly cloud: number;
  readonly p50Ms: number | null;
  readonly p95Ms: number | null;
}

/** What a rehearsal came to. */
export interface Figures extends Summary {
  readonly seconds: number;
  /** Error code -> how often. */
  readonly failuresByCode: Readonly<Record<string, number>>;
  readonly roles: Readonly<Partial<Record<RoleId, Summary>>>;
  readonly account: {
    /** Calls that reached OpenRouter's stand-in, and how many of them it answered with 429. */
    readonly calls: number;
    readonly tooMany: number;
    readonly mostAtOnce: number;
    readonly cuts: number;
    readonly spentUsd: number;
  };
  readonly gate: {
    /** Encoders whose vectors were refused, and the texts of clients that reached them all the same: none. */
    readonly refused: readonly { readonly name: string; readonly minCosine: number | null }[];
    readonly textsToRefused: number;
  };
}

/** Newest outcomes kept; a demo may run for days. */
const KEPT = 20_000;

export class Tally {
  readonly #outcomes: Outcome[] = [];
  total = 0;
  failed = 0;

  record(outcome: Outcome): void {
    this.total += 1;
    if (outcome.failure !== null) this.failed += 1;
    this.#outcomes.push(outcome);
    if (this.#outcomes.length > KEPT) this.#outcomes.splice(0, KEPT / 10);
  }

  summary(role?: RoleId): Summary {
    const of = this.#outcomes.filter((one) => role === undefined || one.role === role);
    const served = of
      .filter(({ failure }) => failure === null)
      .map(({ totalMs }) => totalMs)
      .sort((a, b) => a - b);
    return {
      requests: of.length,
      failures: of.length - served.length,
      local: of.filter(({ route }) => route === 'local').length,
      cloud: of.filter(({ route }) => route === 'cloud').length,
      p50Ms: quantile(served, 0.5),
      p95Ms: quantile(served, 0.95),
    };
  }

  failuresByCode(): Record<string, number> {
    const counts: Record<string, number> = {};
    for (const { failure } of this.#outcomes) if (failure !== null) counts[failure] = (counts[failure] ?? 0) + 1;
    return counts;
  }
}

/** Nearest rank, in whole milliseconds; null of nothing. */
function quantile(sorted: readonly number[], share: number): number | null {
  const value = sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)];
  return value === undefined ? null : Math.round(value);
}
