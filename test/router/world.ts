import type { PriorityClass } from '../../main/domain/classes.ts';
import type { RequestId } from '../../main/domain/ids.ts';
import type { Policy } from '../../main/domain/policy.ts';
import { ROLES, type RoleId } from '../../main/domain/roles.ts';
import type { VerdictKind } from '../../main/domain/verdict.ts';
import { replay } from '../../main/router/replay.ts';
import type { AttemptOutcome, Decision, InputRange, RoutedProvider, RouterItem } from '../../main/router/types.ts';
import { coversExactly } from './encoders.ts';
import {
  broken,
  busy,
  type Dispatch,
  item,
  ok,
  Permits,
  provider,
  routerWith,
  SPACE,
  silentEngine,
  silentNode,
} from './support.ts';

export type Step = readonly [kind: number, a: number, b: number];

const CLASSES: readonly PriorityClass[] = ['interactive', 'normal', 'batch'];
const POLICIES: readonly Policy[] = ['local', 'backup', 'aggregate', 'cloud'];
const ROLE_CHOICES: readonly RoleId[] = ['code-assistant', 'embedding', 'reranker'];
const OUTCOMES: readonly AttemptOutcome[] = [
  ok,
  ok,
  ok,
  ok,
  broken,
  silentEngine,
  silentNode,
  busy(),
  busy(3000),
  { kind: 'callerFault', code: 'engine_refused' },
  { kind: 'fingerprint' },
  { kind: 'ignored' },
];

const pick = <T>(list: readonly T[], n: number): T => {
  const found = list[n % list.length];
  if (found === undefined) throw new Error('nothing to pick from');
  return found;
};

interface Followed {
  readonly item: RouterItem;
  readonly kept: InputRange[];
  answers: number;
  firstByte: boolean;
  ends: number;
  readonly failedOn: Set<string>;
  /** The session of a local machine went away under it: forgiven once. */
  sessionLost: boolean;
}

/**
 * A fleet, its clients and its faults, driven by numbers; checks after every step what must hold at every moment. The same
 * steps give the same run.
 */
export class World {
  readonly permits = new Permits(3);
  readonly router;
  readonly log: string[] = [];
  private nowMs = 0;
  private fleet: RoutedProvider[];
  private readonly live = new Map<number, Dispatch>();
  private readonly aborted = new Set<number>();
  private readonly items = new Map<RequestId, Followed>();
  private submitted = 0;

  constructor(shape: number) {
    this.fleet = fleetOf(shape);
    this.router = routerWith(this.fleet, { permits: this.permits, settings: { queueBound: 40, conversations: 3 } });
  }

  step([kind, a, b]: Step): void {
    if (kind < 4) this.submit(a, b);
    else if (kind < 8) this.end(a, pick(OUTCOMES, b));
    else if (kind === 8) this.nowMs += [1, 40, 300, 2000, 21_000][b % 5] ?? 1;
    else if (kind === 9) this.cancel(a);
    else if (kind === 10) this.disturb(a, b);
    else if (kind === 11) this.firstByte(a);
    else this.permits.limit = b % 4;
    this.decide();
  }

  /** Makes everybody well again and lets all work end. */
  drain(): void {
    this.permits.limit = 8;
    this.fleet = this.fleet.map((one) => ({ ...one, ...HEALTHY, verifiedAtMs: this.nowMs + 1 }));
    this.nowMs += 2;
    this.router.setProviders(this.fleet, this.nowMs);
    this.decide();
    for (let turns = 0; this.open().length > 0 || this.live.size > 0; turns += 1) {
      if (turns > 20_000) throw new Error(`never ends: ${this.open().map(({ item: { context } }) => context.id)}`);
      if (this.live.size > 0) {
        this.nowMs += 5;
        this.end(0, ok);
      } else {
        const wakeMs = this.router.nextWakeMs(this.nowMs);
        if (wakeMs === null)
          throw new Error(`work waits and nobody will look again: ${JSON.stringify(this.open()[0])}`);
        this.nowMs = Math.max(this.nowMs, wakeMs);
      }
      this.decide();
    }
    this.checkEnd();
  }

  private submit(a: number, b: number): void {
    const role = pick(ROLE_CHOICES, a);
    const embeds = ROLES[role].task === 'embed';
    this.submitted += 1;
    const made = item(`r${this.submitted}`, {
      role,
      project: `p${a % 5}`,
      class: pick(CLASSES, b),
      units: embeds ? 1 + (b % 60) : 1,
      costTokens: 1 + (a % 9000),
      neededTokens: 100 + (b % 7) * 1000,
      conversation: b % 3 === 0 ? `c${a % 6}` : null,
      context: {
        policy: pick(POLICIES, b >> 2),
        maxWaitMs: (b % 4) * 1000,
        model: !embeds && b % 11 === 0 ? 'm2' : null,
      },
    });
    const result = this.router.submit(made, this.nowMs);
    this.log.push(`${made.context.id} ${result.accepted ? 'in' : result.code}`);
    if (!result.accepted) return;
    const followed = {
      item: made,
      kept: [],
      answers: 0,
      firstByte: false,
      ends: 0,
      failedOn: new Set<string>(),
      sessionLost: false,
    };
    this.items.set(made.context.id, followed);
  }

  private end(a: number, outcome: AttemptOutcome): void {
    if (this.live.size === 0) return;
    const dispatch = pick([...this.live.values()], a);
    this.live.delete(dispatch.attempt);
    const followed = this.followed(dispatch.request);
    const { keep, range } = this.router.attemptEnded(dispatch.attempt, outcome, this.nowMs);
    const aborted = this.aborted.delete(dispatch.attempt);
    if (keep && (aborted || outcome.kind !== 'success')) throw new Error('an answer that does not count was kept');
    if (outcome.kind === 'failed' && !aborted) {
      const lost = outcome.silent === 'node' && dispatch.provider.kind === 'local';
      if (followed.sessionLost || !lost) followed.failedOn.add(dispatch.provider.id);
      followed.sessionLost ||= lost;
    }
    if (!keep) return;
    followed.answers += 1;
    if (range !== null) followed.kept.push(range);
  }

  private cancel(a: number): void {
    const open = this.open();
    if (open.length === 0) return;
    const followed = pick(open, a);
    followed.ends += 1;
    for (const attempt of this.router.cancel(followed.item.context.id, this.nowMs)) this.aborted.add(attempt);
  }

  private firstByte(a: number): void {
    if (this.live.size === 0) return;
    const dispatch = pick([...this.live.values()], a);
    if (dispatch.range !== null || this.aborted.has(dispatch.attempt)) return;
    this.router.firstByte(dispatch.attempt, this.nowMs);
    this.followed(dispatch.request).firstByte = true;
  }

  private disturb(a: number, b: number): void {
    const verdict: VerdictKind = pick(['pass', 'unverified', 'collapsed'] as const, b);
    const changes: readonly Partial<RoutedProvider>[] = [
      HEALTHY,
      { nodeState: 'unreachable', unreachableSinceMs: this.nowMs },
      { nodeState: 'draining' },
      { nodePulls: false, unreachableSinceMs: null },
      { spaces: new Map([[SPACE, verdict]]) },
      { foreign: b % 3 },
      { slots: 1 + (b % 3) },
      { contextTokens: 3000 + (b % 3) * 1000 },
      { coolingUntilMs: this.nowMs + 1500 },
    ];
    const at = a % this.fleet.length;
    const changed = this.fleet.map((one, n) => (n === at ? { ...one, ...pick(changes, b) } : one));
    // The slots of an engine are told alike on each of its providers.
    const source = changed[at];
    this.fleet = changed.map((one) =>
      source !== undefined && one.slotPool === source.slotPool
        ? { ...one, slots: source.slots, foreign: source.foreign }
        : one,
    );
    this.router.setProviders(b % 13 === 0 ? this.fleet.filter((_, n) => n !== at) : this.fleet, this.nowMs);
    if (b % 2 === 0 && source !== undefined) this.router.probed(source.id, b % 4 === 0, this.nowMs);
  }

  private decide(): void {
    for (const decision of this.router.decide(this.nowMs)) this.carryOut(decision);
    this.checkMoment();
  }

  private carryOut(decision: Decision): void {
    const followed = this.followed(decision.request);
    this.log.push(`${this.nowMs} ${decision.kind} ${decision.request}`);
    if (decision.kind === 'abort') {
      this.aborted.add(decision.attempt);
      return;
    }
    if (decision.kind !== 'dispatch') {
      followed.ends += 1;
      if (decision.kind === 'finished' && !whole(followed)) throw new Error(`${decision.request} finished in part`);
      return;
    }
    this.log.push(`-> ${decision.provider.id} ${JSON.stringify(decision.range)} ${decision.copyOf}`);
    this.live.set(decision.attempt, decision);
    this.checkDispatch(decision, followed);
  }

  private checkDispatch(decision: Dispatch, followed: Followed): void {
    const { provider: to, explanation, range } = decision;
    const { policy } = followed.item.context;
    const fail = (why: string): never => {
      throw new Error(`${decision.request} to ${to.id}: ${why}`);
    };
    if (followed.ends > 0) fail('has ended');
    if (policy === 'local' && to.kind === 'cloud') fail('left the network');
    if (policy === 'cloud' && to.kind === 'local') fail('was to go to the cloud');
    if ((to.kind === 'cloud') !== (decision.permit !== null)) fail('permit');
    if (range !== null && to.spaces.get(SPACE) !== 'pass') fail('no pass');
    if (range !== null && range.count > to.maxBatch) fail('batch too large');
    if (to.nodeState !== 'ready' || !to.nodePulls || !to.reachable) fail('not ready');
    if (to.contextTokens !== null && to.contextTokens < followed.item.neededTokens) fail('window too small');
    if (range === null && followed.firstByte) fail('after the first byte');
    if (range === null && followed.failedOn.has(to.id)) fail('tried before');
    if (followed.failedOn.size >= 3 && range === null) fail('a fourth provider');
    const stored = JSON.parse(JSON.stringify(explanation)) as typeof explanation;
    const again = replay(stored);
    if (again.provider !== to.id) fail(`replay gives ${again.provider}`);
    if (range !== null && again.inputs !== range.count) fail('replay gives another chunk');
    if (again.waitMs !== (explanation.wait?.waitMs ?? null)) fail('replay gives another wait');
  }

  /** Slots, permits and the router's own counts agree with what really runs. */
  private checkMoment(): void {
    const attempts = [...this.live.values()];
    const cloudy = attempts.filter(({ permit }) => permit !== null).length;
    if (this.permits.out.size !== cloudy)
      throw new Error(`${this.permits.out.size} permits out, ${cloudy} cloud calls`);
    for (const seen of this.router.snapshot(this.nowMs).providers) {
      const real = attempts.filter(({ provider: { id } }) => id === seen.provider).length;
      if (seen.running + seen.queued !== real) throw new Error(`${seen.provider}: ${real} run, not ${seen.running}`);
    }
  }

  private checkEnd(): void {
    if (this.permits.out.size > 0) throw new Error('a permit leaked');
    for (const {
      item: { context },
      ends,
    } of this.items.values()) {
      if (ends !== 1) throw new Error(`${context.id} ended ${ends} times`);
    }
    const { roles, providers } = this.router.snapshot(this.nowMs);
    if (providers.some(({ running, queued }) => running + queued > 0)) throw new Error('a slot leaked');
    if (roles.some(({ running, oldestMs }) => running > 0 || oldestMs !== null))
      throw new Error('something still waits');
  }

  private open(): readonly Followed[] {
    return [...this.items.values()].filter(({ ends }) => ends === 0);
  }

  private followed(request: RequestId): Followed {
    const found = this.items.get(request);
    if (found === undefined) throw new Error(`${request} is not known`);
    return found;
  }
}

const HEALTHY: Partial<RoutedProvider> = {
  nodeState: 'ready',
  nodePulls: true,
  unreachableSinceMs: null,
  spaces: new Map<typeof SPACE, VerdictKind>([[SPACE, 'pass']]),
  foreign: 0,
  contextTokens: null,
  coolingUntilMs: null,
};

function whole({ item: made, kept, answers }: Followed): boolean {
  return made.task === 'embed' ? coversExactly(kept, made.units) : answers === 1;
}

/** One to four machines, some engines shared by two roles, and a cloud lane. */
function fleetOf(shape: number): RoutedProvider[] {
  const fleet: RoutedProvider[] = [];
  for (let n = 0; n < 1 + (shape % 4); n += 1) {
    const engine = { node: `n${n}` as RoutedProvider['node'], slotPool: `n${n}/e`, slots: 1 + ((shape >> n) % 3) };
    const tps = (shape >> n) % 2 === 0 ? null : 10 * (n + 1);
    fleet.push(
      provider(`n${n}`, { ...engine, tokensPerSecond: tps, loaded: n % 2 === 0, model: n === 1 ? 'm2' : 'm' }),
    );
    fleet.push(provider(`n${n}`, { ...engine, role: 'embedding', model: 'e', maxBatch: 4 + (shape % 13) }));
    if (n % 2 === 0) fleet.push(provider(`n${n}`, { ...engine, role: 'reranker', model: 'k' }));
  }
  const lane = { node: 'or' as RoutedProvider['node'], slotPool: 'or/e', kind: 'cloud' as const, slots: 4 };
  fleet.push(provider('or', { ...lane }), provider('or', { ...lane, role: 'embedding', model: 'e' }));
  return fleet;
}
