import { describe, expect, it } from 'vitest';
import { FEED_INTERVAL_MS, Feed, type TopicName, type TopicUpdate } from '../../preload/contract.ts';

/** Rows are opaque to the feed: ids are enough here. */
const row = (id: string, running = 0) => ({ id, running }) as never;
const delta = (topic: 'nodes' | 'health', changed: never[], removed: string[] = [], urgent = false) =>
  ({ topic, type: 'delta', changed, removed, urgent }) as TopicUpdate;

function rig() {
  const sent: TopicUpdate[] = [];
  let timer: { at: number; run: () => void } | null = null;
  let now = 0;
  const feed = new Feed({
    send: (update) => sent.push(update),
    after: (delay, run) => {
      timer = { at: now + delay, run };
      return () => {
        timer = null;
      };
    },
  });
  const advance = (span: number) => {
    now += span;
    const due = timer;
    if (due && due.at <= now) {
      timer = null;
      due.run();
    }
  };
  return { feed, sent, advance };
}

describe('a reader of the feed', () => {
  it('gets the snapshot at once and deltas at most twice a second, the newest row of each id', () => {
    const { feed, sent, advance } = rig();
    feed.push({ topic: 'nodes', type: 'snapshot', rows: [row('a')] });
    expect(sent).toEqual([{ topic: 'nodes', type: 'snapshot', rows: [row('a')] }]);
    feed.push(delta('nodes', [row('a', 1)]));
    feed.push(delta('nodes', [row('b', 1)]));
    feed.push(delta('nodes', [row('a', 2)], ['b']));
    expect(sent).toHaveLength(1);
    advance(FEED_INTERVAL_MS);
    expect(sent[1]).toEqual({ topic: 'nodes', type: 'delta', changed: [row('a', 2)], removed: ['b'] });
    advance(FEED_INTERVAL_MS);
    expect(sent).toHaveLength(2);
  });

  it('gets what needs a person at once', () => {
    const { feed, sent } = rig();
    feed.push(delta('health', [row('key-missing')], [], true));
    expect(sent).toEqual([{ topic: 'health', type: 'delta', changed: [row('key-missing')], removed: [] }]);
  });

  it('gets nothing but urgent news while hidden, and one merged delta when seen again', () => {
    const { feed, sent, advance } = rig();
    feed.setHidden(true);
    for (let running = 1; running <= 100; running += 1) feed.push(delta('nodes', [row('a', running)]));
    feed.push(delta('health', [row('x')], [], true));
    advance(60_000);
    expect(sent.map((update) => update.topic)).toEqual(['health']);
    feed.setHidden(false);
    advance(FEED_INTERVAL_MS);
    expect(sent[1]).toEqual({ topic: 'nodes', type: 'delta', changed: [row('a', 100)], removed: [] });
  });

  it('holds a bounded number of rows for a hidden reader, the newest', () => {
    const { feed, sent, advance } = rig();
    feed.setHidden(true);
    for (let n = 0; n < 5000; n += 1) feed.push(delta('nodes', [row(`r${n}`)]));
    feed.setHidden(false);
    advance(FEED_INTERVAL_MS);
    const update = sent[0] as unknown as { changed: { id: string }[] };
    expect(update.changed).toHaveLength(2000);
    expect(update.changed.at(-1)?.id).toBe('r4999');
  });

  it('sends nothing of topics that are no longer wanted, and nothing after close', () => {
    const { feed, sent, advance } = rig();
    feed.push(delta('nodes', [row('a')]));
    feed.keep(new Set<TopicName>(['health']));
    advance(FEED_INTERVAL_MS);
    feed.push(delta('health', [row('x')]));
    feed.close();
    advance(FEED_INTERVAL_MS);
    expect(sent).toEqual([]);
  });
});
