import type { RouterCore } from '../../main/router/core.ts';
import type { AttemptId, AttemptOutcome, Decision, InputRange } from '../../main/router/types.ts';
import { silentEngine } from './support.ts';

/** Simulated serial encoder: one call after the other at `rate` inputs/s, half the round trip before and half after. */
interface Encoder {
  readonly rate: number;
  /** Call that the engine works on, and those behind it. */
  readonly calls: Call[];
  freeAtMs: number;
  deadFromMs: number;
  frozenFromMs: number;
  frozenUntilMs: number;
}

interface Call {
  readonly attempt: AttemptId;
  readonly request: string;
  readonly range: InputRange;
  aborted: boolean;
}

interface Event {
  readonly atMs: number;
  readonly order: number;
  run(): void;
}

const HALF_TRIP_MS = 10;

/** Drives a router with simulated encoders; time is a number. */
export class EncoderFleet {
  nowMs = 0;
  readonly router: RouterCore;
  readonly encoders = new Map<string, Encoder>();
  /** Ranges kept per request, in the order in which they came. */
  readonly kept = new Map<string, InputRange[]>();
  readonly ended = new Map<string, { readonly atMs: number; readonly kind: 'finished' | 'fail' }>();
  /** Inputs encoded per encoder, wasted ones included. */
  readonly encoded = new Map<string, number>();
  copies = 0;
  private readonly events: Event[] = [];
  private readonly calls = new Map<AttemptId, { readonly call: Call; readonly encoder: Encoder }>();
  private order = 0;
  private jitter: () => number;

  constructor(router: RouterCore, rates: Readonly<Record<string, number>>, jitter: () => number = () => 1) {
    this.router = router;
    this.jitter = jitter;
    for (const [name, rate] of Object.entries(rates)) {
      this.encoders.set(name, {
        rate,
        calls: [],
        freeAtMs: 0,
        deadFromMs: Number.POSITIVE_INFINITY,
        frozenFromMs: Number.POSITIVE_INFINITY,
        frozenUntilMs: Number.POSITIVE_INFINITY,
      });
    }
  }

  at(atMs: number, run: () => void): void {
    this.order += 1;
    this.events.push({ atMs, order: this.order, run });
  }

  /** Runs until the request has ended; fails after `limitMs` of simulated time. */
  until(request: string, limitMs = 600_000): number {
    this.decide();
    while (!this.ended.has(request)) {
      const event = this.nextEvent();
      const wakeMs = this.router.nextWakeMs(this.nowMs) ?? Number.POSITIVE_INFINITY;
      const atMs = Math.min(event?.atMs ?? Number.POSITIVE_INFINITY, wakeMs);
      if (atMs > limitMs) throw new Error(`${request} has not ended by ${limitMs} ms`);
      this.nowMs = Math.max(this.nowMs, atMs);
      if (event !== undefined && event.atMs <= atMs) {
        this.events.splice(this.events.indexOf(event), 1);
        event.run();
      }
      this.decide();
    }
    return this.ended.get(request)?.atMs ?? Number.NaN;
  }

  /** Lets everything that is still on its way arrive. */
  rest(): void {
    for (let event = this.nextEvent(); event !== undefined; event = this.nextEvent()) {
      this.events.splice(this.events.indexOf(event), 1);
      this.nowMs = Math.max(this.nowMs, event.atMs);
      event.run();
      this.decide();
    }
  }

  private nextEvent(): Event | undefined {
    let first: Event | undefined;
    for (const event of this.events) {
      if (first === undefined || event.atMs < first.atMs || (event.atMs === first.atMs && event.order < first.order)) {
        first = event;
      }
    }
    return first;
  }

  private decide(): void {
    for (const decision of this.router.decide(this.nowMs)) this.carryOut(decision);
  }

  private carryOut(decision: Decision): void {
    switch (decision.kind) {
      case 'dispatch': {
        const encoder = this.encoders.get(decision.provider.nodeName);
        if (encoder === undefined || decision.range === null) throw new Error('no such encoder');
        if (decision.copyOf !== null) this.copies += 1;
        const call: Call = {
          attempt: decision.attempt,
          request: decision.request,
          range: decision.range,
          aborted: false,
        };
        this.calls.set(call.attempt, { call, encoder });
        this.at(this.nowMs + HALF_TRIP_MS, () => this.arrive(encoder, decision.provider.nodeName, call));
        return;
      }
      case 'abort':
        this.at(this.nowMs + HALF_TRIP_MS, () => this.abort(decision.attempt));
        return;
      case 'finished':
      case 'fail':
        this.ended.set(decision.request, { atMs: this.nowMs, kind: decision.kind });
    }
  }

  private arrive(encoder: Encoder, name: string, call: Call): void {
    if (call.aborted) return;
    encoder.calls.push(call);
    this.encoded.set(name, (this.encoded.get(name) ?? 0) + call.range.count);
    if (encoder.calls.length === 1) this.work(encoder, call);
  }

  private work(encoder: Encoder, call: Call): void {
    const startMs = Math.max(this.nowMs, encoder.freeAtMs);
    let endMs = startMs + (1000 * call.range.count * this.jitter()) / encoder.rate;
    if (endMs > encoder.frozenFromMs && startMs < encoder.frozenUntilMs) {
      endMs += encoder.frozenUntilMs - Math.max(startMs, encoder.frozenFromMs);
    }
    if (endMs > encoder.deadFromMs) {
      this.at(Math.max(this.nowMs, encoder.deadFromMs), () => this.reply(encoder, call, silentEngine));
      return;
    }
    this.at(endMs, () => {
      if (call.aborted) return;
      this.leave(encoder, call);
      this.at(this.nowMs + HALF_TRIP_MS, () => this.reply(encoder, call, { kind: 'success' }));
    });
  }

  private leave(encoder: Encoder, call: Call): void {
    const first = encoder.calls[0] === call;
    encoder.calls.splice(encoder.calls.indexOf(call), 1);
    encoder.freeAtMs = this.nowMs;
    const next = encoder.calls[0];
    if (first && next !== undefined) this.work(encoder, next);
  }

  private abort(attempt: AttemptId): void {
    const entry = this.calls.get(attempt);
    if (entry === undefined) return;
    const { call, encoder } = entry;
    // A frozen process hears nothing before it thaws.
    if (this.nowMs >= encoder.frozenFromMs && this.nowMs < encoder.frozenUntilMs) {
      this.at(encoder.frozenUntilMs, () => this.abort(attempt));
      return;
    }
    call.aborted = true;
    if (encoder.calls.includes(call)) this.leave(encoder, call);
    this.at(this.nowMs + HALF_TRIP_MS, () => this.reply(encoder, call, { kind: 'ignored' }));
  }

  private reply(encoder: Encoder, call: Call, outcome: AttemptOutcome): void {
    if (!this.calls.delete(call.attempt)) return;
    if (outcome.kind === 'failed') {
      encoder.calls.length = 0;
      call.aborted = true;
    }
    const { keep, range } = this.router.attemptEnded(call.attempt, outcome, this.nowMs);
    if (!keep || range === null) return;
    const kept = this.kept.get(call.request) ?? [];
    kept.push(range);
    this.kept.set(call.request, kept);
  }
}

/** True when the ranges cover 0 to `units` with no input twice. */
export function coversExactly(ranges: readonly InputRange[], units: number): boolean {
  const sorted = [...ranges].sort((a, b) => a.start - b.start);
  let next = 0;
  for (const { start, count } of sorted) {
    if (start !== next) return false;
    next = start + count;
  }
  return next === units;
}

/** Small deterministic generator (mulberry32), uniform in [0, 1). */
export function randomFrom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
