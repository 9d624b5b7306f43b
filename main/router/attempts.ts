import type { AttemptOutcome } from './types.ts';

/** Providers that may fail one request, and failures that one piece of an embedding batch may collect. */
export const MAX_PROVIDERS = 3;
/** "Busy" answers that local engines may give to one chat or rerank before the caller is told: a flood is not re-sent for ever. */
export const MAX_BUSY_ANSWERS = 3;
/** A busy provider is left alone at least this long. */
export const MIN_BUSY_MS = 1000;

export interface AttemptHistory {
  readonly failedProviders: number;
  readonly busyAnswers: number;
  /** A byte of the answer has reached the client. */
  readonly firstByteSent: boolean;
}

export type AfterAttempt = 'done' | 'retry' | 'give_up';

/** What becomes of a chat or rerank after an attempt, its outcome already counted in `history`. */
export function afterAttempt(outcome: AttemptOutcome['kind'], history: AttemptHistory): AfterAttempt {
  switch (outcome) {
    case 'success':
      return 'done';
    case 'callerFault':
      return 'give_up';
    case 'failed':
      return history.firstByteSent || history.failedProviders >= MAX_PROVIDERS ? 'give_up' : 'retry';
    case 'busy':
      return history.firstByteSent || history.busyAnswers >= MAX_BUSY_ANSWERS ? 'give_up' : 'retry';
    case 'fingerprint':
    case 'ignored':
      return history.firstByteSent ? 'give_up' : 'retry';
  }
}
