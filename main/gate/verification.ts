import type { ProviderId, SpaceId } from '../domain/ids.ts';
import type { Provider } from '../domain/provider.ts';
import type { RoleId, RoleSettings } from '../domain/roles.ts';
import type { Clock } from '../domain/time.ts';
import { type Fingerprint, sameFingerprint, type VerdictKind } from '../domain/verdict.ts';
import type { Digest } from './bytes.ts';
import { type Matrix, matrix } from './compare.ts';
import { evaluate } from './evaluate.ts';
import type { Gate, GateEvent } from './gate-api.ts';
import { backoffMs, type GateTiming } from './gate-timing.ts';
import type { Measurement, MeasureOutcome } from './measurement.ts';
import { type PeerVectors, pinHolds, referenceFor, upstreamOf } from './peers.ts';
import { admits } from './policy-change.ts';
import type { Encoder } from './probe-port.ts';
import { anchorTexts } from './probes.ts';
import {
  failureSentence,
  NO_PIN_SENTENCE,
  otherUpstreamSentence,
  sentenceOf,
  shortSentence,
  widthSentence,
} from './sentences.ts';
import { type AnchoredSpace, effectiveThreshold, hasAnchor, type Space } from './space.ts';
import { restoreMatrix, type SpaceBook, storeMatrix } from './space-book.ts';
import type { GateSnapshot, GateStore } from './store-port.ts';
import type { StoreWriter } from './store-writer.ts';
import { CHECKS, type CheckFinding, type Verdict } from './verdict.ts';
import { VerdictBook } from './verdict-book.ts';
import type { VerificationQueue } from './verification-queue.ts';
import type { Verifier } from './verifier.ts';

export interface VerificationPorts {
  readonly clock: Clock;
  readonly timing: GateTiming;
  readonly verifier: Verifier;
  readonly queue: VerificationQueue;
  readonly spaces: SpaceBook;
  readonly writer: StoreWriter;
  readonly store: GateStore;
  readonly digest: Digest;
  /** Shared with the service, which keeps it. */
  readonly encoders: ReadonlyMap<ProviderId, Encoder>;
  readonly roles: (role: RoleId) => RoleSettings | null;
  readonly emit: (event: GateEvent) => void;
  readonly affected: Gate['affected'];
  readonly onVoid: (provider: ProviderId, space: SpaceId) => void;
}

/** A process that changes while it is measured is measured again at once, but not for ever. */
const MOVED_TRIES = 3;

/** Probes can reach it: a verification of anything else would only find that out. */
function isProbeable({ provider }: Encoder): boolean {
  const up = provider.nodeState === 'ready' || provider.nodeState === 'degraded' || provider.nodeState === 'draining';
  return up && provider.nodePulls && provider.reachable && provider.present;
}

const keyOf = (provider: ProviderId, space: SpaceId): string => `${provider} ${space}`;

/** Keeps verdicts: voids them when they lose their ground, has them made, and draws the consequences. */
export class Verification {
  readonly #ports: VerificationPorts;
  readonly #book = new VerdictBook();
  /** Verifications in a row that could not measure, and that met a changing process. */
  readonly #failures = new Map<string, number>();
  readonly #moves = new Map<string, number>();

  constructor(ports: VerificationPorts) {
    this.#ports = ports;
  }

  load({ verdicts, firsts }: GateSnapshot): void {
    const { spaces, digest } = this.#ports;
    for (const verdict of verdicts) if (spaces.get(verdict.space) !== null) this.#book.setVerdict(verdict);
    for (const { provider, space: id, vectors, fingerprint } of firsts) {
      const space = spaces.get(id);
      if (space === null) continue;
      const count = anchorTexts(space.probes).length;
      const values = restoreMatrix(vectors, count * space.width, digest);
      if (values !== null)
        this.#book.setFirst(provider, id, { vectors: matrix(values, count, space.width), fingerprint });
    }
  }

  kind(provider: ProviderId, space: SpaceId): VerdictKind {
    return this.#book.verdict(provider, space)?.kind ?? 'unverified';
  }

  verdict(provider: ProviderId, space: SpaceId): Verdict | null {
    return this.#book.verdict(provider, space);
  }

  verdicts(): readonly Verdict[] {
    return this.#book.verdicts();
  }

  /** A loaded verdict says nothing of a provider that has not been seen with its fingerprint since the start. */
  admitted(provider: ProviderId, id: SpaceId): boolean {
    const space = this.#ports.spaces.get(id);
    if (space === null || space.retiredAtMs !== null || !hasAnchor(space)) return false;
    return this.#ports.encoders.has(provider) && admits(this.kind(provider, id), space.regime);
  }

  isActive(provider: ProviderId, space: SpaceId): boolean {
    return this.#ports.queue.isActive(keyOf(provider, space));
  }

  nextCheckInMs(provider: ProviderId, space: SpaceId): number | null {
    return this.#ports.queue.dueInMs(keyOf(provider, space));
  }

  threshold(space: Space): number {
    return effectiveThreshold(space, this.#ports.roles(space.role)?.threshold ?? null);
  }

  /** A provider appears, for the first time or again: a verdict it has counts only for the same fingerprint. */
  register({ provider }: Encoder): void {
    for (const space of this.#ports.spaces.served(provider.role)) this.#registerIn(provider, space);
  }

  #registerIn(provider: Provider, space: Space): void {
    const verdict = this.#book.verdict(provider.id, space.id);
    if (verdict !== null && verdict.kind !== 'unverified') {
      const same = verdict.fingerprint !== null && sameFingerprint(verdict.fingerprint, provider.fingerprint);
      if (!same) this.#void(provider, space, 'It is not the process that was checked. It is being checked again.');
      else if (verdict.minCosine !== null && !(verdict.minCosine > this.threshold(space))) {
        this.#void(provider, space, 'The threshold of its role was raised. It is being checked again.');
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
      const passed = this.#book.verdict(provider.id, space.id)?.fingerprint ?? null;
      // A report may lag behind an answer that showed the new process first; then that process has been checked already.
      const isOther = changed && (passed === null || !sameFingerprint(passed, provider.fingerprint));
      if (isOther || kindChanged) {
        this.#void(provider, space, 'Its process, version or model changed. It is being checked again.');
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
      const why = raised ? 'The threshold of its role was raised.' : 'The policy of its role changed.';
      for (const { provider } of this.#ports.encoders.values()) {
        if (provider.role === role) this.again(provider.id, `${why} It is being checked again.`);
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
  again(id: ProviderId, sentence: string): boolean {
    const encoder = this.#ports.encoders.get(id);
    if (encoder === undefined) return false;
    this.voidAll(id, sentence);
    return isProbeable(encoder);
  }

  voidAll(id: ProviderId, sentence: string): void {
    const encoder = this.#ports.encoders.get(id);
    if (encoder === undefined) return;
    for (const space of this.#ports.spaces.served(encoder.provider.role)) {
      this.#void(encoder.provider, space, sentence);
      this.#forgetTries(keyOf(id, space.id));
      this.#start(id, space);
    }
  }

  #forgetTries(key: string): void {
    this.#failures.delete(key);
    this.#moves.delete(key);
  }

  /** At once and before anything else happens: what is in flight finds no pass when it comes back. */
  #void(provider: Provider, space: Space, sentence: string): void {
    this.#ports.onVoid(provider.id, space.id);
    const before = this.#book.verdict(provider.id, space.id);
    if (before === null || before.kind === 'unverified') return;
    this.#keep(this.#bare(provider, space, 'unverified', sentence, before.fingerprint));
  }

  #keep(verdict: Verdict): void {
    this.#book.setVerdict(verdict);
    const key = keyOf(verdict.provider, verdict.space);
    this.#ports.writer.write(`verdict ${key}`, () => this.#ports.store.saveVerdict(verdict));
    this.#ports.emit({ type: 'verdict', verdict });
  }

  /** Starts what is due: a standing pass at its next re-run, anything else now. */
  #plan(id: ProviderId, space: Space): void {
    const { clock, timing } = this.#ports;
    const verdict = this.#book.verdict(id, space.id);
    if (verdict === null || !this.admitted(id, space.id)) {
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
    const encoder = this.#ports.encoders.get(id);
    const space = this.#ports.spaces.get(spaceId);
    if (encoder === undefined || space === null || !hasAnchor(space) || space.retiredAtMs !== null) return;
    const { provider } = encoder;
    if (provider.kind === 'cloud' && provider.fingerprint.pin === null) {
      this.#conclude(encoder, space, 'no-upstream-pin', NO_PIN_SENTENCE, provider.fingerprint);
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
    const { fingerprint } = encoder.provider;
    switch (outcome.outcome) {
      case 'aborted':
        return;
      case 'measured':
        this.#compare(encoder, space, outcome.measurement);
        return;
      case 'width':
        this.#conclude(
          encoder,
          space,
          'dimension-mismatch',
          widthSentence(outcome.width, space.width),
          outcome.fingerprint,
        );
        return;
      case 'short':
        this.#unmeasured(
          encoder,
          space,
          shortSentence(space.limitTokens, outcome.probe),
          outcome.fingerprint ?? fingerprint,
        );
        return;
      case 'moved':
        this.#moved(encoder, space);
        return;
      case 'failed':
        this.#unmeasured(encoder, space, failureSentence(outcome.reason), outcome.fingerprint);
    }
  }

  #moved(encoder: Encoder, space: AnchoredSpace): void {
    const key = keyOf(encoder.provider.id, space.id);
    const moves = (this.#moves.get(key) ?? 0) + 1;
    this.#void(encoder.provider, space, 'Its process changed while it was checked. It is being checked again.');
    if (moves < MOVED_TRIES) {
      this.#moves.set(key, moves);
      this.#start(encoder.provider.id, space);
      return;
    }
    this.#moves.delete(key);
    this.#unmeasured(encoder, space, failureSentence('moved'), null);
  }

  /** Nothing could be measured. A pass that stands is kept for a few tries: it was given to this very process. */
  #unmeasured(encoder: Encoder, space: AnchoredSpace, sentence: string, fingerprint: Fingerprint | null): void {
    const { id } = encoder.provider;
    const key = keyOf(id, space.id);
    const failures = (this.#failures.get(key) ?? 0) + 1;
    this.#failures.set(key, failures);
    const before = this.#book.verdict(id, space.id);
    const isSame =
      fingerprint === null || (before?.fingerprint != null && sameFingerprint(before.fingerprint, fingerprint));
    const stands = this.admitted(id, space.id) && isSame && failures <= this.#ports.timing.toleratedFailures;
    if (!stands) this.#keep(this.#bare(encoder.provider, space, 'probe-failed', sentence, fingerprint));
    this.#start(id, space, backoffMs(failures, this.#ports.timing));
  }

  #compare(encoder: Encoder, space: AnchoredSpace, measurement: Measurement): void {
    const { provider } = encoder;
    const { fingerprint, singles } = measurement;
    if (provider.kind === 'cloud' && !pinHolds(fingerprint)) {
      this.#conclude(encoder, space, 'no-upstream-pin', otherUpstreamSentence(), fingerprint);
      return;
    }
    const first = this.#book.first(provider.id, space.id);
    const sameProcess = first?.fingerprint != null && sameFingerprint(first.fingerprint, fingerprint);
    const reference = referenceFor(space, provider.kind, fingerprint, this.#peers(provider.id, space));
    const found = evaluate(measurement, reference, {
      threshold: this.threshold(space),
      normalise: space.normalise,
      probes: anchorTexts(space.probes),
      equalLength: space.probes.equalLength.length,
      first: first === null ? null : { vectors: first.vectors, sameProcess },
    });
    const { kind, checks, minCosine, meanCosine, centredMin, worst, cutWidths } = found;
    if (first === null && admits(kind, space.regime)) this.rememberFirst(provider.id, space.id, singles, fingerprint);
    const figures = { checks, minCosine, meanCosine, centredMin, worst, cutWidths };
    this.#conclude(encoder, space, kind, sentenceOf(found), fingerprint, figures);
  }

  #peers(own: ProviderId, space: Space): readonly PeerVectors[] {
    return this.#book.firstsIn(space.id).flatMap(([id, { vectors, fingerprint }]) => {
      const kind = this.#ports.encoders.get(id)?.provider.kind;
      if (id === own || kind !== 'cloud' || fingerprint === null) return [];
      return [{ upstream: upstreamOf(fingerprint), verdict: this.kind(id, space.id), vectors }];
    });
  }

  rememberFirst(provider: ProviderId, space: SpaceId, vectors: Matrix, fingerprint: Fingerprint): void {
    const { clock, digest, store, writer } = this.#ports;
    this.#book.setFirst(provider, space, { vectors, fingerprint });
    const stored = {
      provider,
      space,
      vectors: storeMatrix(vectors.values, digest),
      takenAtMs: clock.wallMs(),
      fingerprint,
    };
    writer.write(`first ${keyOf(provider, space)}`, () => store.saveFirst(stored));
  }

  /** The founder's own verdict, from the measurement that founded the space. */
  foundedBy(encoder: Encoder, space: AnchoredSpace, verdict: Verdict, anchor: Matrix): void {
    if (verdict.fingerprint !== null) this.rememberFirst(encoder.provider.id, space.id, anchor, verdict.fingerprint);
    this.#keep(verdict);
    this.#start(encoder.provider.id, space, this.#ports.timing.reRunMs);
  }

  #conclude(
    encoder: Encoder,
    space: AnchoredSpace,
    kind: VerdictKind,
    sentence: string,
    fingerprint: Fingerprint,
    figures: Partial<Verdict> = {},
  ): void {
    const { id } = encoder.provider;
    this.#forgetTries(keyOf(id, space.id));
    const before = this.#book.verdict(id, space.id);
    const verdict = { ...this.#bare(encoder.provider, space, kind, sentence, fingerprint), ...figures };
    this.#keep(verdict);
    this.#reportDrift(before, verdict, space);
    this.#start(id, space, this.#ports.timing.reRunMs);
  }

  /** Rows are in doubt when the process that failed is the one that had passed: it changed at some time in between. */
  #reportDrift(before: Verdict | null, verdict: Verdict, space: Space): void {
    if (admits(verdict.kind, space.regime) || before === null || before.lastGoodAtMs === null) return;
    if (before.lastGoodFingerprint === null || verdict.fingerprint === null) return;
    if (!sameFingerprint(before.lastGoodFingerprint, verdict.fingerprint)) return;
    const sinceMs = before.lastGoodAtMs;
    const { affected, emit } = this.#ports;
    affected(verdict.provider).then(
      ({ ranges, rows }) => emit({ type: 'drift', verdict, sinceMs, ranges, rows }),
      // The store is away: the finding is said without its rows, which can be asked for later.
      () => emit({ type: 'drift', verdict, sinceMs, ranges: [], rows: 0 }),
    );
  }

  #bare(
    provider: Provider,
    space: Space,
    kind: VerdictKind,
    sentence: string,
    fingerprint: Fingerprint | null,
  ): Verdict {
    const nowMs = this.#ports.clock.wallMs();
    const good = admits(kind, space.regime);
    const before = this.#book.verdict(provider.id, space.id);
    return {
      provider: provider.id,
      space: space.id,
      regime: space.regime,
      kind,
      sentence,
      checks: notRun(kind === 'dimension-mismatch' ? 'width' : null),
      minCosine: null,
      meanCosine: null,
      centredMin: null,
      worst: null,
      cutWidths: [],
      fingerprint,
      checkedAtMs: nowMs,
      lastGoodAtMs: good ? nowMs : (before?.lastGoodAtMs ?? null),
      lastGoodFingerprint: good ? fingerprint : (before?.lastGoodFingerprint ?? null),
    };
  }
}

/** The list of checks when an earlier finding made them pointless. */
function notRun(failed: 'width' | null): readonly CheckFinding[] {
  return CHECKS.map((check) => ({
    check,
    state: check === failed ? 'fail' : 'not-run',
    figure: null,
    threshold: null,
  }));
}
