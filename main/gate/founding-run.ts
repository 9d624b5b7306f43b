import { SwitchyardError } from '../domain/errors.ts';
import type { RoleSettings } from '../domain/roles.ts';
import { type Said, said, together } from '../domain/said.ts';
import type { Fingerprint } from '../domain/verdict.ts';
import type { Matrix } from './compare.ts';
import { type Evaluation, evaluate } from './evaluate.ts';
import { pinHolds } from './peers.ts';
import { admits } from './policy-change.ts';
import type { Encoder } from './probe-port.ts';
import { anchorTexts, type ProbeSet, type ProbeText, type SpaceProbes } from './probes.ts';
import { failureSaid, sayingOf } from './sentences.ts';
import { MIN_THRESHOLD } from './space.ts';
import type { Verifier } from './verifier.ts';
import { MIN_LIMIT_TOKENS, makeWindowTexts, windowTextsByBytes } from './window-texts.ts';

/** Of a founder that does not say how much it reads: every encoder in use reads at least this. */
export const UNSTATED_LIMIT_TOKENS = 512;
/** Window texts of a space are sent in full at each check; a longer window is not promised. */
export const LARGEST_LIMIT_TOKENS = 32_768;

export interface Founded {
  readonly probes: SpaceProbes;
  readonly limitTokens: number;
  readonly counted: boolean;
  readonly threshold: number;
  /** Singles of the founder, which become the anchor. */
  readonly anchor: Matrix;
  readonly evaluation: Evaluation;
  readonly fingerprint: Fingerprint;
}

/** What a space founded by this encoder promises to read, in tokens. */
export function foundingLimit({ maxInputTokens, provider }: Encoder): number {
  const stated = maxInputTokens ?? provider.contextTokens ?? UNSTATED_LIMIT_TOKENS;
  return Math.min(stated, LARGEST_LIMIT_TOKENS);
}

/**
 * Measures a founder and finds out whether it may found: it must pass every check that needs no reference. Probes longer
 * than its window are left out, and blank ones if it refuses them.
 *
 * @returns null when aborted
 * @throws SwitchyardError founder_refused, with a sentence that names the check
 */
export async function measureFounder(
  verifier: Verifier,
  encoder: Encoder,
  set: ProbeSet,
  settings: RoleSettings,
  width: number | null,
  signal: AbortSignal,
): Promise<Founded | null> {
  const limitTokens = foundingLimit(encoder);
  if (limitTokens < MIN_LIMIT_TOKENS) throw refused(said('found_reads_little', { limit: limitTokens }));
  const { probes, counted } = await prepare(verifier, encoder, set, limitTokens, settings.normalise, signal);
  if (signal.aborted) return null;
  const wanted = width ?? settings.dimension;
  const outcome = await verifier.measure(encoder.provider, probes, {
    normalise: settings.normalise,
    width: wanted,
    cutWidths: settings.cutDimensions,
    signal,
  });
  switch (outcome.outcome) {
    case 'aborted':
      return null;
    case 'width':
      throw refused(said('gate_width', { width: outcome.width, expected: wanted ?? outcome.width }));
    case 'short':
      throw refused(said('found_short', { limit: limitTokens, probe: outcome.probe }));
    case 'moved':
      throw refused(failureSaid('moved'));
    case 'failed':
      throw refused(failureSaid(outcome.reason));
    case 'measured':
      break;
  }
  const { measurement } = outcome;
  const { fingerprint, singles } = measurement;
  if (encoder.provider.kind === 'cloud' && !pinHolds(fingerprint)) throw refused(said('gate_other_upstream'));
  const threshold = Math.max(MIN_THRESHOLD, settings.threshold ?? MIN_THRESHOLD);
  const evaluation = evaluate(
    measurement,
    // In the cloud the founder has no peer yet; a machine of one's own needs none.
    encoder.provider.kind === 'cloud' ? { of: 'nobody' } : { of: 'anchor', vectors: singles },
    {
      threshold,
      normalise: settings.normalise,
      probes: anchorTexts(probes),
      equalLength: probes.equalLength.length,
      first: null,
    },
  );
  if (!admits(evaluation.kind, encoder.provider.kind)) throw refused(sayingOf(evaluation), evaluation.kind);
  return { probes, limitTokens, counted, threshold, anchor: singles, evaluation, fingerprint };
}

async function prepare(
  verifier: Verifier,
  encoder: Encoder,
  set: ProbeSet,
  limitTokens: number,
  normalise: boolean,
  signal: AbortSignal,
): Promise<{ readonly probes: SpaceProbes; readonly counted: boolean }> {
  const { provider } = encoder;
  const count = (texts: readonly string[]): Promise<readonly number[] | null> =>
    encoder.tokenCounting === 'exact' ? verifier.count(provider, texts, signal) : Promise.resolve(null);
  const counts = await count(set.probes.map(({ text }) => text));
  const window = counts === null ? windowTextsByBytes(limitTokens) : await makeWindowTexts(limitTokens, count);
  const bytes = new TextEncoder();
  const fits = ({ text }: ProbeText, index: number): boolean =>
    counts === null
      ? bytes.encode(text).length + 2 <= limitTokens
      : (counts[index] ?? Number.POSITIVE_INFINITY) <= limitTokens;
  const texts: ProbeText[] = [];
  for (const probe of set.probes.filter(fits)) {
    if (probe.text.trim() !== '' || (await takesBlank(verifier, encoder, probe, normalise, signal))) texts.push(probe);
  }
  const probes: SpaceProbes = {
    version: set.version,
    texts: [...texts, ...window.within],
    equalLength: set.equalLength,
    overLimit: window.overLimit,
  };
  return { probes, counted: window.counted };
}

/** Some engines call a blank text empty and refuse it. Then the space has no blank probe. */
async function takesBlank(
  verifier: Verifier,
  { provider }: Encoder,
  { text }: ProbeText,
  normalise: boolean,
  signal: AbortSignal,
): Promise<boolean> {
  const result = await verifier.call(provider, [text], { normalise, width: null, cutWidths: [], signal }, null);
  return result.failure !== 'empty' && result.failure !== 'refused' && result.failure !== 'unusable';
}

function refused(why: Said, kind?: string): SwitchyardError {
  return new SwitchyardError('founder_refused', together(said('cannot_found'), why), {
    extra: kind === undefined ? {} : { verdict: kind },
  });
}
