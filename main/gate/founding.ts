import type { ProviderId } from '../domain/ids.ts';
import { ROLES, type RoleId, type RoleSettings } from '../domain/roles.ts';
import { type Said, said, together } from '../domain/said.ts';
import type { Encoder } from './probe-port.ts';

export interface FoundingCandidate {
  readonly encoder: Encoder;
  readonly provider: ProviderId;
  readonly width: number | null;
  /** False: known, but not able to found now; `reason` says why. */
  readonly ready: boolean;
  readonly reason: Said | null;
  readonly trial: boolean;
}

export type FoundingChoice =
  | { readonly choice: 'found'; readonly candidate: FoundingCandidate; readonly trial: boolean }
  | { readonly choice: 'ask'; readonly candidates: readonly FoundingCandidate[]; readonly reason: Said };

/** Why an encoder cannot found now; null: it can. */
function hindrance(encoder: Encoder, settings: RoleSettings): Said | null {
  const { provider, width } = encoder;
  if (provider.nodeState !== 'ready' && provider.nodeState !== 'degraded')
    return said(`hindered_${provider.nodeState}`);
  if (!provider.nodePulls || !provider.reachable) return said('hindered_engine');
  if (!provider.present) return said('hindered_absent');
  if (settings.dimension !== null && width !== null && width !== settings.dimension) {
    return said('hindered_width', { width, expected: settings.dimension });
  }
  return null;
}

/**
 * Encoders that could found a space of this role under its policy, best known first. Under `cloud` a space must come from
 * the cloud, under every other policy from the network itself: else the policy would admit nobody who can be compared.
 */
export function foundingCandidates(
  role: RoleId,
  settings: RoleSettings,
  encoders: readonly Encoder[],
): readonly FoundingCandidate[] {
  if (ROLES[role].task !== 'embed' || !settings.enabled) return [];
  const kind = settings.policy === 'cloud' ? 'cloud' : 'local';
  const named = (encoder: Encoder): boolean => {
    const { localModels } = settings;
    if (localModels === 'auto' || encoder.provider.kind === 'cloud') return true;
    return localModels.some((name) => encoder.provider.model === name || encoder.provider.aliases.includes(name));
  };
  return encoders
    .filter(({ provider }) => provider.role === role && provider.kind === kind)
    .filter((encoder) => named(encoder) && !(encoder.trial && role !== 'embedding'))
    .filter(({ provider }) => provider.kind === 'local' || provider.fingerprint.pin !== null)
    .map((encoder) => {
      const reason = hindrance(encoder, settings);
      return {
        encoder,
        provider: encoder.provider.id,
        width: encoder.width,
        ready: reason === null,
        reason,
        trial: encoder.trial,
      };
    })
    .sort(
      (a, b) =>
        Number(b.ready) - Number(a.ready) || Number(a.trial) - Number(b.trial) || (a.provider < b.provider ? -1 : 1),
    );
}

/** Of OpenRouter's upstreams those that the role would be pinned to; an engine of one's own at a public address has no pin there. */
export function isPinned({ provider }: Encoder, { cloud }: RoleSettings): boolean {
  const { model, aliases, engineKind, fingerprint } = provider;
  if (engineKind !== 'openrouter') return true;
  const isModel = cloud.model !== null && (model === cloud.model || aliases.includes(cloud.model));
  return isModel && fingerprint.pin !== null && cloud.upstreams.includes(fingerprint.pin);
}

/**
 * The same weights on several machines are one candidate, known by digest: whichever founds, the others follow. Without
 * digests a name proves nothing, so each provider counts for itself.
 */
function sameEncoder(candidate: FoundingCandidate): string {
  const { modelDigest } = candidate.encoder.provider.fingerprint;
  return modelDigest === null ? candidate.provider : `${modelDigest} ${candidate.encoder.provider.engineKind}`;
}

/** Who founds by itself, or why a person must choose. Candidates that cannot now still count: they may be meant. */
export function chooseFounder(
  role: RoleId,
  settings: RoleSettings,
  candidates: readonly FoundingCandidate[],
): FoundingChoice {
  const ask = (reason: Said): FoundingChoice => ({ choice: 'ask', candidates, reason });
  const real = candidates.filter(({ trial }) => !trial);
  const [first] = real;
  if (first !== undefined) {
    const named = settings.localModels !== 'auto' && settings.localModels.length === 1;
    const able = real.filter(({ ready }) => ready);
    if (named || new Set(real.map(sameEncoder)).size === 1) {
      const [founder] = able;
      if (founder !== undefined) return { choice: 'found', candidate: founder, trial: false };
      return ask(together(said('only_candidate'), first.reason ?? said('hindered_unready')));
    }
    return ask(said('found_choose', { count: real.length }));
  }
  if (settings.localModels !== 'auto') {
    const trial = candidates.find(({ ready }) => ready);
    if (trial !== undefined) return { choice: 'found', candidate: trial, trial: true };
    return ask(said('found_none_named'));
  }
  const trial = candidates.find((candidate) => candidate.trial && candidate.ready);
  const configured = settings.policy === 'cloud' || settings.cloud.model !== null || settings.dimension !== null;
  if (role === 'embedding' && trial !== undefined && !configured) {
    return { choice: 'found', candidate: trial, trial: true };
  }
  return ask(said(configured && trial !== undefined ? 'found_other_wanted' : 'found_nobody'));
}
