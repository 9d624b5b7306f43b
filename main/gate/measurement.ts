import type { Fingerprint } from '../domain/verdict.ts';
import type { Matrix } from './compare.ts';

/** What became of the texts over the limit. */
export type OverLimitFinding =
  | { readonly answer: 'refused' }
  /** It read them, or part of them: the vectors tell which. */
  | { readonly answer: 'vectors'; readonly base: Matrix; readonly otherTail: Matrix; readonly otherHead: Matrix };

/** Everything one verification measured, before anything is compared. All answers came from one process. */
export interface Measurement {
  readonly fingerprint: Fingerprint;
  /** One row per anchor text, each sent alone. */
  readonly singles: Matrix;
  /** The same texts, in batches as large as the engine takes; the equal-length texts as a batch of their own. */
  readonly batched: Matrix;
  /** Some texts a second time: row i of `again` is the text of row i of `before`. */
  readonly before: Matrix;
  readonly again: Matrix;
  readonly overLimit: OverLimitFinding;
  /** The anchor texts (without the equal-length ones) cut by the agent to each declared width that was answered. */
  readonly cuts: readonly Matrix[];
}

export type MeasureOutcome =
  | { readonly outcome: 'measured'; readonly measurement: Measurement }
  | { readonly outcome: 'width'; readonly width: number; readonly fingerprint: Fingerprint }
  /** It refuses texts that the space promises to read. */
  | { readonly outcome: 'short'; readonly probe: string; readonly fingerprint: Fingerprint | null }
  /** The process changed while it was measured, or an answer came from another. */
  | { readonly outcome: 'moved' }
  | { readonly outcome: 'failed'; readonly reason: FailureReason; readonly fingerprint: Fingerprint | null }
  | { readonly outcome: 'aborted' };

/** Why nothing could be measured, in our own words only. */
export type FailureReason =
  | 'busy'
  | 'unreachable'
  | 'timeout'
  | 'refused'
  | 'unusable'
  | 'count'
  | 'engine'
  | 'moved'
  | 'unmarked';
