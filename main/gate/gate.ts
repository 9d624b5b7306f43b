import { SwitchyardError } from '../domain/errors.ts';
import type { ProviderId, RequestId, SpaceId } from '../domain/ids.ts';
import type { Policy } from '../domain/policy.ts';
import { ROLE_IDS, ROLES, type RoleId, type RoleSettings } from '../domain/roles.ts';
import { said } from '../domain/said.ts';
import type { Clock, Random } from '../domain/time.ts';
import { type Fingerprint, sameFingerprint, type VerdictKind } from '../domain/verdict.ts';
import type { Digest } from './bytes.ts';
import { exportSpace, importSpace } from './export.ts';
import { Findings } from './findings.ts';
import type { FoundingCandidate } from './founding.ts';
import { FoundingDesk } from './founding-desk.ts';
import type { FoundRequest, FoundResult, Gate, GateEvent, RoleSpace } from './gate-api.ts';
import { GATE_TIMING, type GateTiming } from './gate-timing.ts';
import { countRows, joinRanges, LEDGER_KEPT_MS, type LedgerRange } from './ledger.ts';
import { checkPolicyChange } from './policy-change.ts';
import type { Encoder, ProbePort } from './probe-port.ts';
import type { ProbeSet } from './probes.ts';
import { hasAnchor, type Space } from './space.ts';
import { SpaceBook } from './space-book.ts';
import type { GateStore, VerdictPoint } from './store-port.ts';
import { StoreWriter } from './store-writer.ts';
import type { Verdict } from './verdict.ts';
import { Verification } from './verification.ts';
import { VerificationQueue } from './verification-queue.ts';
import { Verifier } from './verifier.ts';

export interface GateOptions {
  readonly clock: Clock;
  readonly random: Random;
  readonly store: GateStore;
  readonly port: ProbePort;
  readonly probeSet: ProbeSet;
  readonly digest: Digest;
  readonly timing?: Partial<GateTiming>;
}

/** Rows of a provider that are named one by one; more are only counted in whole ranges up to this. */
const AFFECTED_LIMIT = 100_000;
const PRUNE_EVERY_MS = 6 * 3_600_000;
const EMBED_ROLES = ROLE_IDS.filter((role) => ROLES[role].task === 'embed');

/**
 * The gate: holds spaces and verdicts, has encoders verified when anything about them changes, and says, synchronously, who
 * may see a text. Until a provider has passed as the very process that answers, the answer is no.
 */
export class GateService implements Gate {
  readonly #clock: Clock;
  readonly #store: GateStore;
  readonly #digest: Digest;
  readonly #listeners = new Set<(event: GateEvent) => void>();
  readonly #encoders = new Map<ProviderId, Encoder>();
  readonly #spaces: SpaceBook;
  readonly #writer: StoreWriter;
  readonly #queue: VerificationQueue;
  readonly #findings: Findings;
  readonly #verification: Verification;
  readonly #founding: FoundingDesk;
  #roles: Readonly<Record<RoleId, RoleSettings>> | null = null;
  #state: 'new' | 'running' | 'stopped' = 'new';
  #cancelPrune: () => void = () => {};

  constructor(options: GateOptions) {
    const { clock, store, digest } = options;
    const timing: GateTiming = { ...GATE_TIMING, ...options.timing };
    const emit = (event: GateEvent): void => this.#emit(event);
    const roles = (role: RoleId): RoleSettings | null => this.#roles?.[role] ?? null;
    this.#clock = clock;
    this.#store = store;
    this.#digest = digest;
    this.#writer = new StoreWriter(store, clock, (failing, lostRanges) =>
      emit({ type: 'store', state: failing ? 'failing' : 'recovered', lostRanges }),
    );
    this.#queue = new VerificationQueue(clock);
    this.#spaces = new SpaceBook(store, digest);
    const verifier = new Verifier(options.port, clock);
    this.#findings = new Findings({
      clock,
      spaces: this.#spaces,
      writer: this.#writer,
      store,
      digest,
      encoders: this.#encoders,
      roles,
      emit,
      affected: (provider) => this.affected(provider),
    });
    this.#verification = new Verification({
      clock,
      timing,
      verifier,
      queue: this.#queue,
      spaces: this.#spaces,
      findings: this.#findings,
      writer: this.#writer,
      encoders: this.#encoders,
      emit,
    });
    this.#founding = new FoundingDesk({
      clock,
      random: options.random,
      timing,
      verifier,
      probeSet: options.probeSet,
      queue: this.#queue,
      spaces: this.#spaces,
      findings: this.#findings,
      verification: this.#verification,
      encoders: this.#encoders,
      roles,
      emit,
    });
  }

  async start(): Promise<void> {
    if (this.#state !== 'new') return;
    const snapshot = await this.#store.load();
    this.#spaces.load(snapshot.spaces);
    this.#findings.load(snapshot);
    this.#state = 'running';
    this.#founding.start();
    for (const encoder of this.#encoders.values()) this.#verification.register(encoder);
    for (const role of EMBED_ROLES) this.#founding.consider(role);
    this.#prune();
  }

  async stop(): Promise<void> {
    if (this.#state === 'stopped') return;
    this.#state = 'stopped';
    this.#cancelPrune();
    this.#founding.stop();
    await this.#queue.stop();
    await this.#writer.stop();
  }

  subscribe(listener: (event: GateEvent) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  onProviders(encoders: readonly Encoder[]): void {
    const now = new Map(encoders.filter(isEmbedder).map((encoder) => [encoder.provider.id, encoder]));
    for (const id of [...this.#encoders.keys()]) {
      if (now.has(id)) continue;
      this.#encoders.delete(id);
      this.#verification.leave(id);
    }
    for (const [id, encoder] of now) {
      const before = this.#encoders.get(id);
      this.#encoders.set(id, encoder);
      if (this.#state !== 'running') continue;
      if (before === undefined) this.#verification.register(encoder);
      else this.#verification.update(before, encoder);
    }
    if (this.#state === 'running') for (const role of EMBED_ROLES) this.#founding.consider(role);
  }

  onRoles(roles: Readonly<Record<RoleId, RoleSettings>>): void {
    const before = this.#roles;
    this.#roles = roles;
    if (this.#state !== 'running') return;
    for (const role of EMBED_ROLES) {
      if (before !== null) this.#verification.roleChanged(role, before[role], roles[role]);
      this.#founding.consider(role);
    }
  }

  verdictFor(provider: ProviderId, space: SpaceId): VerdictKind {
    return this.#findings.kind(provider, space);
  }

  admitted(provider: ProviderId, space: SpaceId): boolean {
    return this.#state === 'running' && this.#findings.admitted(provider, space);
  }

  pending(provider: ProviderId, space: SpaceId): boolean {
    return !this.admitted(provider, space) && (this.#state === 'new' || this.#verification.isActive(provider, space));
  }

  admit(provider: ProviderId, space: SpaceId, fingerprint: Fingerprint): boolean {
    if (!this.admitted(provider, space)) return false;
    const passed = this.#findings.verdict(provider, space)?.fingerprint ?? null;
    if (passed !== null && sameFingerprint(passed, fingerprint)) return true;
    this.#verification.voidAll(provider, said('gate_rechecked_process'));
    return false;
  }

  servesWidth(provider: ProviderId, space: SpaceId, width: number): boolean {
    const facts = this.#spaces.get(space);
    if (facts === null || !this.admitted(provider, space)) return false;
    if (width === facts.width) return true;
    const passed = this.#findings.verdict(provider, space)?.cutWidths.includes(width) ?? false;
    return passed && facts.cutDimensions.includes(width);
  }

  record(range: Omit<LedgerRange, 'atMs'>): void {
    this.#writer.record({ ...range, atMs: this.#clock.wallMs() });
  }

  roleSpace(role: RoleId): RoleSpace {
    return this.#founding.roleSpace(role, this.#state === 'new');
  }

  space(id: SpaceId): Space | null {
    return this.#spaces.get(id);
  }

  spaces(): readonly Space[] {
    return this.#spaces.all();
  }

  verdict(provider: ProviderId, space: SpaceId): Verdict | null {
    return this.#findings.verdict(provider, space);
  }

  verdicts(): readonly Verdict[] {
    return this.#findings.verdicts();
  }

  history(provider: ProviderId, space: SpaceId, sinceMs: number): Promise<readonly VerdictPoint[]> {
    return this.#store.history(provider, space, sinceMs);
  }

  /** Milliseconds until the next check that is planned; null: none is, or one is running. */
  nextCheckInMs(provider: ProviderId, space: SpaceId): number | null {
    return this.#verification.nextCheckInMs(provider, space);
  }

  candidates(role: RoleId, wanted?: RoleSettings): readonly FoundingCandidate[] {
    return this.#founding.candidates(role, wanted);
  }

  found(request: FoundRequest): Promise<FoundResult> {
    return this.#founding.found(request);
  }

  async retire(id: SpaceId, confirm: boolean): Promise<Space> {
    const space = this.#known(id);
    if (space.retiredAtMs !== null) return space;
    if (this.#spaces.current(space.role)?.id === id && !confirm) throw new SwitchyardError('confirmation_required');
    const retired = { ...space, retiredAtMs: this.#clock.wallMs() };
    await this.#spaces.save(retired, false);
    this.#verification.spaceLeft(id);
    this.#emit({ type: 'space', space: retired, change: 'retired' });
    return retired;
  }

  exportSpace(id: SpaceId): string {
    const space = this.#known(id);
    if (!hasAnchor(space)) throw new SwitchyardError('space_anchor_lost');
    return exportSpace(space, this.#digest);
  }

  /**
   * Brings a lost anchor back, or a space of another installation in. It becomes its role's current space when the role has
   * none, or with `confirm`; else it is kept beside the current one and answers requests that name it.
   */
  async importSpace(content: string, confirm: boolean): Promise<Space> {
    const imported = importSpace(content, this.#digest);
    const known = this.#spaces.get(imported.id);
    if (known !== null && hasAnchor(known)) {
      const same =
        known.anchor.length === imported.anchor.length && known.anchor.every((x, i) => x === imported.anchor[i]);
      if (!same) throw new SwitchyardError('space_exists');
      return known;
    }
    const current = this.#spaces.current(imported.role);
    const isCurrent = confirm || current === null || current.id === imported.id;
    const space = { ...imported, retiredAtMs: known === null ? imported.retiredAtMs : known.retiredAtMs };
    await this.#spaces.save(space, isCurrent && space.retiredAtMs === null);
    this.#emit({ type: 'space', space, change: 'imported' });
    this.#verification.spaceCame(space);
    return space;
  }

  verify(provider: ProviderId | null): readonly ProviderId[] {
    if (provider !== null && !this.#encoders.has(provider)) throw new SwitchyardError('provider_not_found');
    const ids = provider === null ? [...this.#encoders.keys()] : [provider];
    return ids.filter((id) => this.#verification.again(id, said('gate_rechecked_demand')));
  }

  checkPolicy(role: RoleId, policy: Policy): void {
    const space = this.#spaces.current(role);
    const passes = [...this.#encoders.values()].flatMap(({ provider }) =>
      space !== null && provider.role === role
        ? [{ kind: provider.kind, verdict: this.verdictFor(provider.id, space.id) }]
        : [],
    );
    checkPolicyChange(policy, space?.regime ?? null, passes);
  }

  async affected(provider: ProviderId): Promise<{
    readonly sinceMs: number | null;
    readonly ranges: readonly LedgerRange[];
    readonly rows: number;
  }> {
    const good = this.verdicts().filter((verdict) => verdict.provider === provider && verdict.lastGoodAtMs !== null);
    if (good.length === 0) return { sinceMs: null, ranges: [], rows: 0 };
    const sinceMs = Math.min(...good.map(({ lastGoodAtMs }) => lastGoodAtMs ?? 0));
    await this.#writer.flush();
    const stored = await this.#store.rangesOfProvider(provider, sinceMs, AFFECTED_LIMIT);
    const waiting = this.#writer.waiting().filter((range) => range.provider === provider && range.atMs >= sinceMs);
    const lastGood = new Map(good.map(({ space, lastGoodAtMs }) => [space, lastGoodAtMs ?? 0]));
    const since = [...stored, ...waiting].filter(({ space, atMs }) => {
      const goodAtMs = lastGood.get(space);
      return goodAtMs !== undefined && atMs >= goodAtMs;
    });
    const ranges = joinRanges(since);
    return { sinceMs, ranges, rows: countRows(ranges) };
  }

  async rangesOfRequest(request: RequestId): Promise<readonly LedgerRange[]> {
    await this.#writer.flush();
    const stored = await this.#store.rangesOfRequest(request);
    return joinRanges([...stored, ...this.#writer.waiting().filter((range) => range.request === request)]);
  }

  #known(id: SpaceId): Space {
    const space = this.#spaces.get(id);
    if (space === null) throw new SwitchyardError('space_not_found');
    return space;
  }

  #prune(): void {
    this.#writer.write('prune', () => this.#store.prune(this.#clock.wallMs() - LEDGER_KEPT_MS));
    this.#cancelPrune = this.#clock.after(PRUNE_EVERY_MS, () => this.#prune());
  }

  #emit(event: GateEvent): void {
    for (const listener of [...this.#listeners]) listener(event);
  }
}

function isEmbedder({ provider }: Encoder): boolean {
  return ROLES[provider.role].task === 'embed';
}
