import type { ProviderId, SpaceId } from '../domain/ids.ts';
import type { Fingerprint } from '../domain/verdict.ts';
import type { Matrix } from './compare.ts';
import type { Verdict } from './verdict.ts';

/** A provider's own first vectors in a space. */
export interface FirstVectors {
  readonly vectors: Matrix;
  readonly fingerprint: Fingerprint | null;
}

/** What is known now: the newest verdict of each (provider, space), and first vectors. Lookups cost two map reads. */
export class VerdictBook {
  readonly #verdicts = new Map<ProviderId, Map<SpaceId, Verdict>>();
  readonly #firsts = new Map<ProviderId, Map<SpaceId, FirstVectors>>();

  verdict(provider: ProviderId, space: SpaceId): Verdict | null {
    return this.#verdicts.get(provider)?.get(space) ?? null;
  }

  setVerdict(verdict: Verdict): void {
    const ofProvider = this.#verdicts.get(verdict.provider) ?? new Map<SpaceId, Verdict>();
    this.#verdicts.set(verdict.provider, ofProvider.set(verdict.space, verdict));
  }

  verdicts(): readonly Verdict[] {
    return [...this.#verdicts.values()].flatMap((ofProvider) => [...ofProvider.values()]);
  }

  first(provider: ProviderId, space: SpaceId): FirstVectors | null {
    return this.#firsts.get(provider)?.get(space) ?? null;
  }

  setFirst(provider: ProviderId, space: SpaceId, first: FirstVectors): void {
    const ofProvider = this.#firsts.get(provider) ?? new Map<SpaceId, FirstVectors>();
    this.#firsts.set(provider, ofProvider.set(space, first));
  }

  firstsIn(space: SpaceId): readonly (readonly [ProviderId, FirstVectors])[] {
    return [...this.#firsts].flatMap(([provider, ofProvider]) => {
      const first = ofProvider.get(space);
      return first === undefined ? [] : [[provider, first] as const];
    });
  }
}
