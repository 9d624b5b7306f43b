import type { ProviderId, SpaceId } from '../domain/ids.ts';
import type { Provider } from '../domain/provider.ts';
import type { RoleId, RoleSettings } from '../domain/roles.ts';
import { type Said, said, told } from '../domain/said.ts';
import type { Clock } from '../domain/time.ts';
import { type Fingerprint, sameFingerprint, type VerdictKind } from '../domain/verdict.ts';
import type { Digest } from './bytes.ts';
import { type Matrix, matrix } from './compare.ts';
import { evaluate, type Rules } from './evaluate.ts';
import type { Gate, GateEvent } from './gate-api.ts';
import type { Measurement } from './measurement.ts';
import { anchorMatrix, type PeerVectors, pinHolds, referenceFor, upstreamOf } from './peers.ts';
import { admits } from './policy-change.ts';
import type { Encoder } from './probe-port.ts';
import { anchorTexts } from './probes.ts';
import { sayingOf } from './sentences.ts';
import { type AnchoredSpace, effectiveThreshold, hasAnchor, type Space } from './space.ts';
import { restoreMatrix, type SpaceBook, storeMatrix } from './space-book.ts';
import type { GateSnapshot, GateStore } from './store-port.ts';
import type { StoreWriter } from './store-writer.ts';
import { CHECKS, type CheckFinding, foundBy, type Verdict } from './verdict.ts';
import { VerdictBook } from './verdict-book.ts';

export interface FindingsPorts {
  readonly clock: Clock;
  readonly spaces: SpaceBook;
  readonly writer: StoreWriter;
  readonly store: GateStore;
  readonly digest: Digest;
  /** Shared with the service, which keeps it. */
  readonly encoders: ReadonlyMap<ProviderId, Encoder>;
  readonly roles: (role: RoleId) => RoleSettings | null;
  readonly emit: (event: GateEvent) => void;
  readonly affected: Gate['affected'];
}

export const keyOf = (provider: ProviderId, space: SpaceId): string => `${provider} ${space}`;

/** What has been found, what that admits, and how a verdict follows from a measurement. */
export class Findings {
  readonly #ports: FindingsPorts;
  readonly #book = new VerdictBook();

  constructor(ports: FindingsPorts) {
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
      if (values === null) continue;
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

  threshold(space: Space): number {
    return effectiveThreshold(space, this.#ports.roles(space.role)?.threshold ?? null);
  }

  /** At once and before anything else happens: what is in flight finds no pass when it comes back. */
  void(provider: Provider, space: Space, why: Said): void {
    const before = this.#book.verdict(provider.id, space.id);
    if (before === null || before.kind === 'unverified') return;
    this.keep(this.bare(provider, space, 'unverified', why, before.fingerprint));
  }

  keep(verdict: Verdict): void {
    this.#book.setVerdict(verdict);
    const key = keyOf(verdict.provider, verdict.space);
    this.#ports.writer.write(`verdict ${key}`, () => this.#ports.store.saveVerdict(verdict));
    this.#ports.emit({ type: 'verdict', verdict });
  }

  /** A check has ended: its verdict replaces the one before, and rows are reported when a process that had passed fails. */
  conclude(verdict: Verdict, space: Space): void {
    const before = this.#book.verdict(verdict.provider, verdict.space);
    this.keep(verdict);
    this.#reportDrift(before, verdict, space);
  }

  /** The founder's own verdict, from the measurement that founded the space. */
  foundedBy(verdict: Verdict, anchor: Matrix): void {
    const { provider, space, fingerprint } = verdict;
    if (fingerprint !== null) this.#rememberFirst(provider, space, anchor, fingerprint);
    this.keep(verdict);
  }

  /** Draws the verdict from a measurement, and remembers a first pass as the provider's own reference. */
  compare(provider: Provider, space: AnchoredSpace, measurement: Measurement): Verdict {
    const { fingerprint, singles } = measurement;
    if (provider.kind === 'cloud' && !pinHolds(fingerprint)) {
      return this.bare(provider, space, 'no-upstream-pin', said('gate_other_upstream'), fingerprint);
    }
    const found = evaluate(
      measurement,
      referenceFor(space, provider.kind, fingerprint, this.#peers(provider.id, space)),
      {
        threshold: this.threshold(space),
        normalise: space.normalise,
        probes: anchorTexts(space.probes),
        equalLength: space.probes.equalLength.length,
        first: this.#firstOf(provider, space, fingerprint),
      },
    );
    const { kind, checks, minCosine, meanCosine, centredMin, worst, cutWidths } = found;
    if (this.#book.first(provider.id, space.id) === null && admits(kind, space.regime)) {
      this.#rememberFirst(provider.id, space.id, singles, fingerprint);
    }
    const figures = { checks, minCosine, meanCosine, centredMin, worst, cutWidths };
    return { ...this.bare(provider, space, kind, sayingOf(found), fingerprint), ...figures };
  }

  otherWidth(provider: Provider, space: Space, width: number, fingerprint: Fingerprint): Verdict {
    const checks = notRun().map(
      (check): CheckFinding =>
        check.check === 'width' ? { check: 'width', state: 'fail', figure: width, threshold: space.width } : check,
    );
    const words = said('gate_width', { width, expected: space.width });
    return { ...this.bare(provider, space, 'dimension-mismatch', words, fingerprint), checks };
  }

  /** Own first vectors; for the founding upstream through another node those of the founder, which are the anchor. */
  #firstOf(provider: Provider, space: AnchoredSpace, fingerprint: Fingerprint): Rules['first'] {
    const first = this.#book.first(provider.id, space.id);
    if (first !== null) {
      const sameProcess = first.fingerprint !== null && sameFingerprint(first.fingerprint, fingerprint);
      return { vectors: first.vectors, sameProcess };
    }
    const isFounding = upstreamOf(fingerprint) === upstreamOf(space.founder.fingerprint);
    if (space.regime === 'local' || provider.kind === 'local' || !isFounding) return null;
    return { vectors: anchorMatrix(space), sameProcess: false };
  }

  #peers(own: ProviderId, space: Space): readonly PeerVectors[] {
    return this.#book.firstsIn(space.id).flatMap(([id, { vectors, fingerprint }]) => {
      const kind = this.#ports.encoders.get(id)?.provider.kind;
      if (id === own || kind !== 'cloud' || fingerprint === null) return [];
      return [{ upstream: upstreamOf(fingerprint), verdict: this.kind(id, space.id), vectors }];
    });
  }

  #rememberFirst(provider: ProviderId, space: SpaceId, vectors: Matrix, fingerprint: Fingerprint): void {
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

  bare(provider: Provider, space: Space, kind: VerdictKind, words: Said, fingerprint: Fingerprint | null): Verdict {
    const nowMs = this.#ports.clock.wallMs();
    const good = admits(kind, space.regime);
    const before = this.#book.verdict(provider.id, space.id);
    const found = foundBy(kind, nowMs, before);
    return {
      provider: provider.id,
      space: space.id,
      regime: space.regime,
      kind,
      ...told(words),
      checks: notRun(),
      minCosine: null,
      meanCosine: null,
      centredMin: null,
      worst: null,
      cutWidths: [],
      fingerprint,
      checkedAtMs: nowMs,
      ...(found === undefined ? {} : { found }),
      lastGoodAtMs: good ? nowMs : (before?.lastGoodAtMs ?? null),
      lastGoodFingerprint: good ? fingerprint : (before?.lastGoodFingerprint ?? null),
    };
  }
}

/** The list of checks when an earlier finding made them pointless. */
function notRun(): readonly CheckFinding[] {
  return CHECKS.map((check) => ({
    check,
    state: 'not-run',
    figure: null,
    threshold: null,
  }));
}
