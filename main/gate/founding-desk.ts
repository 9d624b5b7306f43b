import { SwitchyardError } from '../domain/errors.ts';
import type { ProviderId, SpaceId } from '../domain/ids.ts';
import { ROLES, type RoleId, type RoleSettings } from '../domain/roles.ts';
import { type Said, said, saidOf, together } from '../domain/said.ts';
import type { Clock, Random } from '../domain/time.ts';
import { type Fingerprint, sameFingerprint } from '../domain/verdict.ts';
import type { Findings } from './findings.ts';
import { cosineTo, describeCandidate, factsOf, founderVerdict } from './founded-space.ts';
import { chooseFounder, type FoundingCandidate, foundingCandidates, isPinned } from './founding.ts';
import { measureFounder } from './founding-run.ts';
import type { FoundRequest, FoundResult, GateEvent, RoleSpace } from './gate-api.ts';
import { backoffMs, type GateTiming } from './gate-timing.ts';
import type { Encoder } from './probe-port.ts';
import type { ProbeSet } from './probes.ts';
import { type AnchoredSpace, hasAnchor, newSpaceId, type Space } from './space.ts';
import type { SpaceBook } from './space-book.ts';
import type { RoleChange } from './store-port.ts';
import type { Verification } from './verification.ts';
import type { VerificationQueue } from './verification-queue.ts';
import type { Verifier } from './verifier.ts';

export interface FoundingPorts {
  readonly clock: Clock;
  readonly random: Random;
  readonly timing: GateTiming;
  readonly verifier: Verifier;
  readonly probeSet: ProbeSet;
  readonly queue: VerificationQueue;
  readonly spaces: SpaceBook;
  readonly findings: Findings;
  readonly verification: Verification;
  /** Shared with the service, which keeps it. */
  readonly encoders: ReadonlyMap<ProviderId, Encoder>;
  readonly roles: (role: RoleId) => RoleSettings | null;
  readonly emit: (event: GateEvent) => void;
}

/** A founding that waits for its time or is measured. */
interface Planned {
  readonly founder: ProviderId;
  readonly fingerprint: Fingerprint;
  readonly cancelTimer: () => void;
}

interface Underway {
  readonly founder: ProviderId;
  readonly result: Promise<FoundResult>;
  fail(error: SwitchyardError): void;
}

/** A founding by itself that was refused; the same process is tried again with growing patience. */
interface Failed {
  readonly founder: ProviderId;
  readonly fingerprint: Fingerprint;
  readonly count: number;
  readonly why: Said;
}

/** Founds spaces: by itself where the choice is clear, else when an operator asks. */
export class FoundingDesk {
  readonly #ports: FoundingPorts;
  readonly #planned = new Map<RoleId, Planned>();
  readonly #underway = new Map<RoleId, Underway>();
  readonly #failed = new Map<RoleId, Failed>();
  readonly #lastState = new Map<RoleId, RoleSpace['state']>();
  #state: 'new' | 'running' | 'stopped' = 'new';
  #isStarting = false;
  #cancelGrace: () => void = () => {};

  constructor(ports: FoundingPorts) {
    this.#ports = ports;
  }

  start(): void {
    const { clock, timing } = this.#ports;
    this.#state = 'running';
    this.#isStarting = true;
    this.#cancelGrace = clock.after(timing.startupGraceMs, () => {
      this.#isStarting = false;
      for (const role of this.#lastState.keys()) this.#announce(role);
    });
  }

  stop(): void {
    this.#state = 'stopped';
    this.#cancelGrace();
    for (const { cancelTimer } of this.#planned.values()) cancelTimer();
    this.#planned.clear();
    for (const { fail } of this.#underway.values()) fail(new SwitchyardError('shutting_down'));
  }

  /** @param wanted settings that the role would have; null: those it has */
  candidates(role: RoleId, wanted: RoleSettings | null = null): readonly FoundingCandidate[] {
    const settings = wanted ?? this.#ports.roles(role);
    if (settings === null) return [];
    const all = foundingCandidates(role, settings, [...this.#ports.encoders.values()]);
    // Encoders of now are those of the present pins; under others some of them are gone.
    return wanted === null
      ? all
      : all.filter(({ encoder }) => encoder.provider.kind === 'local' || isPinned(encoder, wanted));
  }

  roleSpace(role: RoleId, isNew = false): RoleSpace {
    const space = this.#ports.spaces.current(role);
    if (space !== null) return hasAnchor(space) ? { state: 'founded', space } : { state: 'anchor-lost', space };
    if (isNew) return { state: 'founding' };
    const failed = this.#failed.get(role);
    if (this.#underway.has(role) && failed === undefined) return { state: 'founding' };
    if (this.#planned.has(role) && failed === undefined) return { state: 'founding' };
    const candidates = this.candidates(role);
    // Machines are still coming up: an answer now would be about a fleet that is not complete.
    const isWanted = this.#ports.roles(role)?.enabled === true && !this.#hadSpace(role);
    if (this.#isStarting && candidates.length === 0 && isWanted) return { state: 'founding' };
    return { state: 'unfounded', candidates, reason: this.#whyUnfounded(role, candidates, failed?.why ?? null) };
  }

  #whyUnfounded(role: RoleId, candidates: readonly FoundingCandidate[], failure: Said | null): Said {
    const settings = this.#ports.roles(role);
    if (failure !== null) return failure;
    if (settings === null) return said('found_no_settings');
    if (this.#hadSpace(role)) return said('found_was_retired');
    const choice = chooseFounder(role, settings, candidates);
    return choice.choice === 'ask' ? choice.reason : said('found_not_begun');
  }

  /** A role that once had a space is not founded again by itself: that would be a new index nobody asked for. */
  #hadSpace(role: RoleId): boolean {
    return this.#ports.spaces.all().some((space) => space.role === role);
  }

  /** Looks whether a role can be founded by itself, whenever encoders or settings changed. */
  consider(role: RoleId): void {
    if (this.#state !== 'running') return;
    this.#plan(role);
    this.#announce(role);
  }

  #plan(role: RoleId): void {
    const { timing } = this.#ports;
    const settings = this.#ports.roles(role);
    const planned = this.#planned.get(role);
    const choice =
      settings === null || this.#hadSpace(role) || this.#underway.has(role)
        ? null
        : chooseFounder(role, settings, this.candidates(role));
    if (choice?.choice !== 'found') {
      planned?.cancelTimer();
      this.#planned.delete(role);
      return;
    }
    const founder = choice.candidate.provider;
    const { fingerprint } = choice.candidate.encoder.provider;
    if (planned?.founder === founder && sameFingerprint(planned.fingerprint, fingerprint)) return;
    planned?.cancelTimer();
    const failed = this.#failed.get(role);
    const isRepeat = failed?.founder === founder && sameFingerprint(failed.fingerprint, fingerprint);
    if (!isRepeat) this.#failed.delete(role);
    const delayMs = isRepeat
      ? backoffMs(failed.count, timing)
      : choice.trial
        ? timing.trialDelayMs
        : timing.foundingDelayMs;
    const cancelTimer = this.#ports.clock.after(delayMs, () => {
      this.#planned.delete(role);
      this.#foundByItself(role, choice.candidate.encoder.provider.id);
    });
    this.#planned.set(role, { founder, fingerprint, cancelTimer });
  }

  #foundByItself(role: RoleId, founder: ProviderId): void {
    const encoder = this.#ports.encoders.get(founder);
    if (encoder === undefined || this.#underway.has(role)) return;
    this.#begin(role, encoder, null, null).result.then(
      () => this.#failed.delete(role),
      (error: unknown) => {
        // Replaced by an operator's founding, or stopped: no failure of this encoder.
        if (this.#underway.has(role) || this.#state !== 'running') return;
        const why = error instanceof SwitchyardError ? saidOf(error) : said('found_not_stored');
        const count = (this.#failed.get(role)?.count ?? 0) + 1;
        this.#failed.set(role, { founder, fingerprint: encoder.provider.fingerprint, count, why });
        this.consider(role);
      },
    );
  }

  /** An operator's founding. It replaces one by itself that is under way. */
  async found({ role, founder, width, confirm, change = null }: FoundRequest): Promise<FoundResult> {
    const settings = change?.settings ?? this.#ports.roles(role);
    if (this.#state !== 'running' || settings === null) throw new SwitchyardError('shutting_down');
    if (ROLES[role].task !== 'embed') throw new SwitchyardError('invalid_request', `The role ${role} has no vectors.`);
    const encoder = this.#chosen(role, settings, founder, change?.settings ?? null);
    const current = this.#ports.spaces.current(role);
    if (current !== null && !confirm) {
      throw new SwitchyardError('confirmation_required', undefined, {
        extra: { space: current.id, minCosine: this.#knownCosine(encoder.provider.id, current) },
      });
    }
    this.#planned.get(role)?.cancelTimer();
    this.#planned.delete(role);
    this.#underway.get(role)?.fail(new SwitchyardError('founder_refused', said('found_replaced')));
    const { result } = this.#begin(role, encoder, width, change);
    this.#announce(role);
    const founded = await result;
    this.#failed.delete(role);
    return founded;
  }

  #chosen(role: RoleId, settings: RoleSettings, founder: ProviderId | null, wanted: RoleSettings | null): Encoder {
    const candidates = this.candidates(role, wanted);
    if (founder === null) {
      const choice = chooseFounder(role, settings, candidates);
      if (choice.choice === 'found') return choice.candidate.encoder;
      throw new SwitchyardError('space_unfounded', choice.reason, {
        extra: { candidates: candidates.map(describeCandidate) },
      });
    }
    const known = this.#ports.encoders.get(founder);
    if (known === undefined) throw new SwitchyardError('provider_not_found');
    const candidate = candidates.find(({ provider }) => provider === founder);
    if (candidate === undefined) {
      throw new SwitchyardError('founder_refused', said('found_not_admitted'));
    }
    if (!candidate.ready) {
      const why = candidate.reason ?? said('hindered_unready');
      throw new SwitchyardError('founder_refused', together(said('cannot_found_now'), why));
    }
    return candidate.encoder;
  }

  #knownCosine(provider: ProviderId, space: Space): number | null {
    return this.#ports.findings.verdict(provider, space.id)?.minCosine ?? null;
  }

  #begin(role: RoleId, encoder: Encoder, width: number | null, change: RoleChange | null): Underway {
    const { queue } = this.#ports;
    const key = `found ${role}`;
    const { promise: result, resolve, reject } = Promise.withResolvers<FoundResult>();
    const close = (): void => {
      if (this.#underway.get(role) === underway) this.#underway.delete(role);
    };
    const underway: Underway = {
      founder: encoder.provider.id,
      result,
      fail: (error) => {
        queue.cancel(key);
        close();
        reject(error);
      },
    };
    this.#underway.set(role, underway);
    const job = async (signal: AbortSignal): Promise<void> => {
      try {
        const founded = await this.#measureAndKeep(role, encoder, width, change, signal);
        if (founded === null) return;
        close();
        resolve(founded);
        this.#announce(role);
      } catch (error) {
        close();
        reject(error);
      }
    };
    queue.schedule(key, encoder.provider.slotPool, job);
    return underway;
  }

  async #measureAndKeep(
    role: RoleId,
    encoder: Encoder,
    width: number | null,
    change: RoleChange | null,
    signal: AbortSignal,
  ): Promise<FoundResult | null> {
    const { clock, random, spaces, findings, verification, verifier, probeSet, emit } = this.#ports;
    const settings = change?.settings ?? this.#ports.roles(role);
    if (settings === null) throw new SwitchyardError('shutting_down');
    const founded = await measureFounder(verifier, encoder, probeSet, settings, width, signal);
    if (founded === null || signal.aborted) return null;
    const previous = spaces.current(role);
    const taken = new Set<SpaceId>(spaces.all().map(({ id }) => id));
    const space: AnchoredSpace = {
      ...factsOf(newSpaceId(role, random, taken), role, encoder, founded, settings, clock.wallMs()),
      anchor: founded.anchor.values,
    };
    await spaces.save(space, true, change);
    const verdict = founderVerdict(encoder.provider.id, space, founded, clock.wallMs());
    findings.foundedBy(verdict, founded.anchor);
    emit({ type: 'space', space, change: 'founded' });
    verification.spaceCame(space);
    const cosineToPrevious = previous === null ? null : cosineTo(previous, space, founded.anchor);
    return { space, verdict, cosineToPrevious };
  }

  #announce(role: RoleId): void {
    const { state } = this.roleSpace(role);
    if (this.#lastState.get(role) === state) return;
    this.#lastState.set(role, state);
    this.#ports.emit({ type: 'founding', role, state });
  }
}
