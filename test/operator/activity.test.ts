import { expect, it } from 'vitest';
import { saidOfSource } from '../../main/budget/sources.ts';
import { defaultRoleSettings, ROLE_IDS } from '../../main/domain/roles.ts';
import { overview } from '../../main/operator/activity.ts';
import type { House } from '../../main/operator/house.ts';

const NOW_MS = 10_000_000;

it('a cut of before a restart is a mark, as the budget remembers it; one before the chart is none', () => {
  const started = { code: 'started', atMs: NOW_MS - 60_000, sentence: 'Started.' };
  // The event of a cut is told beside its record, and draws no second line.
  const told = { code: 'budget_cut', atMs: NOW_MS - 100_000, sentence: 'Cut.' };
  const cut = (atMs: number) => ({ atMs, from: 32, to: 16, cause: saidOfSource('account limit') });
  const house = {
    clock: { wallMs: () => NOW_MS },
    series: { read: () => ({ atMs: [NOW_MS - 300_000, NOW_MS], series: new Map() }) },
    requests: { list: () => [] },
    router: () => ({ roles: [], providers: [] }),
    roles: () => Object.fromEntries(ROLE_IDS.map((id) => [id, defaultRoleSettings(id)])),
    events: { recent: () => [told, started] },
    cloud: {
      budget: () => ({ cuts: [cut(NOW_MS - 400_000), cut(NOW_MS - 100_000)], spendByRole: [] }),
      spentUsd: () => ({ dayUsd: 0, monthUsd: 0 }),
      cooldowns: () => [],
    },
  } as unknown as House;
  expect(overview('5m', 'rlm', house).history.marks).toEqual([
    {
      atMs: NOW_MS - 100_000,
      kind: 'cut',
      sentence: 'OpenRouter limited the account: 32 permits became 16.',
      says: { code: 'budget_cut', params: { from: 32, to: 16 } },
    },
    { atMs: NOW_MS - 60_000, kind: 'restart', sentence: 'Started.' },
  ]);
});
