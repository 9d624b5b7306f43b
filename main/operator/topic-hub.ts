import { TOPIC_NAMES, type TopicName, type TopicUpdate, type ValueTopicName } from '../../preload/contract.ts';
import type { Clock } from '../domain/time.ts';
import { eventView, figures, lastHour } from './activity.ts';
import { settingsView } from './documents.ts';
import { verdictViews } from './gate-views.ts';
import { healthItems } from './health.ts';
import type { House } from './house.ts';
import { nodeViews } from './node-views.ts';
import { providerViews } from './provider-views.ts';
import { requestView } from './request-views.ts';
import { roleViews } from './role-views.ts';

type Listener = (update: TopicUpdate) => void;
interface Row {
  readonly id: string;
}
const ROW_TOPICS = ['nodes', 'providers', 'roles', 'gate', 'health'] as const;
type RowTopicName = (typeof ROW_TOPICS)[number];

/** Row topics are looked at this often while somebody listens: the readers' own 2 Hz. */
const LOOK_MS = 500;
const SAMPLE_MS = 1_000;
/** Rows of a log topic's snapshot. */
const LOG_ROWS = 500;

const NOBODY: readonly Listener[] = [];

/**
 * What consoles hear: a snapshot of each topic, then what changed. Rows are compared with what was sent last, so that nothing
 * is sent because a room said "something" and nothing is forgotten because it did not. Works only while somebody listens.
 */
export class TopicHub {
  readonly #house: House;
  readonly #clock: Clock;
  readonly #appInfo: () => unknown;
  readonly #listeners = new Map<Listener, ReadonlySet<TopicName>>();
  readonly #sent = new Map<TopicName, Map<string, string>>();
  readonly #sentValues = new Map<TopicName, string>();
  #cancelLook: (() => void) | null = null;
  #lastSampleMs = 0;
  readonly #unsubscribe: (() => void)[] = [];

  constructor(house: House, appInfo: () => unknown) {
    this.#house = house;
    this.#clock = house.clock;
    this.#appInfo = appInfo;
  }

  start(): void {
    const { requests, events } = this.#house;
    this.#unsubscribe.push(
      requests.subscribe(({ summary }) => {
        // Asked before the view is made: hundreds may end in a second, and mostly nobody looks.
        if (this.#wanted('requests').length > 0) this.#push('requests', requestView(summary, this.#house), false);
      }),
      events.subscribe((event) => this.#push('events', eventView(event), event.needsPerson)),
    );
  }

  stop(): void {
    for (const unsubscribe of this.#unsubscribe.splice(0)) unsubscribe();
    this.#cancelLook?.();
    this.#cancelLook = null;
    this.#listeners.clear();
  }

  /** Sends a snapshot of every topic before it returns, then changes. @returns its own unsubscribe. */
  subscribe(topics: readonly string[], listener: Listener): () => void {
    const wanted = new Set(TOPIC_NAMES.filter((topic) => topics.includes(topic)));
    for (const topic of wanted) listener(this.#snapshot(topic));
    this.#listeners.set(listener, wanted);
    this.#schedule();
    return () => {
      this.#listeners.delete(listener);
    };
  }

  #wanted(topic: TopicName): readonly Listener[] {
    if (this.#listeners.size === 0) return NOBODY;
    return [...this.#listeners].flatMap(([listener, topics]) => (topics.has(topic) ? [listener] : []));
  }

  #schedule(): void {
    if (this.#cancelLook || this.#listeners.size === 0) return;
    this.#cancelLook = this.#clock.after(LOOK_MS, () => {
      this.#cancelLook = null;
      this.#look();
      this.#schedule();
    });
  }

  #look(): void {
    for (const topic of ROW_TOPICS) {
      const listeners = this.#wanted(topic);
      if (listeners.length > 0) this.#tellRows(topic, this.#rows(topic), listeners);
    }
    for (const topic of ['budget', 'cloud', 'app', 'settings'] as const) {
      const listeners = this.#wanted(topic);
      if (listeners.length > 0) this.#tellValue(topic, this.#value(topic), listeners);
    }
    const nowMs = this.#clock.nowMs();
    if (nowMs - this.#lastSampleMs >= SAMPLE_MS && this.#wanted('series').length > 0) {
      this.#lastSampleMs = nowMs;
      this.#push('series', this.#sample(), false);
    }
  }

  #rows(topic: RowTopicName): readonly Row[] {
    switch (topic) {
      case 'nodes':
        return nodeViews(this.#house);
      case 'providers':
        return providerViews(this.#house);
      case 'roles':
        return roleViews(this.#house);
      case 'gate':
        return verdictViews(this.#house);
      case 'health':
        return healthItems(this.#house);
    }
  }

  #value(topic: ValueTopicName): unknown {
    switch (topic) {
      case 'budget':
        return this.#house.cloud.budget();
      case 'cloud':
        return this.#house.cloud.status();
      case 'app':
        return this.#appInfo();
      case 'settings':
        return settingsView(this.#house);
    }
  }

  #snapshot(topic: TopicName): TopicUpdate {
    switch (topic) {
      case 'requests': {
        const rows = this.#house.requests.list().slice(0, LOG_ROWS).reverse();
        return { topic, type: 'snapshot', rows: rows.map(({ summary }) => requestView(summary, this.#house)) };
      }
      case 'events':
        return { topic, type: 'snapshot', rows: this.#house.events.recent().map(eventView) };
      case 'series':
        return { topic, type: 'snapshot', rows: [this.#sample()] };
      case 'budget':
      case 'cloud':
      case 'app':
      case 'settings': {
        const value = this.#value(topic);
        this.#tellValue(topic, value, this.#wanted(topic));
        return { topic, type: 'value', value } as TopicUpdate;
      }
      default: {
        const rows = this.#rows(topic);
        // What everybody hears from then on is told against this: others hear what is new to them now.
        this.#tellRows(topic, rows, this.#wanted(topic));
        return { topic, type: 'snapshot', rows } as TopicUpdate;
      }
    }
  }

  #tellRows(topic: RowTopicName, rows: readonly Row[], listeners: readonly Listener[]): void {
    const now = fingerprints(rows);
    const before = this.#sent.get(topic) ?? new Map<string, string>();
    this.#sent.set(topic, now);
    const changed = rows.filter(({ id }) => before.get(id) !== now.get(id));
    const removed = [...before.keys()].filter((id) => !now.has(id));
    if (changed.length === 0 && removed.length === 0) return;
    const urgent = topic === 'health';
    const update = { topic, type: 'delta', changed, removed, ...(urgent ? { urgent } : {}) } as unknown as TopicUpdate;
    for (const listener of listeners) listener(update);
  }

  #tellValue(topic: ValueTopicName, value: unknown, listeners: readonly Listener[]): void {
    const text = JSON.stringify(value);
    if (this.#sentValues.get(topic) === text) return;
    this.#sentValues.set(topic, text);
    for (const listener of listeners) listener({ topic, type: 'value', value } as TopicUpdate);
  }

  #push(topic: 'requests' | 'events' | 'series', row: Row, urgent: boolean): void {
    const update = {
      topic,
      type: 'delta',
      changed: [row],
      removed: [],
      ...(urgent ? { urgent } : {}),
    } as unknown as TopicUpdate;
    for (const listener of this.#wanted(topic)) listener(update);
  }

  #sample() {
    const atMs = Math.round(this.#clock.wallMs());
    const { atMs: axis, series } = this.#house.series.read('5m', atMs);
    const last = axis.length - 1;
    return {
      id: String(atMs),
      atMs,
      figures: figures(this.#house),
      lastHour: lastHour(this.#house),
      values: [...series]
        .filter(([id]) => !id.startsWith('node.') && !id.startsWith('count.'))
        .map(([id, values]) => ({ id, value: values[last] ?? null })),
    };
  }
}

/** Ages count on by themselves: a row is not new because a second passed. */
function fingerprints(rows: readonly Row[]): Map<string, string> {
  const ticking = new Set(['lastHeartbeatAgeMs', 'lastHeartbeatAtMs', 'oldestWaitMs', 'sinceMs']);
  return new Map(
    rows.map((row) => [row.id, JSON.stringify(row, (name, value) => (ticking.has(name) ? undefined : value))]),
  );
}
