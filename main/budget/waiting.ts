import { PRIORITY_CLASSES } from '../domain/classes.ts';
import type { ProjectId } from '../domain/ids.ts';
import { ROLES } from '../domain/roles.ts';
import { chatLimit, nextProject, type ProjectDemand, shareOf } from './fair.ts';
import type { PermitAsk } from './permit.ts';

/** A permit is kept this long for the work whose turn it is; work that does not come for it has gone elsewhere. */
const CLAIM_MS = 50;
/** Work that has not asked for so long is not waiting any more. */
const ASK_EXPIRES_MS = 30_000;
const PRUNE_EVERY_MS = 1000;
/** Projects remembered for the order of service. */
const MAX_PROJECTS = 2048;

/** What fairness needs to know of an ask. */
export type DeclaredAsk = Pick<PermitAsk, 'id' | 'project' | 'role' | 'class' | 'arrivedAtMs'>;

interface Ticket {
  readonly ask: DeclaredAsk;
  readonly order: number;
  /** Stays when granted: the next declaration says whether more of it waits. */
  readonly declared: boolean;
  askedAtMs: number;
  /** Since when others were refused in its favour. */
  claimedAtMs: number | null;
  /** It did not come when it was its turn; until it asks itself it stands in nobody's way. */
  lapsed: boolean;
}

interface Project {
  readonly id: ProjectId;
  readonly tickets: Map<string, Ticket>;
  held: number;
  servedAt: number | null;
  waitingSince: number;
}

/**
 * Who waits for a permit and whose turn it is. Work makes itself known by asking; a refused ask waits until it is granted,
 * withdrawn, or has not been repeated for 30 s.
 */
export class Waiting {
  readonly #projects = new Map<ProjectId, Project>();
  #order = 0;
  #prunedAtMs = Number.NEGATIVE_INFINITY;
  #held = 0;
  #heldByChat = 0;
  #turn: { readonly usable: number; readonly ticket: Ticket | null } | null = null;

  get held(): number {
    return this.#held;
  }

  get waiting(): number {
    let waiting = 0;
    for (const project of this.#projects.values()) waiting += project.tickets.size;
    return waiting;
  }

  /** Notes that this work wants a permit. */
  join(ask: DeclaredAsk, nowMs: number): void {
    const known = this.#projects.get(ask.project)?.tickets.get(ask.id);
    if (known !== undefined && (known.declared || ranksAlike(known.ask, ask))) {
      known.askedAtMs = nowMs;
      if (known.lapsed) this.#turn = null;
      known.lapsed = false;
      return;
    }
    this.#add(ask, false, nowMs);
  }

  /** Replaces all declared asks. */
  declare(asks: readonly DeclaredAsk[], nowMs: number): void {
    const kept = new Set<Ticket>();
    for (const ask of asks) {
      const known = this.#projects.get(ask.project)?.tickets.get(ask.id);
      if (known?.declared === true && ranksAlike(known.ask, ask)) {
        known.askedAtMs = nowMs;
        kept.add(known);
      } else {
        kept.add(this.#add(ask, true, nowMs));
      }
    }
    for (const project of this.#projects.values()) {
      for (const [id, ticket] of project.tickets) {
        if (!ticket.declared || kept.has(ticket)) continue;
        project.tickets.delete(id);
        this.#turn = null;
      }
    }
  }

  /** The work was served elsewhere, cancelled, or may not use the cloud now. */
  leave(project: ProjectId, id: string): void {
    if (this.#projects.get(project)?.tickets.delete(id) === true) this.#turn = null;
  }

  /**
   * True when a permit is free and this ask is the one to get it. Otherwise, if one is free, it is kept for the work whose
   * turn it is; that claim lapses when the work does not come.
   */
  isTurnOf(ask: DeclaredAsk, usable: number, nowMs: number): boolean {
    const ticket = this.#next(usable);
    if (ticket === null) return false;
    if (ticket.ask.id === ask.id && ticket.ask.project === ask.project) return true;
    ticket.claimedAtMs ??= nowMs;
    return false;
  }

  /** Hands a permit to this ask. */
  grant(ask: DeclaredAsk): void {
    const project = this.#project(ask.project);
    const ticket = project.tickets.get(ask.id);
    if (ticket?.declared === true) ticket.claimedAtMs = null;
    else project.tickets.delete(ask.id);
    project.servedAt = ++this.#order;
    project.held++;
    this.#held++;
    if (isChat(ask)) this.#heldByChat++;
    this.#turn = null;
  }

  /** A permit comes back. */
  giveBack(ask: DeclaredAsk): void {
    const project = this.#project(ask.project);
    project.held--;
    this.#held--;
    if (isChat(ask)) this.#heldByChat--;
    this.#turn = null;
  }

  /** When a claim lapses and another ask may succeed; null: no claim stands. */
  claimLapsesMs(): number | null {
    const claimed = this.#turn?.ticket?.claimedAtMs ?? null;
    return claimed === null ? null : claimed + CLAIM_MS;
  }

  share(usable: number): number {
    return shareOf(usable, this.#demands(usable));
  }

  projects(): readonly { readonly project: ProjectId; readonly held: number; readonly waiting: number }[] {
    return [...this.#projects.values()]
      .filter((project) => project.held > 0 || project.tickets.size > 0)
      .map((project) => ({ project: project.id, held: project.held, waiting: project.tickets.size }));
  }

  /** Drops the claim whose work did not come, and now and then the asks that nobody repeats. */
  advance(nowMs: number): void {
    const claimed = this.#turn?.ticket ?? null;
    if (claimed !== null && claimed.claimedAtMs !== null && nowMs >= claimed.claimedAtMs + CLAIM_MS) {
      claimed.lapsed = true;
      claimed.claimedAtMs = null;
      this.#turn = null;
    }
    if (nowMs < this.#prunedAtMs + PRUNE_EVERY_MS) return;
    this.#prunedAtMs = nowMs;
    for (const project of this.#projects.values()) {
      for (const [id, ticket] of project.tickets) {
        if (nowMs - ticket.askedAtMs < ASK_EXPIRES_MS) continue;
        project.tickets.delete(id);
        this.#turn = null;
      }
    }
  }

  #add(ask: DeclaredAsk, declared: boolean, nowMs: number): Ticket {
    const project = this.#project(ask.project);
    const known = project.tickets.get(ask.id);
    if (project.tickets.size === 0) project.waitingSince = ++this.#order;
    const ticket: Ticket = {
      ask,
      order: known?.order ?? ++this.#order,
      declared,
      askedAtMs: nowMs,
      claimedAtMs: null,
      lapsed: known?.lapsed ?? false,
    };
    project.tickets.set(ask.id, ticket);
    this.#turn = null;
    return ticket;
  }

  #next(usable: number): Ticket | null {
    if (this.#turn === null || this.#turn.usable !== usable) {
      const chosen = nextProject(usable, this.#demands(usable));
      this.#turn = { usable, ticket: chosen === null ? null : this.#firstOf(this.#project(chosen), usable) };
    }
    return this.#turn.ticket;
  }

  #demands(usable: number): readonly ProjectDemand[] {
    const demands: ProjectDemand[] = [];
    for (const project of this.#projects.values()) {
      if (project.held === 0 && project.tickets.size === 0) continue;
      demands.push({
        project: project.id,
        held: project.held,
        waiting: [...project.tickets.values()].some((ticket) => !ticket.lapsed),
        grantable: this.#firstOf(project, usable) !== null,
        servedAt: project.servedAt,
        waitingSince: project.waitingSince,
      });
    }
    return demands;
  }

  /** By class, then age. */
  #firstOf(project: Project, usable: number): Ticket | null {
    const chatMay = this.#heldByChat < chatLimit(usable);
    let first: Ticket | null = null;
    for (const ticket of project.tickets.values()) {
      if (ticket.lapsed || (!chatMay && isChat(ticket.ask))) continue;
      if (first === null || comesBefore(ticket, first)) first = ticket;
    }
    return first;
  }

  #project(id: ProjectId): Project {
    const known = this.#projects.get(id);
    if (known !== undefined) return known;
    if (this.#projects.size >= MAX_PROJECTS) this.#forgetIdle();
    const project = { id, tickets: new Map<string, Ticket>(), held: 0, servedAt: null, waitingSince: 0 };
    this.#projects.set(id, project);
    return project;
  }

  #forgetIdle(): void {
    for (const [id, project] of this.#projects) {
      if (project.held === 0 && project.tickets.size === 0) this.#projects.delete(id);
    }
  }
}

function isChat(ask: DeclaredAsk): boolean {
  return ROLES[ask.role].task === 'chat';
}

function ranksAlike(a: DeclaredAsk, b: DeclaredAsk): boolean {
  return a.class === b.class && a.arrivedAtMs === b.arrivedAtMs && isChat(a) === isChat(b);
}

function comesBefore(a: Ticket, b: Ticket): boolean {
  const rank = PRIORITY_CLASSES.indexOf(a.ask.class) - PRIORITY_CLASSES.indexOf(b.ask.class);
  if (rank !== 0) return rank < 0;
  if (a.ask.arrivedAtMs !== b.ask.arrivedAtMs) return a.ask.arrivedAtMs < b.ask.arrivedAtMs;
  return a.order < b.order;
}
