import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import type { RequestObserver, RequestSummary } from '../domain/observation.ts';

/** Seconds; chosen for what people alert on: local first bytes below 100 ms, long generations up to ten minutes. */
const LATENCY_BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600];

/** One gauge family read when somebody scrapes: rows of labels and a value; null rows are left out, for unknown is not 0. */
export interface GaugeRow {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number | null;
}
export type ReadGauge = () => Iterable<GaugeRow>;

interface Tally {
  readonly labels: Readonly<Record<'role' | 'route' | 'outcome' | 'code', string>>;
  requests: number;
  retries: number;
  prompt: number;
  completion: number;
  usd: number;
}

/**
 * Prometheus exposition. Label values come from our own small vocabularies and ids, never from a client. Every name stands
 * in docs/metrics.md; a test compares.
 */
export class Metrics implements RequestObserver {
  readonly #registry = new Registry();
  readonly #requests: Counter<'role' | 'route' | 'outcome' | 'code'>;
  readonly #duration: Histogram<'role' | 'route'>;
  readonly #firstByte: Histogram<'role' | 'route'>;
  readonly #queue: Histogram<'role'>;
  readonly #tokens: Counter<'role' | 'route' | 'kind'>;
  readonly #cost: Counter<'role'>;
  readonly #retries: Counter<'role'>;
  /** Since the last scrape: a family sorts and joins labels for every count, so it is told of many at once. */
  readonly #tallies = new Map<string, Tally>();

  constructor() {
    const registers = [this.#registry];
    this.#requests = new Counter({
      name: 'switchyard_requests_total',
      help: 'Finished requests by role, route (local, cloud, none), outcome and error code.',
      labelNames: ['role', 'route', 'outcome', 'code'],
      registers,
    });
    const latency = { labelNames: ['role', 'route'] as const, buckets: LATENCY_BUCKETS, registers };
    this.#duration = new Histogram({
      ...latency,
      name: 'switchyard_request_duration_seconds',
      help: 'Arrival to last byte of successful requests.',
    });
    this.#firstByte = new Histogram({
      ...latency,
      name: 'switchyard_first_byte_seconds',
      help: 'Arrival to first byte of successful requests.',
    });
    this.#queue = new Histogram({
      name: 'switchyard_queue_seconds',
      help: 'Arrival to first dispatch.',
      labelNames: ['role'],
      buckets: LATENCY_BUCKETS,
      registers,
    });
    this.#tokens = new Counter({
      name: 'switchyard_tokens_total',
      help: 'Tokens by role, route and kind (prompt, completion).',
      labelNames: ['role', 'route', 'kind'],
      registers,
    });
    this.#cost = new Counter({
      name: 'switchyard_cost_usd_total',
      help: 'Reported cost of cloud work in USD.',
      labelNames: ['role'],
      registers,
    });
    this.#retries = new Counter({
      name: 'switchyard_retries_total',
      help: 'Attempts beyond the first.',
      labelNames: ['role'],
      registers,
    });
  }

  /** Adds the process metrics (memory, CPU, event-loop delay). Separate, because it starts an interval. */
  collectProcess(): void {
    collectDefaultMetrics({ register: this.#registry, prefix: 'switchyard_' });
  }

  /** Registers a family whose rows are read at each scrape. */
  gauge(name: string, help: string, labelNames: readonly string[], read: ReadGauge): void {
    const gauge: Gauge = new Gauge({
      name,
      help,
      labelNames: [...labelNames],
      registers: [this.#registry],
      collect: () => {
        gauge.reset();
        for (const { labels, value } of read()) if (value !== null) gauge.set(labels, value);
      },
    });
  }

  /** Registers a counter that a room keeps itself. */
  counter(name: string, help: string, labelNames: readonly string[], read: ReadGauge): void {
    const counter: Counter = new Counter({
      name,
      help,
      labelNames: [...labelNames],
      registers: [this.#registry],
      collect: () => {
        counter.reset();
        for (const { labels, value } of read()) if (value !== null) counter.inc(labels, value);
      },
    });
  }

  finished(summary: RequestSummary): void {
    const { role } = summary;
    const route = summary.route ?? 'none';
    const { outcome, code, attempts, usage } = summary;
    const name = `${role} ${route} ${outcome} ${code ?? ''}`;
    let tally = this.#tallies.get(name);
    if (tally === undefined) {
      tally = {
        labels: { role, route, outcome, code: code ?? '' },
        requests: 0,
        retries: 0,
        prompt: 0,
        completion: 0,
        usd: 0,
      };
      this.#tallies.set(name, tally);
    }
    tally.requests += 1;
    tally.retries += Math.max(0, attempts - 1);
    tally.prompt += usage?.promptTokens ?? 0;
    tally.completion += usage?.completionTokens ?? 0;
    tally.usd += usage?.costUsd ?? 0;
    if (summary.acrossGap) return;
    if (summary.queueMs !== null) this.#queue.observe({ role }, summary.queueMs / 1000);
    if (summary.outcome !== 'success') return;
    this.#duration.observe({ role, route }, summary.totalMs / 1000);
    if (summary.firstByteMs !== null) this.#firstByte.observe({ role, route }, summary.firstByteMs / 1000);
  }

  /** What was counted since the last time goes to the families. */
  #settle(): void {
    for (const { labels, requests, retries, prompt, completion, usd } of this.#tallies.values()) {
      const { role, route } = labels;
      this.#requests.inc(labels, requests);
      if (retries > 0) this.#retries.inc({ role }, retries);
      if (prompt > 0) this.#tokens.inc({ role, route, kind: 'prompt' }, prompt);
      if (completion > 0) this.#tokens.inc({ role, route, kind: 'completion' }, completion);
      if (usd > 0) this.#cost.inc({ role }, usd);
    }
    this.#tallies.clear();
  }

  /** Names of every family that is registered, for the check against docs/metrics.md. */
  names(): readonly string[] {
    return this.#registry.getMetricsAsArray().map(({ name }) => name);
  }

  /** Prometheus text format 0.0.4. */
  exposition(): Promise<string> {
    this.#settle();
    return this.#registry.metrics();
  }

  readonly contentType = 'text/plain; version=0.0.4; charset=utf-8';
}
