import type { EventRecord, EventSink, NewEvent } from '../domain/events.ts';
import { told } from '../domain/said.ts';
import type { Clock, Random } from '../domain/time.ts';

/** Events kept in memory for readers that come later; the store keeps 30 days. */
const RECENT = 1000;

/** Epoch ms that the id of an event begins with: ids sort by time and are unique over restarts. Null: no id of an event. */
export function timeOfEventId(id: string): number | null {
  const [, time] = /^([0-9a-z]{8,9})-[0-9a-z]{5,}$/.exec(id) ?? [];
  return time === undefined ? null : Number.parseInt(time, 36);
}

/**
 * The events of this process, newest last. Writing to the store is the composition root's subscription, so that a broken disk
 * never silences the log.
 */
export class EventLog implements EventSink {
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #recent: EventRecord[] = [];
  readonly #listeners = new Set<(event: EventRecord) => void>();
  #sequence = 0;

  constructor(clock: Clock, random: Random) {
    this.#clock = clock;
    this.#random = random;
  }

  record({ says, code = says.code, ...event }: NewEvent): void {
    this.#sequence += 1;
    const suffix = Math.floor(this.#random() * 0x1_0000)
      .toString(16)
      .padStart(4, '0');
    const atMs = this.#clock.wallMs();
    const record: EventRecord = {
      ...event,
      code,
      ...told(says),
      needsPerson: event.needsPerson ?? false,
      atMs,
      id: `${Math.floor(atMs).toString(36)}-${this.#sequence.toString(36)}${suffix}`,
    };
    this.#recent.push(record);
    if (this.#recent.length > RECENT) this.#recent.shift();
    for (const listener of this.#listeners) listener(record);
  }

  recent(): readonly EventRecord[] {
    return this.#recent;
  }

  /** @returns its own unsubscribe. */
  subscribe(listener: (event: EventRecord) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}
