import type { ProviderKind } from '../domain/policy.ts';
import type { Fingerprint, VerdictKind } from '../domain/verdict.ts';
import { type Matrix, matrix } from './compare.ts';
import type { Reference } from './evaluate.ts';
import { admits } from './policy-change.ts';
import { anchorTexts } from './probes.ts';
import type { AnchoredSpace } from './space.ts';

/** Another provider of the space with its own first vectors. */
export interface PeerVectors {
  readonly upstream: string | null;
  readonly verdict: VerdictKind;
  readonly vectors: Matrix;
}

export function anchorMatrix(space: AnchoredSpace): Matrix {
  return matrix(space.anchor, anchorTexts(space.probes).length, space.width);
}

/** The upstream that answers, as far as it is known: what it reported, else what was pinned. */
export function upstreamOf(fingerprint: Fingerprint): string | null {
  const name = fingerprint.upstream ?? fingerprint.pin;
  return name === null ? null : name.toLowerCase();
}

/**
 * `deepinfra` and `deepinfra/fp8` name one upstream; a report of another one breaks the pin. A pin is an upstream's name, or what
 * agents send: `only=<names>;quantizations=<names>`, where no name at all pins nobody.
 */
export function pinHolds({ upstream, pin }: Fingerprint): boolean {
  if (upstream === null || pin === null) return true;
  const answered = upstream.toLowerCase();
  const names = /^only=([^;]*);/.exec(pin)?.[1] ?? pin;
  return names === '' || names.split(',').some((name) => sameUpstream(answered, name.toLowerCase()));
}

function sameUpstream(answered: string, pinned: string): boolean {
  const slug = (name: string): string => name.split('/')[0] ?? '';
  const tagsAgree = !answered.includes('/') || !pinned.includes('/') || answered === pinned;
  return slug(answered) === slug(pinned) && tagsAgree;
}

/**
 * What a provider is compared with. A locally founded space has its anchor, whoever asks. In a cloud-founded one a provider
 * of the founding upstream would be compared with itself through another node, so it needs the vectors of another upstream
 * of the same model that is in the space; where there is none, nobody is left.
 */
export function referenceFor(
  space: AnchoredSpace,
  kind: ProviderKind,
  fingerprint: Fingerprint,
  peers: readonly PeerVectors[],
): Reference {
  const own = upstreamOf(fingerprint);
  const founder = upstreamOf(space.founder.fingerprint);
  if (space.regime === 'local' || kind === 'local' || own !== founder) {
    return { of: 'anchor', vectors: anchorMatrix(space) };
  }
  const peer = peers.find(
    ({ upstream, verdict, vectors }) =>
      upstream !== null && upstream !== own && admits(verdict, space.regime) && vectors.width === space.width,
  );
  return peer === undefined ? { of: 'nobody' } : { of: 'peer', vectors: peer.vectors };
}
