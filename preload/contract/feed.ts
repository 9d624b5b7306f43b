import type { TopicName } from './names.ts';
import type { TopicUpdate } from './topics.ts';

/** At most one message per topic in this many milliseconds: 2 Hz. */
export const FEED_INTERVAL_MS = 500;

interface FeedPorts {
  readonly send: (update: TopicUpdate) => void;
  /** Runs once after the delay; the returned function cancels it. */
  readonly after: (delayMs: number, callback: () => void) => () => void;
}

type Row = { readonly id: string };
type Held =
  | { readonly type: 'rows'; snapshot: boolean; readonly changed: Map<string, Row>; readonly removed: Set<string> }
  | { readonly type: 'value'; value: unknown };

/**
 * Coalesces the updates of one reader to 2 Hz per reader. Snapshots and what is marked urgent go at once (with what is held of
 * the same topic, so that order is kept); while the reader is hidden everything else is merged and waits, in bounded memory.
 */
export class Feed {
  readonly #ports: FeedPorts;
  readonly #held = new Map<TopicName, Held>();
  #cancel: (() => void) | null = null;
  #hidden = false;
  #closed = false;

  constructor(ports: FeedPorts) {
    this.#ports = ports;
  }

  push(update: TopicUpdate): void {
    if (this.#closed) return;
    this.#hold(update);
    if (update.type === 'snapshot' || update.urgent === true) this.#flush(update.topic);
    else if (!this.#hidden) this.#schedule();
  }

  /** Hidden readers get only snapshots and what is urgent; the rest follows, merged, when they are seen again. */
  setHidden(hidden: boolean): void {
    this.#hidden = hidden;
    if (hidden) {
      this.#cancel?.();
      this.#cancel = null;
    } else if (this.#held.size > 0) this.#schedule();
  }

  /** Drops what is held of topics that are no longer wanted. */
  keep(topics: ReadonlySet<TopicName>): void {
    for (const topic of this.#held.keys()) if (!topics.has(topic)) this.#held.delete(topic);
  }

  close(): void {
    this.#closed = true;
    this.#cancel?.();
    this.#cancel = null;
    this.#held.clear();
  }

  #schedule(): void {
    this.#cancel ??= this.#ports.after(FEED_INTERVAL_MS, () => {
      this.#cancel = null;
      for (const topic of [...this.#held.keys()]) this.#flush(topic);
    });
  }

  #hold(update: TopicUpdate): void {
    if (update.type === 'value') {
      this.#held.set(update.topic, { type: 'value', value: update.value });
      return;
    }
    if (update.type === 'snapshot') {
      const changed = new Map<string, Row>(update.rows.map((row) => [row.id, row]));
      this.#held.set(update.topic, { type: 'rows', snapshot: true, changed, removed: new Set() });
      return;
    }
    let held = this.#held.get(update.topic);
    if (held?.type !== 'rows') {
      held = { type: 'rows', snapshot: false, changed: new Map(), removed: new Set() };
      this.#held.set(update.topic, held);
    }
    for (const row of update.changed) {
      held.changed.delete(row.id); // re-inserted last: logs keep their order
      held.changed.set(row.id, row);
      held.removed.delete(row.id);
      if (held.changed.size > MOST_HELD) {
        const oldest = held.changed.keys().next().value;
        if (oldest !== undefined) held.changed.delete(oldest);
      }
    }
    for (const id of update.removed) {
      held.changed.delete(id);
      if (!held.snapshot) held.removed.add(id);
    }
  }

  #flush(topic: TopicName): void {
    const held = this.#held.get(topic);
    if (!held) return;
    this.#held.delete(topic);
    // The parts came in as updates of this topic, so together they are one as well.
    const update =
      held.type === 'value'
        ? { topic, type: 'value' as const, value: held.value }
        : held.snapshot
          ? { topic, type: 'snapshot' as const, rows: [...held.changed.values()] }
          : { topic, type: 'delta' as const, changed: [...held.changed.values()], removed: [...held.removed] };
    this.#ports.send(update as TopicUpdate);
  }
}

/** Rows of one topic that wait for a hidden reader; more than any topic's readers keep. */
const MOST_HELD = 2000;
