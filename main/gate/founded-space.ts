import type { ProviderId, SpaceId } from '../domain/ids.ts';
import type { RoleId, RoleSettings } from '../domain/roles.ts';
import { said, together, told } from '../domain/said.ts';
import { cosine, least, type Matrix, row } from './compare.ts';
import type { FoundingCandidate } from './founding.ts';
import type { Founded } from './founding-run.ts';
import { anchorMatrix } from './peers.ts';
import type { Encoder } from './probe-port.ts';
import { anchorTexts } from './probes.ts';
import { sayingOf } from './sentences.ts';
import { type AnchoredSpace, hasAnchor, type Space, type SpaceFacts } from './space.ts';
import type { Verdict } from './verdict.ts';

/** What a space is, from what its founder gave. */
export function factsOf(
  id: SpaceId,
  role: RoleId,
  encoder: Encoder,
  founded: Founded,
  settings: RoleSettings,
  nowMs: number,
): SpaceFacts {
  const { provider, trial } = encoder;
  const { probes, limitTokens, counted, threshold, anchor, fingerprint } = founded;
  return {
    id,
    role,
    width: anchor.width,
    regime: provider.kind,
    probes,
    limitTokens,
    counted,
    normalise: settings.normalise,
    threshold,
    founder: {
      provider: provider.id,
      nodeName: provider.nodeName,
      engineKind: provider.engineKind,
      model: provider.model,
      fingerprint,
    },
    trial,
    createdAtMs: nowMs,
    retiredAtMs: null,
    cutDimensions: settings.cutDimensions.filter((width) => width < anchor.width),
  };
}

/** The founder's own verdict, from the measurement that founded the space. */
export function founderVerdict(provider: ProviderId, space: AnchoredSpace, founded: Founded, nowMs: number): Verdict {
  const { kind, checks, minCosine, meanCosine, centredMin, worst, cutWidths } = founded.evaluation;
  return {
    provider,
    space: space.id,
    regime: space.regime,
    kind,
    ...told(together(said('gate_is_founder'), sayingOf(founded.evaluation))),
    checks,
    minCosine,
    meanCosine,
    centredMin,
    worst,
    cutWidths,
    fingerprint: founded.fingerprint,
    checkedAtMs: nowMs,
    lastGoodAtMs: nowMs,
    lastGoodFingerprint: founded.fingerprint,
  };
}

/** Over the probes both spaces hold, by text: what the operator is told before an index is thrown away. */
export function cosineTo(previous: Space, space: AnchoredSpace, anchor: Matrix): number | null {
  if (!hasAnchor(previous) || previous.width !== space.width) return null;
  const old = anchorMatrix(previous);
  const at = new Map(anchorTexts(previous.probes).map(({ text }, index) => [text, index]));
  const cosines = anchorTexts(space.probes).flatMap(({ text }, index) => {
    const other = at.get(text);
    return other === undefined ? [] : [cosine(row(anchor, index), row(old, other))];
  });
  const value = least(Float64Array.from(cosines));
  return Number.isFinite(value) ? value : null;
}

/** A candidate for the error a client or operator reads. */
export function describeCandidate({ provider, width, ready, reason, trial, encoder }: FoundingCandidate) {
  return {
    provider,
    model: encoder.provider.model,
    node: encoder.provider.nodeName,
    width,
    ready,
    reason: reason?.sentence ?? null,
    trial,
  };
}
