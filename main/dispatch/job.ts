import type { CallFailure } from '../../agent/wire/calls.ts';
import type { CallOpener } from '../../agent/wire/stream.ts';
import type { CallSize } from '../budget/spend.ts';
import type { SwitchyardError } from '../domain/errors.ts';
import type { RequestContext, Route, WorkUsage } from '../domain/work.ts';
import type { AttemptId, AttemptOutcome, Decision, EndedResult, InputRange, RouterItem } from '../router/types.ts';

export type DispatchDecision = Extract<Decision, { kind: 'dispatch' }>;

/** What a job may use of its shell. */
export interface JobHost {
  /**
   * How to reach the machine of a decision, under its permit when it is a cloud call. `maxTokens`: output tokens to ask for where
   * the client states none. Null: the machine has no session now.
   */
  opener(decision: DispatchDecision, maxTokens: number | null): CallOpener | null;
  /** A byte of the answer goes to the client: from now on nobody else is tried. */
  firstByte(attempt: AttemptId): void;
  /**
   * Exactly once per started attempt. Says whether the answer counts, and for which inputs. What follows (another attempt,
   * `finish`, `fail`) comes after the caller has returned.
   */
  ended(attempt: AttemptId, outcome: AttemptOutcome, failure: CallFailure | null): EndedResult;
}

/**
 * One request while it is worked on: keeps its bytes, makes its calls, hands its answer over. When to call whom is the
 * router's business; a job never chooses.
 */
export interface Job {
  readonly context: RequestContext;
  readonly item: RouterItem;
  /** For the upper estimate of what one of its calls may cost. */
  readonly size: CallSize;
  start(decision: DispatchDecision, route: Route): void;
  /** Stops an attempt's call; its end has been reported as `ignored` by then. */
  abort(attempt: AttemptId): void;
  /** Every unit is answered. */
  finish(): void;
  fail(error: SwitchyardError): void;
  /** The client reads again. */
  resume(): void;
  readonly firstByteAtMs: number | null;
  readonly usage: WorkUsage | null;
  /** The route of the attempt that (last) answered. */
  readonly route: Route | null;
}

/** The number of inputs of an attempt, 1 for chat and rerank. */
export function unitsOf(range: InputRange | null): number {
  return range?.count ?? 1;
}
