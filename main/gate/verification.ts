import type { ProviderId, SpaceId } from '../domain/ids.ts';
import type { Provider } from '../domain/provider.ts';
import type { RoleId, RoleSettings } from '../domain/roles.ts';
import { type Said, said } from '../domain/said.ts';
import type { Clock } from '../domain/time.ts';
import { type Fingerprint, sameFingerprint } from '../domain/verdict.ts';
import { type Findings, keyOf } from './findings.ts';
import type { GateEvent } from './gate-api.ts';
import { backoffMs, type GateTiming } from './gate-timing.ts';
import type { MeasureOutcome } from './measurement.ts';
import type { Encoder } from './probe-port.ts';
import { failureSaid } from './sentences.ts';
import { type AnchoredSpace, hasAnchor, type Space } from './space.ts';
import type { SpaceBook } from './space-book.ts';
import type { StoreWriter } from './store-writer.ts';
import type { Verdict } from './verdict.ts';
import type { VerificationQueue } from './verification-queue.ts';
import type { Verifier } from './verifier.ts';

export interface VerificationPorts {
  readonly clock: Clock;
  readonly timing: GateTiming;
  readonly verifier: Verifier;
  readonly queue: VerificationQueue;
  readonly spaces: SpaceBook;
  readonly findings: Findings;
  readonly writer: StoreWriter;
  /** Shared with the service, which keeps it. */
  readonly encoders: ReadonlyMap<ProviderId, Encoder>;
  readonly emit: (event: GateEvent) => void;
}

/** A process that changes while it is measured is measured again at once, but not for ever. */
const MOVED_TRIES = 3;

/** Probes can reach it: a verification of anything else would only find that out. */
function isProbeable({ provider }: Encoder): boolean {
  const up = provider.nodeState === 'ready' || provider.nodeState === 'degraded' || provider.nodeState === 'draining';
  return up && provider.nodePulls && provider.reachable && provider.present;
}

/** Has verdicts made when there is reason to, voids them when they lose their ground, and plans the next check. */
export class Verification {
  readonly #ports: VerificationPorts;
  /** Verifications in a row that could not measure, and that met a changing process. */
  readonly #failures = new Map<string, number>();
  readonly #moves = new Map<string, number>();

  constructor(ports: VerificationPorts) {
    this.#ports = ports;
  }

  isActive(provider: ProviderId, space: SpaceId): boolean {
    return this.#ports.queue.isActive(keyOf(provider, space));
  }

  nextCheckInMs(provider: ProviderId, space: SpaceId): number | null {
    return this.#ports.queue.dueInMs(keyOf(provider, space));
  }

  /** A provider appears, for the first time or again: a verdict it has counts only for the same fingerprint. */
  register({ provider }: Encoder): void {
    for (const space of this.#ports.spaces.served(provider.role)) this.#registerIn(provider, space);
  }

  #registerIn(provider: Provider, space: Space): void {
    const verdict = this.#ports.findings.verdict(provider.id, space.id);
    if (verdict !== null && verdict.kind !== 'unverified') {
      const same = verdict.fingerprint !== null && sameFingerprint(verdict.fingerprint, provider.fingerprint);
      if (!same) this.#ports.findings.void(provider, space, said('gate_rechecked_unknown'));
      else if (
        (verdict.kind === 'pass' || verdict.kind === 'pass-reduced') &&
        verdict.minCosine !== null &&
        !(verdict.minCosine > this.#ports.findings.threshold(space))
      ) {
        this.#ports.findings.void(provider, space, said('gate_rechecked_threshold'));
      }
    }
    this.#plan(provider.id, space);
  }

  update(before: Encoder, now: Encoder): void {
    const { provider } = now;
    const changed = !sameFingerprint(before.provider.fingerprint, provider.fingerprint);
    const returned = isProbeable(now) && !isProbeable(before);
    const kindChanged = before.provider.kind !== provider.kind;
    for (const space of this.#ports.spaces.served(provider.role)) {
      const key = keyOf(provider.id, space.id);
      const passed = this.#ports.findings.verdict(provider.id, space.id)?.fingerprint ?? null;
      // A report may lag behind an answer that showed the new process first; then that process has been checked already.
      const isOther = changed && (passed === null || !sameFingerprint(passed, provider.fingerprint));
      if (isOther || kindChanged) {
        this.#ports.findings.void(provider, space, said('gate_rechecked_other'));
        this.#forgetTries(key);
        this.#start(provider.id, space);
      } else if (!isProbeable(now)) this.#ports.queue.cancel(key);
      else if (returned) {
        this.#forgetTries(key);
        this.#plan(provider.id, space);
      } else if (!this.#ports.queue.has(key)) this.#plan(provider.id, space);
    }
  }

  /** The provider is gone from the catalogue. What it had stays, for when it comes back. */
  leave(id: ProviderId): void {
    for (const { id: space } of this.#ports.spaces.all()) this.#ports.queue.cancel(keyOf(id, space));
  }

  spaceCame(space: Space): void {
    for (const { provider } of this.#ports.encoders.values()) {
      if (provider.role === space.role && space.retiredAtMs === null) this.#registerIn(provider, space);
    }
  }

  spaceLeft(space: SpaceId): void {
    for (const id of this.#ports.encoders.keys()) this.#ports.queue.cancel(keyOf(id, space));
  }

  roleChanged(role: RoleId, before: RoleSettings, now: RoleSettings): void {
    const raised = (now.threshold ?? 0) > (before.threshold ?? 0);
    if (before.policy !== now.policy || raised) {
      const why = said(raised ? 'gate_rechecked_threshold' : 'gate_rechecked_policy');
      for (const { provider } of this.#ports.encoders.values()) {
        if (provider.role === role) this.again(provider.id, why);
      }
    }
    const space = this.#ports.spaces.current(role);
    const declared = [...now.cutDimensions].sort((a, b) => b - a);
    if (space !== null && String(declared) !== String([...space.cutDimensions].sort((a, b) => b - a))) {
      this.#declareWidths(space, declared);
    }
  }

  /** The verdicts at full width stand meanwhile: a further width takes nothing from them. */
  #declareWidths(space: Space, cutDimensions: readonly number[]): void {
    const { spaces, writer, encoders, emit } = this.#ports;
    const widths = cutDimensions.filter((width) => width < space.width);
    if (String(widths) === String(space.cutDimensions)) return;
    writer.write(`widths ${space.id}`, async () => {
      const known = spaces.get(space.id);
      if (known === null) return;
      const changed = { ...known, cutDimensions: widths };
      await spaces.save(changed, false);
      emit({ type: 'space', space: changed, change: 'changed' });
      for (const { provider } of encoders.values()) if (provider.role === space.role) this.#start(provider.id, changed);
    });
  }

  /** Voids and starts anew in every space; false when the provider cannot be probed now. */
  again(id: ProviderId, why: Said): boolean {
    const encoder = this.#ports.encoders.get(id);
    if (encoder === undefined) return false;
    this.voidAll(id, why);
    return isProbeable(encoder);
  }

  voidAll(id: ProviderId, why: Said): void {
    const encoder = this.#ports.encoders.get(id);
    if (encoder === undefined) return;
    for (const space of this.#ports.spaces.served(encoder.provider.role)) {
      this.#ports.findings.void(encoder.provider, space, why);
      this.#forgetTries(keyOf(id, space.id));
      this.#start(id, space);
    }
  }

  #forgetTries(key: string): void {
    this.#failures.delete(key);
    this.#moves.delete(key);
  }

  /** Starts what is due: a standing pass at its next re-run, anything else now. */
  #plan(id: ProviderId, space: Space): void {
    const { clock, timing } = this.#ports;
    const verdict = this.#ports.findings.verdict(id, space.id);
    if (verdict === null || !this.#ports.findings.admitted(id, space.id)) {
      this.#start(id, space);
      return;
    }
    // The wall clock may have been set back: an age below zero is no reason to wait longer than one interval.
    const age = Math.max(0, clock.wallMs() - verdict.checkedAtMs);
    this.#start(id, space, Math.max(0, timing.reRunMs - age));
  }

  #start(id: ProviderId, { id: space }: Space, delayMs = 0): void {
    const encoder = this.#ports.encoders.get(id);
    const key = keyOf(id, space);
    if (encoder === undefined || !isProbeable(encoder)) {
      this.#ports.queue.cancel(key);
      return;
    }
    const job = (signal: AbortSignal): Promise<void> => this.#check(id, space, signal);
    this.#ports.queue.schedule(key, encoder.provider.slotPool, job, delayMs);
  }

  async #check(id: ProviderId, spaceId: SpaceId, signal: AbortSignal): Promise<void> {
    const { findings } = this.#ports;
    const encoder = this.#ports.encoders.get(id);
    const space = this.#ports.spaces.get(spaceId);
    if (encoder === undefined || space === null || !hasAnchor(space) || space.retiredAtMs !== null) return;
    const { provider } = encoder;
    if (provider.kind === 'cloud' && provider.fingerprint.pin === null) {
      const { fingerprint } = provider;
      this.#conclude(
        encoder,
        space,
        findings.bare(provider, space, 'no-upstream-pin', said('gate_no_pin'), fingerprint),
      );
      return;
    }
    const outcome = await this.#ports.verifier.measure(provider, space.probes, {
      normalise: space.normalise,
      width: space.width,
      cutWidths: space.cutDimensions,
      signal,
    });
    if (signal.aborted) return;
    this.#conclusion(encoder, space, outcome);
  }

  #conclusion(encoder: Encoder, space: AnchoredSpace, outcome: MeasureOutcome): void {
    const { provider } = encoder;
    const { findings } = this.#ports;
    switch (outcome.outcome) {
      case 'aborted':
        return;
      case 'measured':
        this.#conclude(encoder, space, findings.compare(provider, space, outcome.measurement));
        return;
      case 'width':
        this.#conclude(encoder, space, findings.otherWidth(provider, space, outcome.width, outcome.fingerprint));
        return;
      case 'short':
        this.#unmeasured(
          encoder,
          space,
          said('gate_short', { limit: space.limitTokens, probe: outcome.probe }),
          outcome.fingerprint ?? provider.fingerprint,
        );
        return;
      case 'moved':
        this.#moved(encoder, space);
        return;
      case 'failed':
        this.#unmeasured(encoder, space, failureSaid(outcome.reason), outcome.fingerprint);
    }
  }

  #moved(encoder: Encoder, space: AnchoredSpace): void {
    const key = keyOf(encoder.provider.id, space.id);
    const moves = (this.#moves.get(key) ?? 0) + 1;
    this.#ports.findings.void(encoder.provider, space, said('gate_rechecked_changed'));
    if (moves < MOVED_TRIES) {
      this.#moves.set(key, moves);
      this.#start(encoder.provider.id, space);
      return;
    }
    this.#moves.delete(key);
    this.#unmeasured(encoder, space, failureSaid('moved'), null);
  }

  /** Nothing could be measured. A pass that stands is kept for a few tries: it was given to this very process. */
  #unmeasured(encoder: Encoder, space: AnchoredSpace, why: Said, fingerprint: Fingerprint | null): void {
    const { id } = encoder.provider;
    const key = keyOf(id, space.id);
    const failures = (this.#failures.get(key) ?? 0) + 1;
    this.#failures.set(key, failures);
    const before = this.#ports.findings.verdict(id, space.id);
    const isSame =
      fingerprint === null || (before?.fingerprint != null && sameFingerprint(before.fingerprint, fingerprint));
    const stands =
      this.#ports.findings.admitted(id, space.id) && isSame && failures <= this.#ports.timing.toleratedFailures;
    if (!stands) {
      this.#ports.findings.keep(this.#ports.findings.bare(encoder.provider, space, 'probe-failed', why, fingerprint));
    }
    this.#start(id, space, backoffMs(failures, this.#ports.timing));
  }

  #conclude(encoder: Encoder, space: AnchoredSpace, verdict: Verdict): void {
    const { id } = encoder.provider;
    this.#forgetTries(keyOf(id, space.id));
    this.#ports.findings.conclude(verdict, space);
    this.#start(id, space, this.#ports.timing.reRunMs);
  }
}
