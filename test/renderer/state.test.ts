import { describe, expect, it } from 'vitest';
import { matchesAll, parseToken } from '../../preload/contract/request-filter.ts';
import type { TopicName, TopicUpdate } from '../../preload/contract.ts';
import { onKey, SEQUENCE_MS } from '../../renderer/app/shortcuts.ts';
import { names, patchOf } from '../../renderer/pages/role-side.tsx';
import { setups } from '../../renderer/pages/setups.ts';
import { applyUpdate, type TopicState } from '../../renderer/state/apply-update.ts';
import { createFeedStore } from '../../renderer/state/feed-store.ts';
import { withSamples } from '../../renderer/state/live-history.ts';
import { parsePlace, placeHash } from '../../renderer/state/ui-store.ts';
import type { Transport } from '../../renderer/transport/port.ts';
import { history, OVERVIEW, REQUESTS, ROLES } from '../support/console-data.ts';

const row = (id: string, running = 0) => ({ id, running }) as never;
const ids = (state: TopicState) => state.nodes?.map((node) => node.id);

describe('what was broadcast', () => {
  it('keeps rows in their place when they change, and adds new ones at the end', () => {
    let state = applyUpdate({}, { topic: 'nodes', type: 'snapshot', rows: [row('a'), row('b'), row('c')] });
    state = applyUpdate(state, { topic: 'nodes', type: 'delta', changed: [row('d'), row('b', 7)], removed: ['a'] });
    expect(state.nodes).toEqual([row('b', 7), row('c'), row('d')]);
  });

  it('leaves out a delta before its snapshot', () => {
    expect(applyUpdate({}, { topic: 'nodes', type: 'delta', changed: [row('a')], removed: [] })).toEqual({});
  });

  it('is replaced by a later snapshot, as after a lost connection', () => {
    const before = applyUpdate({}, { topic: 'nodes', type: 'snapshot', rows: [row('gone')] });
    expect(ids(applyUpdate(before, { topic: 'nodes', type: 'snapshot', rows: [row('a')] }))).toEqual(['a']);
  });

  it('of a log keeps only the newest rows', () => {
    const rows = Array.from({ length: 600 }, (_, i) => row(`r${i}`));
    const state = applyUpdate({}, { topic: 'requests', type: 'snapshot', rows });
    expect(state.requests).toHaveLength(500);
    expect(state.requests?.at(-1)?.id).toBe('r599');
  });

  it('is asked for only while somebody reads it', async () => {
    const wanted: (readonly TopicName[])[] = [];
    let tell: (update: TopicUpdate) => void = () => undefined;
    const feed = createFeedStore(
      {
        want: (topics: readonly TopicName[]) => wanted.push(topics),
        onUpdate: (listener: typeof tell) => {
          tell = listener;
          return () => undefined;
        },
        onConnection: () => () => undefined,
      } as unknown as Transport,
      () => 42,
    );
    const first = feed.subscribeTopic('nodes');
    const second = feed.subscribeTopic('nodes');
    feed.subscribeTopic('roles');
    await Promise.resolve();
    first();
    await Promise.resolve();
    second();
    await Promise.resolve();
    expect(wanted).toEqual([['nodes', 'roles'], ['roles']]);
    tell({ topic: 'nodes', type: 'snapshot', rows: [] });
    expect(feed.getState().heardAtMs).toBe(42);
  });
});

describe('live samples', () => {
  const sample = (atMs: number, value: number) => ({
    id: String(atMs),
    atMs,
    figures: OVERVIEW.figures,
    lastHour: OVERVIEW.lastHour,
    values: [{ id: 'permits.inFlight', value }],
  });

  it('continue the shortest range on its own step, unknown where they say nothing', () => {
    const past = history('5m');
    const end = past.atMs.at(-1) ?? 0;
    const step = past.stepMs;
    const longer = withSamples(past, [
      sample(end - 10, 1),
      sample(end + step / 2, 2),
      sample(end + step, 3),
      sample(end + 1.2 * step, 4),
    ]);
    expect(longer.atMs.slice(-1)).toEqual([end + step]);
    expect(longer.permits.find((series) => series.id === 'permits.inFlight')?.values.at(-1)).toBe(3);
    expect(longer.queue[0]?.values.at(-1)).toBeNull();
  });

  it('leave longer ranges alone', () => {
    const day = history('24h');
    expect(withSamples(day, [sample((day.atMs.at(-1) ?? 0) + 1e6, 1)])).toBe(day);
  });
});

describe('a place', () => {
  it('goes into the address and comes back', () => {
    const pages = ['overview', 'fleet', 'gate'] as const;
    const id = 'code-embedding~n1~e/1~m:4b';
    expect(parsePlace(placeHash('gate', id), pages)).toEqual({ page: 'gate', target: id });
    expect(parsePlace('#/fleet', pages)).toEqual({ page: 'fleet', target: null });
    for (const odd of ['', '#', '#/nope/x', '#ticket=abc', '#/fleet/%E0%A4%A'])
      expect(['overview', 'fleet']).toContain(parsePlace(odd, pages).page);
  });
});

describe('keys', () => {
  const press = (key: string, over: Partial<Parameters<typeof onKey>[1]> = {}) => ({
    key,
    command: false,
    alt: false,
    typing: false,
    free: true,
    atMs: 1000,
    ...over,
  });

  it('g and a letter go to a page, if the letter follows in time', () => {
    expect(onKey(null, press('g'), true)).toEqual({ pending: 1000, action: null });
    expect(onKey(1000, press('f', { atMs: 1400 }), true).action).toEqual({ do: 'go', page: 'fleet' });
    expect(onKey(1000, press('f', { atMs: 1001 + SEQUENCE_MS }), true).action).toBeNull();
    expect(onKey(1000, press('z'), true)).toEqual({ pending: null, action: null });
  });

  it('do nothing while text is typed or single keys are off; Ctrl K always opens the palette', () => {
    for (const key of ['g', '/', '?']) {
      expect(onKey(null, press(key, { typing: true }), true)).toEqual({ pending: null, action: null });
      expect(onKey(null, press(key), false)).toEqual({ pending: null, action: null });
    }
    expect(onKey(null, press('K', { command: true, typing: true }), false).action).toEqual({ do: 'palette' });
  });

  it('j, k and arrows go to the rows, where nothing else wants them', () => {
    for (const key of ['j', 'k', 'ArrowDown', 'ArrowUp']) {
      expect(onKey(null, press(key), true).action).toEqual({ do: 'rows' });
      expect(onKey(null, press(key, { typing: true }), true).action).toBeNull();
    }
    expect(onKey(null, press('ArrowDown', { free: false }), true).action).toBeNull();
    expect(onKey(null, press('ArrowDown'), false).action).toEqual({ do: 'rows' });
    expect(onKey(null, press('j'), false).action).toBeNull();
    expect(onKey(1000, press('k', { atMs: 1100 }), true).action).toEqual({ do: 'go', page: 'keys' });
  });

  it('no property of Object is a page', () => {
    expect(onKey(1000, press('constructor'), true).action).toBeNull();
  });
});

describe('filters of requests', () => {
  const [first] = REQUESTS;
  it('compare roles whole, so that embedding leaves out code-embedding', () => {
    if (!first) throw new Error('no request');
    const token = (typed: string) => {
      const parsed = parseToken(typed);
      return parsed ? [parsed] : [];
    };
    expect(first.role).toBe('code-embedding');
    expect(matchesAll(first, token('role:embedding'))).toBe(false);
    expect(matchesAll(first, token('role:code-embedding'))).toBe(true);
    expect(matchesAll(first, token('embedding'))).toBe(true);
    expect(matchesAll(first, token('model:qwen3'))).toBe(true);
  });

  it('take a model with a colon for a word, since no field is called so', () => {
    expect(parseToken('qwen3:8b')).toEqual({ field: null, value: 'qwen3:8b' });
    expect(parseToken('  ')).toBeNull();
    expect(parseToken('role:')).toBeNull();
  });
});

describe('the form of a role', () => {
  const chat = ROLES[3];
  const form = (over: Record<string, string>) => {
    const data = new FormData();
    const now = { cloudModel: 'poolside/laguna-s-2.1', upstreams: '' };
    for (const [name, value] of Object.entries({ ...now, ...over })) data.set(name, value);
    return data;
  };

  const SHOWN = { wait: 3, floor: null, threshold: null, dayCap: 20, monthCap: 200 };

  it('sends nothing when nothing was changed', () => {
    if (!chat) throw new Error('no role');
    expect(patchOf(chat, form({}), true, SHOWN)).toEqual({});
  });

  it('sends only what was changed, in the units of the contract', () => {
    if (!chat) throw new Error('no role');
    expect(patchOf(chat, form({ upstreams: 'poolside, ' }), true, { ...SHOWN, wait: 1.5, dayCap: null })).toEqual({
      maxLocalWaitMs: 1500,
      spendCaps: { dayUsd: null },
      cloud: { upstreams: ['poolside'] },
    });
    expect(patchOf(chat, form({ localModels: 'a\n b ,c' }), false, SHOWN)).toEqual({ localModels: ['a', 'b', 'c'] });
  });

  it('reads names as people write them', () => {
    expect(names(' , a,\n')).toEqual(['a']);
  });
});

it('every set-up names the address, the key and a role', () => {
  for (const { id, text } of setups('http://127.0.0.1:7411', 'KEY')) {
    expect(text, id).toContain('http://127.0.0.1:7411/v1');
    expect(text, id).toContain('KEY');
    expect(text, id).toMatch(/embedding|code-assistant/);
  }
});
