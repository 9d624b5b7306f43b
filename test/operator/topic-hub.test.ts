import { expect, it } from 'vitest';
import { defaultRoleSettings, ROLE_IDS } from '../../main/domain/roles.ts';
import type { House } from '../../main/operator/house.ts';
import { TopicHub } from '../../main/operator/topic-hub.ts';
import type { TopicUpdate } from '../../preload/contract.ts';
import { ManualClock } from '../gateway/manual-clock.ts';

/** A house whose database breaks and heals as the test says, and what one listener knows of its health. */
function make() {
  const clock = new ManualClock();
  const store = { state: 'ok' };
  const house = {
    clock,
    store: { health: () => ({ ...store, problems: [], reason: null }) },
    discovery: { problem: null },
    fleet: { nodes: () => [] },
    gate: { verdicts: () => [], roleSpace: () => ({ state: 'founding' }) },
    roles: () => Object.fromEntries(ROLE_IDS.map((id) => [id, defaultRoleSettings(id)])),
    cloud: { status: () => ({ state: 'no-agent', holders: [], lastPush: null }), cappedOut: () => [] },
    app: { startedAtMs: 0, listening: () => null },
    requests: { list: () => [] },
    routed: () => [],
    healthSince: () => 7,
  } as unknown as House;
  const hub = new TopicHub(house, () => null);
  const listen = () => {
    const rows = new Set<string>();
    const leave = hub.subscribe(['health'], (update: TopicUpdate) => {
      if (update.type === 'value') return;
      for (const row of update.type === 'snapshot' ? update.rows : update.changed) rows.add(row.id);
      for (const id of update.type === 'delta' ? update.removed : []) rows.delete(id);
    });
    return { knows: () => [...rows], leave };
  };
  return { clock, store, listen };
}

it('a newcomer hears that something is over that only its own snapshot has told', () => {
  const { clock, store, listen } = make();
  const first = listen();
  store.state = 'degraded';
  const second = listen();
  // The others do not wait for the next look either: what is told from now on is told against this snapshot.
  expect([first.knows(), second.knows()]).toEqual([['store'], ['store']]);
  store.state = 'ok';
  clock.advance(500);
  expect([first.knows(), second.knows()]).toEqual([[], []]);
});

it('what was over before anybody listened again comes back for those who do', () => {
  const { clock, store, listen } = make();
  store.state = 'degraded';
  listen().leave();
  store.state = 'ok';
  const later = listen();
  expect(later.knows()).toEqual([]);
  store.state = 'degraded';
  clock.advance(500);
  expect(later.knows()).toEqual(['store']);
});
