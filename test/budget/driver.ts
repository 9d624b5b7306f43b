import { Budget, type BudgetOptions } from '../../main/budget/budget.ts';
import type { Permit, PermitAsk } from '../../main/budget/permit.ts';
import type { CloudRefusal } from '../../main/budget/sources.ts';
import type { NodeId, ProjectId } from '../../main/domain/ids.ts';

/** 2026-11-30 12:00:00 UTC at monotonic 0. */
export const NOON = Date.UTC(2026, 10, 30, 12);

export function makeBudget(options: Partial<BudgetOptions> & { now?: { ms: number } } = {}): Budget {
  const now = options.now ?? { ms: 0 };
  return new Budget({ clock: { wallMs: () => NOON + now.ms }, random: () => 0.5, nowMs: 0, ...options });
}

export function ask(id: string, changes: Partial<PermitAsk> = {}): PermitAsk {
  return {
    id,
    project: 'A' as ProjectId,
    role: 'embedding',
    class: 'normal',
    arrivedAtMs: 0,
    agent: 'n1' as NodeId,
    model: 'author/model',
    upstream: null,
    free: false,
    estimateUsd: 0,
    ...changes,
  };
}

export function refusal(changes: Partial<CloudRefusal> = {}): CloudRefusal {
  return {
    status: 429,
    limitSource: null,
    fromProvider: false,
    availability: null,
    moderated: false,
    retryAfterMs: null,
    resetAtWallMs: null,
    ...changes,
  };
}

/** Starts calls until one is refused, or `max`. */
export function fill(budget: Budget, nowMs: number, max = 1000, changes: Partial<PermitAsk> = {}): Permit[] {
  const permits: Permit[] = [];
  while (permits.length < max) {
    const wanted = ask(`fill${nowMs}/${permits.length}/${changes.project ?? ''}${changes.model ?? ''}`, changes);
    const decision = budget.acquire(wanted, nowMs);
    if (!decision.granted) {
      budget.withdraw(wanted.project, wanted.id);
      break;
    }
    permits.push(decision.permit);
  }
  return permits;
}
