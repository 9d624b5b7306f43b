import type { Ceiling } from './ceiling.ts';
import type { OpenCircuit } from './circuits.ts';
import type { LimitState } from './limit.ts';
import type { AccountFacts } from './trust.ts';

export type BudgetState = LimitState | 'off';

export interface Situation {
  readonly state: BudgetState;
  readonly paused: boolean;
  readonly creditOff: OpenCircuit | null;
  readonly ceiling: Ceiling;
  readonly facts: AccountFacts;
  readonly latencyMs: number;
  readonly effective: number;
  readonly usable: number;
  readonly plateau: number | null;
  /** Wall clock; null when not cooling. */
  readonly cooldownUntilWallMs: number | null;
  /** Wall clock of the next step up; null: none ahead. */
  readonly nextStepWallMs: number | null;
}

/** One plain sentence or two: how many permits there are now and where the number comes from. */
export function describe(situation: Situation): string {
  if (situation.paused) return 'Off: the cloud is paused by the operator.';
  if (situation.creditOff !== null) return `Off: ${situation.creditOff.sentence}`;
  if (situation.ceiling.paid === 0) {
    return `Off: the key may spend nothing more. Free models keep ${permits(situation.usable)}.`;
  }
  const where = origin(situation.ceiling, situation.facts, situation.latencyMs);
  const { usable, plateau } = situation;
  switch (situation.state) {
    case 'cooling':
      return `Cooling until ${time(situation.cooldownUntilWallMs)}: OpenRouter limited the account. Then ${usable} of ${where}.`;
    case 'backing-off':
      return `${usable} of ${where}. OpenRouter limited the account; one more after 15 s without a refusal.`;
    case 'ramping':
      return `${usable} of ${where}. Climbing; next step at ${time(situation.nextStepWallMs)}.`;
    default:
      if (plateau !== null && usable === plateau && situation.effective < situation.ceiling.paid) {
        return `${usable} of ${where}. More was refused; next try at ${time(situation.nextStepWallMs)}.`;
      }
      return `${capital(where)}.`;
  }
}

function origin(ceiling: Ceiling, facts: AccountFacts, latencyMs: number): string {
  const count = permits(ceiling.paid);
  switch (ceiling.source) {
    case 'override':
      return `${count}, set by the operator`;
    case 'rate':
      return `${count}: ${round(facts.rpm)} requests per minute at ${(latencyMs / 1000).toFixed(1)} s per call`;
    case 'credit':
      return `${count}: the key may still spend ${(facts.creditUsd ?? 0).toFixed(2)} USD`;
    default:
      return `${count}: nothing could be discovered about the account`;
  }
}

function permits(count: number): string {
  return count === 1 ? '1 permit' : `${count} permits`;
}

function round(value: number | null): string {
  return value === null ? '?' : String(Math.round(value * 10) / 10);
}

function time(wallMs: number | null): string {
  return wallMs === null ? 'an unknown time' : `${new Date(wallMs).toISOString().slice(11, 19)} UTC`;
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
