import type { ProviderId, SpaceId } from '../domain/ids.ts';
import type { RoleId } from '../domain/roles.ts';
import type { Random } from '../domain/time.ts';
import type { Fingerprint, Regime } from '../domain/verdict.ts';
import type { SpaceProbes } from './probes.ts';

/** Never below this, whatever a role asks: measured, Q8_0 stays above 0.999 and Q4_0 falls to 0.964. */
export const MIN_THRESHOLD = 0.99;

/** Who founded a space, for people and for finding a peer upstream. The encoder itself may be gone. */
export interface SpaceFounder {
  readonly provider: ProviderId;
  readonly nodeName: string;
  readonly engineKind: string;
  readonly model: string;
  readonly fingerprint: Fingerprint;
}

/** Everything of a vector space but its anchor. */
export interface SpaceFacts {
  readonly id: SpaceId;
  readonly role: RoleId;
  readonly width: number;
  /** Whether a local or a cloud encoder founded it: decides what providers are compared with. */
  readonly regime: Regime;
  readonly probes: SpaceProbes;
  /** Longest input in tokens, special tokens included, as the founder counts them. Fixed at founding. */
  readonly limitTokens: number;
  /** False: the founder could not count, and the window texts were made by bytes. */
  readonly counted: boolean;
  /** Vectors are L2-normalised by the agent; false: the engine's own scale, which is then checked. */
  readonly normalise: boolean;
  /** On the minimum cosine; at least 0.99. */
  readonly threshold: number;
  readonly founder: SpaceFounder;
  /** Founded by the built-in encoder because nothing else was there. */
  readonly trial: boolean;
  readonly createdAtMs: number;
  readonly retiredAtMs: number | null;
  /** Declared widths below its own. */
  readonly cutDimensions: readonly number[];
}

/** The anchor is null when it was lost: nothing is served in such a space until it is imported. */
export interface Space extends SpaceFacts {
  /** Rows in the order of `anchorTexts(probes)`, each `width` wide. */
  readonly anchor: Float32Array | null;
}

export interface AnchoredSpace extends SpaceFacts {
  readonly anchor: Float32Array;
}

export function hasAnchor(space: Space): space is AnchoredSpace {
  return space.anchor !== null;
}

/** `<role>-<8 hex>`, unlike any in `taken`. */
export function newSpaceId(role: RoleId, random: Random, taken: ReadonlySet<SpaceId>): SpaceId {
  for (;;) {
    const hex = Math.floor(random() * 2 ** 32)
      .toString(16)
      .padStart(8, '0');
    const id = `${role}-${hex}` as SpaceId;
    if (!taken.has(id)) return id;
  }
}

/** A role may raise the threshold of its space, never lower it. */
export function effectiveThreshold(space: SpaceFacts, roleThreshold: number | null): number {
  return Math.max(MIN_THRESHOLD, space.threshold, roleThreshold ?? MIN_THRESHOLD);
}
