import { expect, test } from 'vitest';
import { ProjectCaps } from '../../main/cloud/project-caps.ts';
import type { NewEvent } from '../../main/domain/events.ts';
import type { ProjectId } from '../../main/domain/ids.ts';
import type { SpendCaps } from '../../main/domain/roles.ts';
import type { Json, SettingsStore } from '../../main/store/ports.ts';

/** As the store does it: what is read changes when the row is written. */
function settings(): SettingsStore & { full: boolean } {
  const kept = new Map<string, { value: Json; version: number }>();
  return {
    full: false,
    get: (name) => kept.get(name) ?? null,
    async put(name, value) {
      await Promise.resolve();
      if (this.full) throw new Error('disk full');
      const version = (kept.get(name)?.version ?? 0) + 1;
      kept.set(name, { value, version });
      return version;
    },
  };
}

function stored(store: SettingsStore): Record<string, SpendCaps> {
  const found: Record<string, SpendCaps> = {};
  capsIn(store, (project, caps) => {
    found[project] = caps;
  }).start();
  return found;
}

/** Of a house with the projects `one` and `two`. */
function capsIn(
  store: SettingsStore,
  apply: (project: ProjectId, caps: SpendCaps) => void = () => {},
  events: NewEvent[] = [],
): ProjectCaps {
  return new ProjectCaps({
    store,
    events: { record: (event) => events.push(event) },
    projects: () => ['one', 'two'] as ProjectId[],
    apply,
  });
}

test('caps that are set at once are all kept', async () => {
  const store = settings();
  const caps = capsIn(store);
  await Promise.all([
    caps.change('one' as ProjectId, { dayUsd: 1 }),
    caps.change('two' as ProjectId, { dayUsd: 2 }),
    caps.change('one' as ProjectId, { monthUsd: 9 }),
  ]);
  expect(stored(store)).toEqual({ one: { dayUsd: 1, monthUsd: 9 }, two: { dayUsd: 2, monthUsd: null } });
});

test('a cap that the store refuses is not applied, and does not hold up the next one', async () => {
  const store = settings();
  const applied: string[] = [];
  const caps = capsIn(store, (project) => applied.push(project));
  store.full = true;
  await expect(caps.change('one' as ProjectId, { dayUsd: 1 })).rejects.toThrow('disk full');
  store.full = false;
  await caps.change('two' as ProjectId, { dayUsd: 2 });
  expect(applied).toEqual(['two']);
  expect(stored(store)).toEqual({ two: { dayUsd: 2, monthUsd: null } });
});

test('a cap that is there and cannot be understood lets nothing be spent, and takes no other cap with it', async () => {
  const store = settings();
  const good = { dayUsd: 1, monthUsd: null };
  await store.put('project-caps', { good, odd: { dayUsd: 'ten', monthUsd: 5 }, none: null });
  const nothing = { dayUsd: 0, monthUsd: 0 };
  expect(stored(store)).toEqual({ good, odd: nothing, none: nothing });
  await capsIn(store).change('odd' as ProjectId, { dayUsd: 10, monthUsd: null });
  expect(stored(store)).toMatchObject({ good, odd: { dayUsd: 10, monthUsd: null } });
});

test.each([[null], ['torn'], [[]]])(
  'caps that are %j let no project spend, and say what to do, until each is set again',
  async (row) => {
    const store = settings();
    await store.put('project-caps', row);
    const nothing = { dayUsd: 0, monthUsd: 0 };
    expect(stored(store)).toEqual({ one: nothing, two: nothing });
    const events: NewEvent[] = [];
    capsIn(store, undefined, events).start();
    expect(events).toMatchObject([{ code: 'project_caps_unread', severity: 'error', needsPerson: true }]);
    await capsIn(store).change('one' as ProjectId, { dayUsd: 10, monthUsd: null });
    expect(stored(store)).toEqual({ one: { dayUsd: 10, monthUsd: null }, two: nothing });
    capsIn(store, undefined, events).start();
    expect(events).toHaveLength(1);
  },
);

test('no caps at all are no damage', () => {
  const events: NewEvent[] = [];
  capsIn(settings(), undefined, events).start();
  expect(events).toEqual([]);
});
