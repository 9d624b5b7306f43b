import type { ProjectId } from '../domain/ids.ts';
import type { Affinity } from './affinity.ts';
import { type Choice, choose } from './choice.ts';
import { best, byRank, type Claim, claimsOf, demandOf } from './claims.ts';
import { explain, type Match } from './explain.ts';
import type { ChunkTable, CopyRecord, Explanation } from './explanation.ts';
import type { ProviderState } from './fleet.ts';
import { mayCopy, soonerElsewhere } from './hedging.ts';
import type { ItemState } from './item.ts';
import type { Chunk, Piece } from './job.ts';
import type { Lane } from './lane.ts';
import type { Pass } from './queue.ts';
import type { RoleState } from './role.ts';
import { nextClass } from './running-time.ts';
import { copyPays, expectedAt } from './striping.ts';
import { CandidateCache, type Candidates, candidatesOf, candidateTable, chunkTable, settle } from './tables.ts';
import type { AttemptId, PermitPort, PermitRef, PermitRefusal } from './types.ts';

/** What a match becomes; the core carries it out. */
export interface MatchSink {
  /** Hands `size` inputs (0: the whole item) to the provider. */
  begin(item: ItemState, provider: ProviderState, size: number, permit: PermitRef | null, why: Explanation): void;
  beginCopy(item: ItemState, provider: ProviderState, chunk: Chunk, of: AttemptId, why: Explanation): void;
  /** The budget has closed the cloud to this item. */
  closeCloud(item: ItemState, reason: 'spend_cap' | 'cloud_off', nowMs: number): void;
}

/** Brings waiting items and free providers together: local slots first, then the cloud, then copies for who is still idle. */
export class Matcher {
  private readonly roles: readonly RoleState[];
  private readonly permits: PermitPort;
  private readonly affinity: Affinity;
  private readonly sink: MatchSink;
  private readonly localCandidates = new Map<RoleState, CandidateCache>();
  private readonly cloudCandidates = new Map<RoleState, CandidateCache>();
  private demanded = false;
  private turn = 0;

  constructor(roles: readonly RoleState[], permits: PermitPort, affinity: Affinity, sink: MatchSink) {
    this.roles = roles;
    this.permits = permits;
    this.affinity = affinity;
    this.sink = sink;
  }

  /** Fills local slots. Roles take turns, dispatch by dispatch, so that none owns an engine they share. */
  local(nowMs: number): void {
    for (let without = 0; without < this.roles.length; ) {
      const role = this.roles[this.turn % this.roles.length];
      this.turn = (this.turn + 1) % this.roles.length;
      if (role !== undefined && this.localStep(role, nowMs)) without = 0;
      else without += 1;
    }
  }

  private localStep(role: RoleState, nowMs: number): boolean {
    if (role.queue.size === 0 || role.free.length === 0) return false;
    const hasWork = role.queue.classes.map(() => false);
    for (const lane of role.lanes.values()) {
      if (lane.total === 0 || lane.freeLocal === 0) continue;
      for (let rank = 0; rank < hasWork.length; rank += 1) if ((lane.waiting[rank] ?? 0) > 0) hasWork[rank] = true;
    }
    const pass: Pass = {
      laneOpen: (lane) => lane.freeLocal > 0,
      shunned: (item) => item.shunnedLocal === role.pulse,
    };
    role.runningTime.advance(nowMs);
    for (;;) {
      const rank = nextClass(role.runningTime.totals, hasWork);
      if (rank === -1) return false;
      const item = role.queue.classes[rank]?.select(pass) ?? null;
      if (item === null) hasWork[rank] = false;
      else if (this.offerLocal(role, item, nowMs)) return true;
      else item.shunnedLocal = role.pulse;
    }
  }

  private offerLocal(role: RoleState, item: ItemState, nowMs: number): boolean {
    const { lane } = item;
    if (lane === null) return false;
    const match = this.match(lane, item, this.free(role, lane, true), nowMs);
    if (match === null) return false;
    this.dispatch(role, item, lane, match, null, nowMs);
    return true;
  }

  /**
   * Offers waiting work to the budget until it grants no more: per project its best item (class, then age, over all roles).
   * @returns when a refused claim is worth another try without a release; null: not before one, or nothing was refused
   */
  cloud(nowMs: number): number | null {
    for (;;) {
      const claims = this.claims();
      if (claims.size === 0 && !this.demanded) return null;
      this.demanded = claims.size > 0;
      this.permits.demand(demandOf(claims), nowMs);
      if (claims.size === 0) return null;
      const ordered = [...claims.values()].map(best).sort(byRank);
      if (!ordered.some((claim) => this.claim(claim, nowMs))) return this.permits.nextChangeMs(nowMs);
    }
  }

  /** @returns true when the picture has changed and the claims must be made up anew. */
  private claim({ item, lane }: Claim, nowMs: number): boolean {
    const { role } = item;
    const match = this.match(lane, item, this.free(role, lane, false), nowMs);
    if (match === null) {
      item.shunnedCloud = role.pulse;
      return true;
    }
    const granted = this.permits.tryAcquire(item.item, match.provider.routed, nowMs);
    if (isRefusal(granted)) {
      if (granted !== 'spend_cap' && granted !== 'cloud_off') return false;
      this.sink.closeCloud(item, granted, nowMs);
      return true;
    }
    this.dispatch(role, item, lane, match, granted, nowMs);
    return true;
  }

  /** Per project and role, the item that would go to the cloud first. */
  private claims(): Map<ProjectId, Claim[]> {
    const claims = new Map<ProjectId, Claim[]>();
    for (const role of this.roles) {
      if (role.queue.size === 0) continue;
      const pass: Pass = {
        laneOpen: (lane) => lane.cloudOpen && lane.freeCloud > 0,
        shunned: (item) =>
          item.shunnedCloud === role.pulse || ((item.lane?.freeLocal ?? 0) > 0 && item.shunnedLocal !== role.pulse),
      };
      const open = [...role.lanes.values()].some((lane) => lane.total > 0 && pass.laneOpen(lane));
      if (!open) continue;
      for (const claim of claimsOf(role, pass)) {
        const { project } = claim.item.item.context;
        const known = claims.get(project);
        if (known === undefined) claims.set(project, [claim]);
        else known.push(claim);
      }
    }
    return claims;
  }

  /** Lets idle local providers take copies of the chunks that would come last. */
  copies(role: RoleState, nowMs: number): void {
    if (role.jobs.size === 0 || role.free.length === 0) return;
    const idle = role.free
      .filter((provider) => provider.local && provider.running === 0 && provider.rate.perSecond !== null)
      .sort((a, b) => (b.rate.perSecond ?? 0) - (a.rate.perSecond ?? 0) || a.index - b.index);
    for (const provider of idle) this.copyFor(role, provider, nowMs);
  }

  private copyFor(role: RoleState, provider: ProviderState, nowMs: number): void {
    let last: { item: ItemState; lane: Lane; chunk: Chunk; atMs: number } | null = null;
    for (const item of role.jobs) {
      if (item.job === null || item.job.left > 0) continue;
      const lane = role.laneOf(item);
      if (lane.member[provider.index] !== 1) continue;
      for (const chunk of item.job.chunks) {
        if (!mayCopy(chunk, provider)) continue;
        const atMs = expectedAt({ nowMs, sentAtMs: chunk.sentAtMs, expectedAtMs: chunk.expectedAtMs });
        if (last === null || atMs > last.atMs) last = { item, lane, chunk, atMs };
      }
    }
    if (last === null) return;
    const { item, lane, chunk } = last;
    const copy: CopyRecord = {
      sentAtMs: chunk.sentAtMs,
      expectedAtMs: chunk.expectedAtMs,
      inputs: chunk.count,
      rate: provider.rate.perSecond ?? 0,
    };
    const of = chunk.live[0];
    if (of === undefined || !copyPays({ nowMs, ...copy }) || soonerElsewhere(lane, provider, chunk, nowMs)) return;
    const table = candidateTable(candidatesOf([provider], true));
    const choice: Choice = { picked: 0, rows: [], size: chunk.count };
    const match: Match = { candidates: [provider], table, chunk: null, affinity: null, choice, provider };
    this.sink.beginCopy(item, provider, chunk, of, explain(item, lane, match, copy, nowMs));
  }

  private free(role: RoleState, lane: Lane, local: boolean): Candidates {
    const caches = local ? this.localCandidates : this.cloudCandidates;
    let cache = caches.get(role);
    if (cache === undefined) {
      cache = new CandidateCache();
      caches.set(role, cache);
    }
    return cache.free(role, lane, local);
  }

  private match(lane: Lane, item: ItemState, candidates: Candidates, nowMs: number): Match | null {
    const { states } = candidates;
    if (states.length === 0) return null;
    const table = candidateTable(candidates);
    const piece = item.job?.front() ?? null;
    const chunk = item.job === null || piece === null ? null : this.chunk(lane, item, piece, states, nowMs);
    const { conversation } = item.item;
    const affinity = conversation === null ? null : this.affinity.providerOf(conversation, nowMs);
    const choice = choose(table, affinity, chunk);
    const provider = states[choice.picked];
    return provider === undefined ? null : { candidates: states, table, chunk, affinity, choice, provider };
  }

  private chunk(
    lane: Lane,
    item: ItemState,
    piece: Piece,
    candidates: readonly ProviderState[],
    nowMs: number,
  ): ChunkTable | null {
    if (item.job === null) return null;
    lane.refreshRates(item.role.pulse);
    const reserved = (provider: ProviderState): boolean => provider.beyondSlots() && this.wantedByOthers(provider);
    return chunkTable(candidates, lane, item.job, piece, reserved, nowMs);
  }

  /** Does work of another role wait for this provider's engine? Then no second chunk queues up in front of it. */
  private wantedByOthers(provider: ProviderState): boolean {
    for (const other of provider.pool.members) {
      if (other === provider || other.index === -1 || other.routed.role === provider.routed.role) continue;
      const role = this.roles.find(({ id }) => id === other.routed.role);
      if (role === undefined || role.queue.size === 0) continue;
      for (const lane of role.lanes.values()) if (lane.total > 0 && lane.member[other.index] === 1) return true;
    }
    return false;
  }

  private dispatch(
    role: RoleState,
    item: ItemState,
    lane: Lane,
    match: Match,
    permit: PermitRef | null,
    nowMs: number,
  ): void {
    const why = explain(item, lane, match, null, nowMs);
    settle(match.candidates, match.table, match.choice);
    const { conversation } = item.item;
    if (conversation !== null) this.affinity.served(conversation, match.provider.id, nowMs);
    const { size } = match.choice;
    const share = item.job === null ? 1 : size / item.item.units;
    role.queue.classOf(item).charge(item, item.item.costTokens * share);
    this.sink.begin(item, match.provider, size, permit, why);
  }
}

function isRefusal(granted: PermitRef | PermitRefusal): granted is PermitRefusal {
  return typeof granted === 'string';
}
