import type { ProviderId, SpaceId } from '../domain/ids.ts';
import type { RequestSummary } from '../domain/observation.ts';
import type { RequestContext } from '../domain/work.ts';
import type { Explanation } from '../router/explanation.ts';
import type { AttemptRecord, ItemTrace, ProviderRefusal } from '../router/types.ts';

/** Choices kept per request: a striped batch makes many alike, the first and the newest tell the story. */
const FIRST_CHOICES = 8;
const LAST_CHOICES = 8;
/** Rows of all tables of the kept choices together: about 60 bytes each, so that a trace of a large fleet stays below 64 KiB. */
const MOST_ROWS = 700;

/** Why a request went where it went: plain JSON, times as epoch ms. No text of the request. */
export interface RequestTrace {
  readonly summary: RequestSummary;
  readonly maxWaitMs: number;
  readonly arrival: { readonly path: string; readonly bytes: number } | null;
  readonly space: SpaceId | null;
  /** Inputs of an embedding request; 1 otherwise. */
  readonly units: number;
  /** The gate's finding on each provider that was used, as it stood when it was used. */
  readonly verdicts: readonly { readonly provider: ProviderId; readonly kind: string; readonly atMs: number }[];
  readonly attempts: readonly AttemptRecord[];
  /** Inputs of each choice; `replay` of the router makes the same one again. Their `atMs` are epoch ms plus `clockOffsetMs`. */
  readonly choices: readonly Explanation[];
  readonly choicesOmitted: number;
  /** At the end, for a request that failed: who refused it and why. */
  readonly refused: readonly ProviderRefusal[];
  /** Subtract from the router's monotonic times to get epoch ms. */
  readonly clockOffsetMs: number;
}

/** Collects what a trace needs while the request runs. */
export class TraceBuilder {
  readonly #first: Explanation[] = [];
  #last: Explanation[] = [];
  #omitted = 0;
  readonly #verdicts = new Map<ProviderId, { kind: string; atMs: number }>();

  get overflowed(): boolean {
    return [...this.#first, ...this.#last].some(({ spill }) => spill !== null);
  }

  choice(explanation: Explanation): void {
    if (this.#first.length < FIRST_CHOICES) {
      this.#first.push(explanation);
      return;
    }
    this.#last.push(explanation);
    if (this.#last.length > LAST_CHOICES) {
      this.#last.shift();
      this.#omitted += 1;
    }
  }

  verdict(provider: ProviderId, kind: string, atMs: number): void {
    if (!this.#verdicts.has(provider)) this.#verdicts.set(provider, { kind, atMs });
  }

  build(
    context: RequestContext,
    summary: RequestSummary,
    item: { readonly units: number; readonly space: SpaceId | null },
    ended: { readonly trace: ItemTrace | null; readonly refused: readonly ProviderRefusal[] },
    clockOffsetMs: number,
  ): RequestTrace {
    const wall = (at: number | null) => (at === null ? null : at - clockOffsetMs);
    return {
      summary,
      maxWaitMs: context.maxWaitMs,
      arrival: context.arrival ?? null,
      space: item.space,
      units: item.units,
      verdicts: [...this.#verdicts].map(([provider, verdict]) => ({ provider, ...verdict })),
      attempts: (ended.trace?.attempts ?? []).map((attempt) => ({
        ...attempt,
        startedAtMs: attempt.startedAtMs - clockOffsetMs,
        firstByteAtMs: wall(attempt.firstByteAtMs),
        abortedAtMs: wall(attempt.abortedAtMs),
        endedAtMs: wall(attempt.endedAtMs),
      })),
      ...bounded(this.#first, this.#last, this.#omitted),
      refused: ended.refused,
      clockOffsetMs,
    };
  }
}

const rowsOf = ({ eligible, refused, candidates }: Explanation): number =>
  eligible.length + refused.length + 2 * candidates.provider.length;

/** The first and the newest choices whose tables fit; the first one always stays. */
function bounded(
  first: readonly Explanation[],
  last: readonly Explanation[],
  omitted: number,
): { choices: readonly Explanation[]; choicesOmitted: number } {
  const all = [...first, ...last];
  const kept = new Set<number>();
  let rows = 0;
  // From both ends inwards: 0, n-1, 1, n-2, ...
  for (let step = 0; step < all.length; step += 1) {
    const at = step % 2 === 0 ? step / 2 : all.length - (step + 1) / 2;
    const choice = all[at];
    if (!choice) continue;
    rows += rowsOf(choice);
    if (kept.size > 0 && rows > MOST_ROWS) break;
    kept.add(at);
  }
  return { choices: all.filter((_, at) => kept.has(at)), choicesOmitted: omitted + all.length - kept.size };
}
