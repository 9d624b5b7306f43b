import type { NodeId } from '../domain/ids.ts';
import type { Permit } from './permit.ts';

/** How long the outcome of a returned permit may still arrive. */
const OUTCOME_MS = 60_000;

/** Permits that are out, those that return at a set time, and those that are back while their outcome is not known. */
export class InFlight {
  readonly #out = new Map<string, Permit>();
  readonly #returning = new Map<string, number>();
  /** Oldest first. */
  readonly #back = new Map<string, { readonly permit: Permit; readonly atMs: number }>();

  add(permit: Permit): void {
    this.#out.set(permit.id, permit);
  }

  isOut(id: string): boolean {
    return this.#out.has(id);
  }

  /** A permit whose outcome is still of interest, out or back. */
  find(id: string): Permit | null {
    return this.#out.get(id) ?? this.#back.get(id)?.permit ?? null;
  }

  ofAgent(agent: NodeId): readonly Permit[] {
    return [...this.#out.values()].filter((permit) => permit.ask.agent === agent);
  }

  /** Takes a permit back. False: it was back already. */
  giveBack(permit: Permit, nowMs: number): boolean {
    if (!this.#out.delete(permit.id)) return false;
    this.#returning.delete(permit.id);
    this.#back.set(permit.id, { permit, atMs: nowMs });
    return true;
  }

  /** The permit returns then, unless it does before; the earliest time counts. */
  returnAt(id: string, atMs: number): void {
    if (this.#out.has(id)) this.#returning.set(id, Math.min(this.#returning.get(id) ?? Number.POSITIVE_INFINITY, atMs));
  }

  /** Permits whose time to return has come. */
  due(nowMs: number): readonly { readonly permit: Permit; readonly atMs: number }[] {
    const due: { readonly permit: Permit; readonly atMs: number }[] = [];
    for (const [id, atMs] of this.#returning) {
      const permit = this.#out.get(id);
      if (permit !== undefined && atMs <= nowMs) due.push({ permit, atMs });
    }
    return due;
  }

  /** The outcome is known. */
  settled(id: string): void {
    this.#back.delete(id);
  }

  /** Returned permits whose outcome will not come any more. */
  overdue(nowMs: number): readonly string[] {
    const overdue: string[] = [];
    for (const [id, { atMs }] of this.#back) {
      if (atMs + OUTCOME_MS > nowMs) break;
      overdue.push(id);
    }
    return overdue;
  }

  /** When the next permit returns by the clock; null: none will. */
  nextReturnMs(): number | null {
    let next: number | null = null;
    for (const atMs of this.#returning.values()) if (next === null || atMs < next) next = atMs;
    return next;
  }
}
