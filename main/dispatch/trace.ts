import type { ProviderId, SpaceId } from '../domain/ids.ts';
import type { RequestSummary } from '../domain/observation.ts';
import type { Policy } from '../domain/policy.ts';
import type { RequestContext } from '../domain/work.ts';
import type { Explanation } from '../router/explanation.ts';
import type { AttemptRecord, ItemTrace, ProviderRefusal } from '../router/types.ts';

/** Choices kept per request: a striped batch makes many alike, the first and the newest tell the story. */
const FIRST_CHOICES = 8;
const LAST_CHOICES = 8;

/** Why a request went where it went: plain JSON, times as epoch ms. No text of the request. */
export interface RequestTrace {
  readonly summary: RequestSummary;
  readonly policy: Policy;
  readonly policyFrom: RequestContext['policyFrom'];
  readonly maxWaitMs: number;
  readonly requestedModel: string | null;
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
    const wall = (at: number | null) => (at === null ? null : Math.round(at - clockOffsetMs));
    return {
      summary,
      policy: context.policy,
      policyFrom: context.policyFrom,
      maxWaitMs: context.maxWaitMs,
      requestedModel: context.model,
      space: item.space,
      units: item.units,
      verdicts: [...this.#verdicts].map(([provider, verdict]) => ({ provider, ...verdict })),
      attempts: (ended.trace?.attempts ?? []).map((attempt) => ({
        ...attempt,
        startedAtMs: Math.round(attempt.startedAtMs - clockOffsetMs),
        firstByteAtMs: wall(attempt.firstByteAtMs),
        endedAtMs: wall(attempt.endedAtMs),
      })),
      choices: [...this.#first, ...this.#last],
      choicesOmitted: this.#omitted,
      refused: ended.refused,
      clockOffsetMs,
    };
  }
}
