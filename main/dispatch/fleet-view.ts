import { isDeepStrictEqual } from 'node:util';
import type { ProviderId, SpaceId } from '../domain/ids.ts';
import type { Provider } from '../domain/provider.ts';
import { ROLES } from '../domain/roles.ts';
import type { VerdictKind } from '../domain/verdict.ts';
import type { Gate } from '../gate/gate-api.ts';
import type { CloudClosure, RoutedProvider } from '../router/types.ts';
import { cutSpace } from './embed-job.ts';

/** What the cloud side says of one provider; local ones never ask. */
export interface CloudStanding {
  readonly closed: CloudClosure | null;
  readonly coolingUntilMs: number | null;
}

export interface FleetViewInput {
  readonly providers: readonly Provider[];
  readonly gate: Pick<Gate, 'spaces' | 'verdictFor' | 'verdict' | 'servesWidth'>;
  readonly cloud: (provider: Provider) => CloudStanding;
  /** clock.nowMs() - clock.wallMs(): the gate dates verdicts by the wall, the router counts monotonically. */
  readonly clockOffsetMs: number;
  /** Since when a provider has been out of reach (monotonic), kept over calls. */
  readonly unreachableSince: Map<ProviderId, number>;
  readonly nowMs: number;
}

/** Joins what fleet, gate and cloud know into what the router looks at. */
export function routedProviders(input: FleetViewInput): readonly RoutedProvider[] {
  const spaces = input.gate.spaces().filter(({ retiredAtMs }) => retiredAtMs === null);
  const seen = new Set<ProviderId>();
  const routed = input.providers.map((provider): RoutedProvider => {
    seen.add(provider.id);
    const verdicts = new Map<SpaceId, VerdictKind>();
    let verifiedAtMs: number | null = null;
    if (ROLES[provider.role].task === 'embed') {
      for (const space of spaces) {
        if (space.role !== provider.role) continue;
        verdicts.set(space.id, input.gate.verdictFor(provider.id, space.id));
        for (const width of space.cutDimensions) {
          if (input.gate.servesWidth(provider.id, space.id, width))
            verdicts.set(cutSpace(space.id, width), input.gate.verdictFor(provider.id, space.id));
        }
        const checked = input.gate.verdict(provider.id, space.id)?.checkedAtMs;
        if (checked !== undefined)
          verifiedAtMs = Math.max(verifiedAtMs ?? Number.NEGATIVE_INFINITY, checked + input.clockOffsetMs);
      }
    }
    const standing = provider.kind === 'cloud' ? input.cloud(provider) : { closed: null, coolingUntilMs: null };
    return {
      ...provider,
      spaces: verdicts,
      verifiedAtMs,
      pinned: provider.kind === 'local' || ROLES[provider.role].task !== 'embed' || provider.fingerprint.pin !== null,
      ...standing,
      unreachableSinceMs: unreachableSince(provider, input),
      nextProbeAtMs: null,
    };
  });
  for (const id of input.unreachableSince.keys()) if (!seen.has(id)) input.unreachableSince.delete(id);
  return routed;
}

/**
 * What has not changed stays the very object it was, and the whole list too when nothing has: the router makes up its tables
 * anew for every provider that is another object, and most heartbeats say nothing new.
 */
export function keepUnchanged(
  before: readonly RoutedProvider[],
  now: readonly RoutedProvider[],
): readonly RoutedProvider[] {
  const known = new Map(before.map((provider) => [provider.id, provider]));
  const kept = now.map((provider) => {
    const old = known.get(provider.id);
    return old !== undefined && isSame(old, provider) ? old : provider;
  });
  const same = kept.length === before.length && kept.every((provider, at) => provider === before[at]);
  return same ? before : kept;
}

/** The two clocks are read one after the other, and the wall is set right now and then. */
const CLOCK_NOISE_MS = 5;

function isSame(a: RoutedProvider, b: RoutedProvider): boolean {
  const apartMs = Math.abs((a.verifiedAtMs ?? 0) - (b.verifiedAtMs ?? 0));
  const sameCheck = (a.verifiedAtMs === null) === (b.verifiedAtMs === null) && apartMs <= CLOCK_NOISE_MS;
  return sameCheck && isDeepStrictEqual({ ...a, verifiedAtMs: b.verifiedAtMs }, b);
}

function unreachableSince(provider: Provider, { unreachableSince: since, nowMs }: FleetViewInput): number | null {
  const reachable = provider.reachable && provider.nodePulls;
  if (reachable) {
    since.delete(provider.id);
    return null;
  }
  const before = since.get(provider.id);
  if (before !== undefined) return before;
  since.set(provider.id, nowMs);
  return nowMs;
}
