import { PRIORITY_CLASSES } from '../domain/classes.ts';
import type { ProjectId } from '../domain/ids.ts';
import type { ItemState } from './item.ts';
import type { Lane } from './lane.ts';
import { rankOf } from './running-time.ts';

/** Tokens that a project may spend each time the round reaches it. */
export const QUANTUM_TOKENS = 4096;
/** Items at the head of a lane that nobody wants a chunk of now are passed over, at most this many. */
const LOOK_PAST = 64;

/** What a free provider could take in the pass at hand. */
export interface Pass {
  laneOpen(lane: Lane): boolean;
  /** Was the item offered in this pass already, and did every free provider decline? */
  shunned(item: ItemState): boolean;
}

/** Waiting items of one class, project and lane, oldest first. */
export class LaneQueue {
  readonly lane: Lane;
  readonly owner: ProjectQueue;
  head: ItemState | null = null;
  tail: ItemState | null = null;

  constructor(lane: Lane, owner: ProjectQueue) {
    this.lane = lane;
    this.owner = owner;
  }

  /** In order of arrival: what comes back after an attempt is older than most and goes to the front. */
  insert(item: ItemState): void {
    let after = this.tail;
    if (after !== null && after.seq > item.seq) {
      let before = this.head;
      while (before !== null && before.seq < item.seq) before = before.nextInQueue;
      after = before?.previousInQueue ?? null;
    }
    const next = after === null ? this.head : after.nextInQueue;
    item.previousInQueue = after;
    item.nextInQueue = next;
    if (after === null) this.head = item;
    else after.nextInQueue = item;
    if (next === null) this.tail = item;
    else next.previousInQueue = item;
  }

  remove(item: ItemState): void {
    const { previousInQueue: previous, nextInQueue: next } = item;
    if (previous === null) this.head = next;
    else previous.nextInQueue = next;
    if (next === null) this.tail = previous;
    else next.previousInQueue = previous;
    item.previousInQueue = null;
    item.nextInQueue = null;
  }

  first(pass: Pass): ItemState | null {
    let item = this.head;
    for (let passed = 0; item !== null && passed < LOOK_PAST; passed += 1) {
      if (!pass.shunned(item)) return item;
      item = item.nextInQueue;
    }
    return null;
  }
}

/** One project's waiting items of one class, and its standing in the round. */
export class ProjectQueue {
  readonly project: ProjectId;
  readonly lanes = new Map<Lane, LaneQueue>();
  size = 0;
  deficit = 0;
  /** Has it had its quantum on this visit? */
  credited = false;
  next: ProjectQueue;
  previous: ProjectQueue;

  constructor(project: ProjectId) {
    this.project = project;
    this.next = this;
    this.previous = this;
  }

  first(pass: Pass): ItemState | null {
    let oldest: ItemState | null = null;
    for (const queue of this.lanes.values()) {
      if (queue.head === null || !pass.laneOpen(queue.lane)) continue;
      const item = queue.first(pass);
      if (item !== null && (oldest === null || item.seq < oldest.seq)) oldest = item;
    }
    return oldest;
  }
}

/** Deficit round robin over the projects of one class (Shreedhar and Varghese 1996), cost in estimated tokens. */
export class ClassQueue {
  size = 0;
  readonly projects = new Map<ProjectId, ProjectQueue>();
  /** Never dispatched, in order of arrival: their deadlines are in that order too. */
  firstFresh: ItemState | null = null;
  private lastFresh: ItemState | null = null;
  private head: ProjectQueue | null = null;

  insert(item: ItemState, lane: Lane): void {
    const { project } = item.item.context;
    let queue = this.projects.get(project);
    if (queue === undefined) {
      queue = new ProjectQueue(project);
      this.projects.set(project, queue);
      this.joinRound(queue);
    }
    let laneQueue = queue.lanes.get(lane);
    if (laneQueue === undefined) {
      laneQueue = new LaneQueue(lane, queue);
      queue.lanes.set(lane, laneQueue);
    }
    laneQueue.insert(item);
    item.queue = laneQueue;
    queue.size += 1;
    this.size += 1;
  }

  remove(item: ItemState): void {
    const laneQueue = item.queue;
    if (laneQueue === null) return;
    const queue = laneQueue.owner;
    laneQueue.remove(item);
    item.queue = null;
    if (laneQueue.head === null) queue.lanes.delete(laneQueue.lane);
    queue.size -= 1;
    this.size -= 1;
    if (queue.size > 0) return;
    // An emptied project loses its deficit and comes back at the tail, or idling would save up a burst.
    this.projects.delete(queue.project);
    this.leaveRound(queue);
  }

  /** The item that goes next, its project credited; null when no project has one in an open lane. Charge it when it goes. */
  select(pass: Pass): ItemState | null {
    const found = this.visitAll(pass);
    if (found === null || typeof found === 'object') return found;
    // Nobody's next item fits yet: skip the rounds in which nothing could happen.
    for (const queue of this.projects.values()) {
      if (queue.first(pass) !== null) queue.deficit += (found - 1) * QUANTUM_TOKENS;
    }
    const second = this.visitAll(pass);
    return typeof second === 'object' ? second : null;
  }

  charge(item: ItemState, cost: number): void {
    const queue = this.projects.get(item.item.context.project);
    if (queue !== undefined) queue.deficit -= cost;
  }

  addFresh(item: ItemState): void {
    item.previousFresh = this.lastFresh;
    if (this.lastFresh === null) this.firstFresh = item;
    else this.lastFresh.nextFresh = item;
    this.lastFresh = item;
  }

  removeFresh(item: ItemState): void {
    const { previousFresh: previous, nextFresh: next } = item;
    if (previous === null && this.firstFresh !== item) return;
    if (previous === null) this.firstFresh = next;
    else previous.nextFresh = next;
    if (next === null) this.lastFresh = previous;
    else next.previousFresh = previous;
    item.previousFresh = null;
    item.nextFresh = null;
  }

  /** One turn of the round: an item that fits, else the rounds that the nearest one still needs, else null. */
  private visitAll(pass: Pass): ItemState | number | null {
    let rounds = Number.POSITIVE_INFINITY;
    for (let visits = this.projects.size; visits > 0 && this.head !== null; visits -= 1) {
      const queue = this.head;
      const item = queue.first(pass);
      if (item !== null) {
        if (!queue.credited) {
          queue.credited = true;
          queue.deficit += QUANTUM_TOKENS;
        }
        const missing = item.entryCost - queue.deficit;
        if (missing <= 0) return item;
        rounds = Math.min(rounds, Math.ceil(missing / QUANTUM_TOKENS));
      }
      queue.credited = false;
      this.head = queue.next;
    }
    return rounds === Number.POSITIVE_INFINITY ? null : rounds;
  }

  private joinRound(queue: ProjectQueue): void {
    if (this.head === null) {
      this.head = queue;
      return;
    }
    const { head } = this;
    queue.previous = head.previous;
    queue.next = head;
    head.previous.next = queue;
    head.previous = queue;
  }

  private leaveRound(queue: ProjectQueue): void {
    if (queue.next === queue) {
      this.head = null;
      return;
    }
    queue.previous.next = queue.next;
    queue.next.previous = queue.previous;
    if (this.head === queue) this.head = queue.next;
  }
}

/** Everything of one role that waits, by class, project and lane. */
export class RoleQueue {
  readonly classes: readonly ClassQueue[] = PRIORITY_CLASSES.map(() => new ClassQueue());
  /** Waiting again after a dispatch: older than the fresh ones, with deadlines of their own. */
  readonly returned = new Set<ItemState>();
  size = 0;
  private readonly perProject = new Map<ProjectId, number>();

  sizeOf(project: ProjectId): number {
    return this.perProject.get(project) ?? 0;
  }

  classOf(item: ItemState): ClassQueue {
    const queue = this.classes[item.rank];
    if (queue === undefined) throw new RangeError(`no class of rank ${rankOf(item.item.context.class)}`);
    return queue;
  }

  insert(item: ItemState, lane: Lane): void {
    const queue = this.classOf(item);
    queue.insert(item, lane);
    item.lane = lane;
    lane.waits(item.rank, 1);
    this.size += 1;
    const { project } = item.item.context;
    this.perProject.set(project, this.sizeOf(project) + 1);
    if (item.everDispatched) this.returned.add(item);
    else queue.addFresh(item);
  }

  remove(item: ItemState): void {
    if (item.queue === null) return;
    const queue = this.classOf(item);
    item.queue.lane.waits(item.rank, -1);
    queue.remove(item);
    queue.removeFresh(item);
    this.returned.delete(item);
    this.size -= 1;
    const { project } = item.item.context;
    const left = this.sizeOf(project) - 1;
    if (left > 0) this.perProject.set(project, left);
    else this.perProject.delete(project);
  }

  /** Other eligible providers now: into another lane at the same place. */
  move(item: ItemState, lane: Lane): void {
    if (item.queue === null) return;
    item.queue.lane.waits(item.rank, -1);
    const owner = item.queue.owner;
    item.queue.remove(item);
    if (item.queue.head === null) owner.lanes.delete(item.queue.lane);
    let target = owner.lanes.get(lane);
    if (target === undefined) {
      target = new LaneQueue(lane, owner);
      owner.lanes.set(lane, target);
    }
    target.insert(item);
    item.queue = target;
    item.lane = lane;
    lane.waits(item.rank, 1);
  }

  /** It has been dispatched for the first time and waits on: no longer fresh. */
  noLongerFresh(item: ItemState): void {
    this.classOf(item).removeFresh(item);
    if (item.queue !== null) this.returned.add(item);
  }
}
