import type { Clock } from '../../main/domain/time.ts';
import type { Trailers, Usage } from '../wire/calls.ts';
import type { IncomingCall } from '../wire/stream.ts';
import type { Pin } from './body.ts';
import type { CloudHttp } from './http.ts';

/** One call for OpenRouter, everything about it settled: key held, model offered, pin agreed. */
export interface CloudJob {
  readonly call: IncomingCall;
  readonly http: CloudHttp;
  readonly clock: Clock;
  readonly baseUrl: string;
  readonly authorization: string;
  readonly model: string;
  readonly pin: Pin;
  /** Endpoint tag -> name in answers, of this model. */
  readonly names: ReadonlyMap<string, string>;
  readonly price: { readonly promptUsd: number; readonly completionUsd: number } | null;
  /** Overwrites the key in bytes that leave. */
  blank(bytes: Uint8Array): void;
  fingerprint(upstream: string | null): Trailers['fingerprint'];
}

/** The controller wanted the call no more. `aborted`: our connection was closed now; else OpenRouter has ended by itself. */
export class CallCancelled extends Error {
  readonly aborted: boolean;
  readonly costUsd: number | null;

  constructor(aborted: boolean, costUsd: number | null) {
    super('cancelled');
    this.name = 'CallCancelled';
    this.aborted = aborted;
    this.costUsd = costUsd;
  }
}

/** Token counts and cost of an answer or chunk; null when it says none. */
export function cloudUsage(answer: Readonly<Record<string, unknown>>): Usage | null {
  const usage = answer.usage;
  if (typeof usage !== 'object' || usage === null) return null;
  const read = (name: string) => {
    const value: unknown = Reflect.get(usage, name);
    return typeof value === 'number' && Number.isFinite(value) && value >= 0 ? value : null;
  };
  const prompt = read('prompt_tokens') ?? read('total_tokens');
  return {
    promptTokens: Math.min(1e9, Math.round(prompt ?? 0)),
    completionTokens: Math.min(1e9, Math.round(read('completion_tokens') ?? 0)),
    exact: prompt !== null,
    costUsd: read('cost'),
  };
}

/** Fires when nothing has progressed for a time; pauses while the reader is slow. */
export class Patience {
  readonly #clock: Clock;
  readonly #limitMs: number;
  readonly #onOut: () => void;
  #sinceMs: number;
  #paused = false;
  #stop: (() => void) | null = null;

  constructor(clock: Clock, limitMs: number, onOut: () => void) {
    this.#clock = clock;
    this.#limitMs = limitMs;
    this.#onOut = onOut;
    this.#sinceMs = clock.nowMs();
  }

  start(): void {
    this.progress();
    this.#arm(this.#limitMs);
  }

  progress(): void {
    this.#sinceMs = this.#clock.nowMs();
  }

  pause(): void {
    this.#paused = true;
  }

  resume(): void {
    this.#paused = false;
    this.progress();
  }

  stop(): void {
    this.#stop?.();
    this.#stop = null;
  }

  #arm(delayMs: number): void {
    this.#stop = this.#clock.after(delayMs, () => {
      const leftMs = this.#paused ? this.#limitMs : this.#sinceMs + this.#limitMs - this.#clock.nowMs();
      if (leftMs > 0) this.#arm(leftMs);
      else this.#onOut();
    });
  }
}
