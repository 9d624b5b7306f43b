import type { NodeId } from '../domain/ids.ts';
import { type CloudRefusal, type SourceCode, type SourceRow, sourceOf } from './sources.ts';

/** What a call would use; the keys that circuits are opened on. */
export interface CallTarget {
  readonly agent: NodeId;
  readonly model: string;
  /** The pin; null when any upstream may answer. */
  readonly upstream: string | null;
  /** A model that costs nothing. */
  readonly free: boolean;
}

export interface OpenCircuit {
  readonly reason:
    | 'free_tier_limit'
    | 'model_cooling'
    | 'provider_cooling'
    | 'in_flight_budget'
    | 'credit_exhausted'
    | 'key_refused';
  /** Monotonic; null: until something happens (money, another key). */
  readonly untilMs: number | null;
  readonly code: SourceCode;
  readonly sentence: string;
  /** The model, upstream or agent meant; null: the account. */
  readonly subject: string | null;
}

interface Entry extends OpenCircuit {
  /** Refusals in a row, for the doubling. */
  readonly failures: number;
  readonly source: SourceRow;
}

const DAY_MS = 86_400_000;
const ACCOUNT_PAID = 'paid';
const ACCOUNT_FREE = 'free';
const CREDIT = 'credit';

/** Everything that a refusal closes without halving the account's limit. */
export class Circuits {
  readonly #entries = new Map<string, Entry>();
  /** Credit at the time when the cloud went off, to see whether a discovery brings more. */
  #creditWhenOff: number | null = null;

  /** Opens what the refusal asks for; scopes that concern the limit or nobody change nothing here. */
  refused(
    target: CallTarget,
    refusal: CloudRefusal,
    nowMs: number,
    wallMs: number,
    creditUsd: number | null,
  ): SourceRow {
    const source = sourceOf(refusal);
    const untilMs = () => nowMs + this.#pause(keyOf(source, target), source, refusal, wallMs);
    switch (source.scope) {
      case 'free-models':
        this.#open(ACCOUNT_FREE, 'free_tier_limit', source, freeReset(source, refusal, nowMs, wallMs), null);
        break;
      case 'model':
        this.#open(keyOf(source, target), 'model_cooling', source, untilMs(), target.model);
        break;
      case 'provider':
        this.#open(keyOf(source, target), 'provider_cooling', source, untilMs(), target.upstream ?? target.model);
        break;
      case 'paid-wait':
        this.#open(ACCOUNT_PAID, 'in_flight_budget', source, untilMs(), null);
        break;
      case 'credit': {
        const reset = refusal.resetAtWallMs === null ? null : nowMs + Math.max(0, refusal.resetAtWallMs - wallMs);
        this.#creditWhenOff = creditUsd;
        this.#open(CREDIT, 'credit_exhausted', source, reset, null);
        break;
      }
      case 'key':
        this.#open(keyOf(source, target), 'key_refused', source, null, target.agent);
        break;
      default:
    }
    return source;
  }

  /** A success proves model, upstream and key; it says nothing about the account's money or its free requests. */
  succeeded(target: CallTarget): void {
    this.#entries.delete(`model:${target.model}`);
    this.#entries.delete(`provider:${target.model}|${target.upstream ?? ''}`);
    this.#entries.delete(`key:${target.agent}`);
  }

  /** What stops this call now, the longest first; null: nothing. */
  check(target: CallTarget, nowMs: number): OpenCircuit | null {
    let found: Entry | null = null;
    for (const key of keysOf(target)) {
      const entry = this.#entries.get(key);
      if (entry === undefined || !isOpen(entry, nowMs)) continue;
      if (found === null || endOf(entry) > endOf(found)) found = entry;
    }
    return found;
  }

  /** The reason for which paid models are off; null: they are not. */
  creditOff(nowMs: number): OpenCircuit | null {
    const entry = this.#entries.get(CREDIT);
    return entry !== undefined && isOpen(entry, nowMs) ? entry : null;
  }

  /** `/key` was read. A key limit that shows money again is over; a plain "no credit" needs more money than it had. */
  discovered(creditUsd: number | null): void {
    const entry = this.#entries.get(CREDIT);
    if (entry === undefined || creditUsd === null || creditUsd <= 0) return;
    const wasKeyLimit = entry.source.limitSource === 'openrouter_key_limit';
    if (wasKeyLimit || (this.#creditWhenOff !== null && creditUsd > this.#creditWhenOff)) this.#entries.delete(CREDIT);
  }

  /** Another key at this agent: what was found about the old one is void. */
  keyChanged(agent: NodeId): void {
    this.#entries.delete(`key:${agent}`);
    this.#entries.delete(CREDIT);
    this.#entries.delete(ACCOUNT_PAID);
    this.#entries.delete(ACCOUNT_FREE);
  }

  /** The operator says that money is there again. */
  resumed(): void {
    this.#entries.delete(CREDIT);
    this.#entries.delete(ACCOUNT_PAID);
  }

  open(nowMs: number): readonly OpenCircuit[] {
    return [...this.#entries.values()].filter((entry) => isOpen(entry, nowMs));
  }

  nextChangeMs(nowMs: number): number | null {
    let next: number | null = null;
    for (const { untilMs } of this.#entries.values()) {
      if (untilMs !== null && untilMs > nowMs && (next === null || untilMs < next)) next = untilMs;
    }
    return next;
  }

  /** Forgets pauses that ended so long ago that the next refusal is a new story. Keeps the map small. */
  prune(nowMs: number): void {
    for (const [key, entry] of this.#entries) {
      if (entry.untilMs !== null && entry.untilMs + (entry.source.maxMs ?? 0) < nowMs) this.#entries.delete(key);
    }
  }

  #pause(key: string, source: SourceRow, refusal: CloudRefusal, wallMs: number): number {
    if (refusal.retryAfterMs !== null) return refusal.retryAfterMs;
    if (refusal.resetAtWallMs !== null && refusal.resetAtWallMs > wallMs) return refusal.resetAtWallMs - wallMs;
    const failures = this.#entries.get(key)?.failures ?? 0;
    return Math.min((source.pauseMs ?? 0) * 2 ** failures, source.maxMs ?? Number.POSITIVE_INFINITY);
  }

  #open(
    key: string,
    reason: OpenCircuit['reason'],
    source: SourceRow,
    untilMs: number | null,
    subject: string | null,
  ): void {
    const before = this.#entries.get(key);
    const end =
      before === undefined || before.untilMs === null || untilMs === null ? untilMs : Math.max(before.untilMs, untilMs);
    const failures = Math.min((before?.failures ?? 0) + 1, 16);
    this.#entries.set(key, {
      reason,
      untilMs: end,
      code: source.code,
      sentence: source.sentence,
      subject,
      failures,
      source,
    });
  }
}

function keysOf(target: CallTarget): readonly string[] {
  const own = [`model:${target.model}`, `provider:${target.model}|${target.upstream ?? ''}`, `key:${target.agent}`];
  return target.free ? [...own, ACCOUNT_FREE] : [...own, ACCOUNT_PAID, CREDIT];
}

function keyOf(source: SourceRow, target: CallTarget): string {
  if (source.scope === 'model') return `model:${target.model}`;
  if (source.scope === 'provider') return `provider:${target.model}|${target.upstream ?? ''}`;
  if (source.scope === 'key') return `key:${target.agent}`;
  return ACCOUNT_PAID;
}

function isOpen(entry: Entry, nowMs: number): boolean {
  return entry.untilMs === null || nowMs < entry.untilMs;
}

function endOf(entry: Entry): number {
  return entry.untilMs ?? Number.POSITIVE_INFINITY;
}

/** The reported reset; else Retry-After; else the row's pause; else the next UTC midnight. */
function freeReset(source: SourceRow, refusal: CloudRefusal, nowMs: number, wallMs: number): number {
  if (refusal.resetAtWallMs !== null && refusal.resetAtWallMs > wallMs) return nowMs + refusal.resetAtWallMs - wallMs;
  if (source.pauseMs !== null) return nowMs + (refusal.retryAfterMs ?? source.pauseMs);
  return nowMs + (DAY_MS - (wallMs % DAY_MS));
}
