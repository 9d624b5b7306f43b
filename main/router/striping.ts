/** How one provider stands towards one embedding job. Rates are inputs/s over all eligible providers of the job. */
export interface ChunkView {
  /** Inputs of the job not handed out yet. */
  readonly left: number;
  /** Eligible providers, free or not. */
  readonly providers: number;
  /** Sum and maximum of the known rates; 0: none known. */
  readonly totalRate: number;
  readonly fastestRate: number;
  /** This provider's own; null: unknown. */
  readonly rate: number | null;
  readonly maxBatch: number;
  /** Inputs and chunks it has in flight. */
  readonly inFlight: number;
  readonly chunksInFlight: number;
  /** Seconds since anything of the job moved: a job that everybody shuns is not shunned for ever. */
  readonly idleS: number;
}

const CHUNK_S = 0.5;
const LARGEST_BLIND_CHUNK = 8;
const DECLINE_FACTOR = 1.5;
const DECLINE_SLACK_S = 0.5;

const clamp = (value: number, low: number, high: number): number => Math.max(low, Math.min(high, value));

/** Chunks that a provider may have in flight: two where it is at least half as fast as the fastest, so that it never idles. */
export function chunksAllowed(rate: number | null, fastestRate: number): number {
  return rate !== null && rate >= fastestRate / 2 ? 2 : 1;
}

/**
 * Inputs that the provider takes now; 0: none (enough in flight, or it would finish long after the others).
 * chunk = clamp(round(rate x min(0.5 s, ETA / 2)), 1, max batch), ETA = left / sum of known rates; without a rate
 * clamp(floor(left / (8 x providers)), 1, 8).
 */
export function chunkSize(view: ChunkView): number {
  const { left, rate, maxBatch } = view;
  if (left <= 0 || view.chunksInFlight >= chunksAllowed(rate, view.fastestRate)) return 0;
  const most = Math.min(maxBatch, left);
  if (rate === null || rate <= 0) {
    return Math.min(most, clamp(Math.floor(left / (8 * view.providers)), 1, LARGEST_BLIND_CHUNK));
  }
  const etaS = left / Math.max(view.totalRate, rate);
  const chunk = clamp(Math.round(rate * Math.min(CHUNK_S, CHUNK_S * etaS)), 1, most);
  const patienceS = DECLINE_FACTOR * Math.max(etaS, view.idleS) + DECLINE_SLACK_S;
  return (view.inFlight + chunk) / rate > patienceS ? 0 : chunk;
}

/** A chunk in flight as an idle provider sees it. Times in ms; `expectedAtMs` null: its provider's rate is unknown. */
export interface HedgeView {
  readonly nowMs: number;
  readonly sentAtMs: number;
  readonly expectedAtMs: number | null;
  readonly inputs: number;
  /** Of the idle provider, inputs/s; null: unknown, so it cannot promise anything. */
  readonly rate: number | null;
}

const WORTHWHILE_MS = 50;

/** When the chunk will come: an overdue one is expected after as long again as it has already taken. */
export function expectedAt(view: Pick<HedgeView, 'nowMs' | 'sentAtMs' | 'expectedAtMs'>): number {
  if (view.expectedAtMs !== null && view.expectedAtMs >= view.nowMs) return view.expectedAtMs;
  return view.nowMs + (view.nowMs - view.sentAtMs);
}

/** Would a copy finish more than 50 ms sooner? */
export function copyPays(view: HedgeView): boolean {
  if (view.rate === null || view.rate <= 0) return false;
  const copyAtMs = view.nowMs + (1000 * view.inputs) / view.rate;
  return copyAtMs < expectedAt(view) - WORTHWHILE_MS;
}

const RATE_ALPHA = 0.3;

/** Inputs/s of one provider: EWMA between completions, kept across jobs. Time without work does not count. */
export class RateMeter {
  perSecond: number | null = null;
  private lastAtMs = Number.NEGATIVE_INFINITY;

  completed(inputs: number, sentAtMs: number, nowMs: number): void {
    const sinceMs = Math.max(nowMs - Math.max(this.lastAtMs, sentAtMs), 0.1);
    const sample = (1000 * inputs) / sinceMs;
    this.perSecond = this.perSecond === null ? sample : this.perSecond + RATE_ALPHA * (sample - this.perSecond);
    this.lastAtMs = nowMs;
  }
}
