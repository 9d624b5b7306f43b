import { describe, expect, it } from 'vitest';
import { chartMarks } from '../../renderer/charts/marks.ts';
import {
  labelSides,
  lastKnown,
  MAX_POINTS,
  roundMaximum,
  sumBuckets,
  ticks,
  timeTicks,
  toPoints,
  valueTicks,
} from '../../renderer/charts/points.ts';
import { seriesStyle } from '../../renderer/charts/series-style.ts';
import { shortened } from '../../renderer/components/short.tsx';
import { createI18n } from '../../renderer/i18n/i18n.tsx';

const axis = (values: (number | null)[], stepMs = 1000) => ({
  atMs: values.map((_, i) => i * stepMs),
  series: [{ id: 's', values }],
});

describe('points of a chart', () => {
  it('keep an unknown value as a gap', () => {
    expect(toPoints(axis([1, null, 3]), 1000)).toEqual([
      { atMs: 0, s: 1 },
      { atMs: 1000, s: null },
      { atMs: 2000, s: 3 },
    ]);
  });

  it('get an empty row where nothing was sampled for more than 2.5 steps', () => {
    const points = toPoints({ atMs: [0, 1000, 9000], series: [{ id: 's', values: [1, 2, 3] }] }, 1000);
    expect(points).toEqual([{ atMs: 0, s: 1 }, { atMs: 1000, s: 2 }, { atMs: 1001 }, { atMs: 9000, s: 3 }]);
  });

  it('are at most 400, and a peak of one sample survives', () => {
    const values = Array.from({ length: 5000 }, () => 1);
    values[3333] = 50;
    const points = toPoints(axis(values), 1000);
    expect(points.length).toBeLessThanOrEqual(MAX_POINTS);
    expect(Math.max(...points.map((point) => point.s ?? 0))).toBe(50);
  });

  it('are summed for bars on an even grid, and an empty stretch stays empty', () => {
    // 0, 1, 2 s | 3, 4, 5 s | 6 s: 1 + 2, then 4 alone, then 7 alone; middles at 1.5, 4.5 and 7.5 s
    const summed = sumBuckets(axis([1, 2, null, 4, null, null, 7]), 3000);
    expect(summed).toEqual({ atMs: [1500, 4500, 7500], series: [{ id: 's', values: [3, 4, 7] }] });
    expect(sumBuckets(axis([null, null]), 2000).series[0]?.values).toEqual([null]);
    // Live samples come when they come; their bars stay where bars are.
    const live = sumBuckets({ atMs: [0, 1000, 2950, 3900], series: [{ id: 's', values: [1, 1, 1, 1] }] }, 2000);
    expect(live).toEqual({ atMs: [1000, 3000], series: [{ id: 's', values: [2, 2] }] });
    expect(sumBuckets({ atMs: [], series: [] }, 2000)).toEqual({ atMs: [], series: [] });
  });
});

describe('an axis', () => {
  it('says no figure twice', () => {
    const whole = (value: number) => String(Math.round(value));
    expect(valueTicks(0, 20, whole)).toEqual([0, 10, 20]);
    // 0.5 would read "1" too
    expect(valueTicks(0, 1, whole)).toEqual([0, 1]);
    expect(valueTicks(0, 0.4, whole)).toEqual([0]);
  });

  it('ends at a round number whose half is round', () => {
    expect(roundMaximum(16.2, false)).toBe(20);
    expect(roundMaximum(231, false)).toBe(300);
    expect(roundMaximum(0.3, false)).toBeCloseTo(0.3, 10);
    expect(roundMaximum(0, false)).toBe(1);
  });

  it('of counts has a whole half', () => {
    for (const value of [0, 1, 2, 3, 5, 7, 9, 16, 99, 1001]) {
      const top = roundMaximum(value, true);
      expect(top).toBeGreaterThanOrEqual(value);
      expect(Number.isInteger(top / 2), String(value)).toBe(true);
    }
  });

  it('has ticks from edge to edge', () => {
    expect(ticks(0, 100)).toEqual([0, 25, 50, 75, 100]);
  });

  it('has its times where a clock shows round figures, and none near its end', () => {
    const minute = 60_000;
    // 5 min from 10:00:30: whole minutes, 10:05 is 30 s before the end.
    expect(timeTicks(600.5 * minute, 605.5 * minute, 0, 0.09)).toEqual(
      [601, 602, 603, 604, 605].map((at) => at * minute),
    );
    expect(timeTicks(600 * minute, 605 * minute, 0, 0.09).at(-1)).toBe(604 * minute);
    // In a narrow chart 10:05 would lie on "now".
    expect(timeTicks(600.5 * minute, 605.5 * minute, 0, 0.18).at(-1)).toBe(604 * minute);
    // A day in a zone half an hour ahead: 06:00 there is 05:30 here.
    expect(timeTicks(0, 1440 * minute, 30 * minute, 0.09)).toEqual([330, 690, 1050].map((at) => at * minute));
    // Weeks: even parts.
    expect(timeTicks(0, 28 * 1440 * minute, 0, 0.09)).toEqual(ticks(0, 28 * 1440 * minute));
  });
});

describe('labels of marks', () => {
  it('stand after their line, before it near the right edge, and not on each other', () => {
    const [first, near, late] = [{ atMs: 100 }, { atMs: 200 }, { atMs: 900 }];
    const sides = labelSides([first, near, late], 0, 1000, 0.3);
    expect([sides.get(first), sides.get(near), sides.get(late)]).toEqual(['after', undefined, 'before']);
  });
});

describe('the look of a series', () => {
  it('belongs to the entity, whatever else is shown', () => {
    expect(seriesStyle('queue.embedding')).toEqual(seriesStyle('queue.embedding'));
    expect(seriesStyle('429.nebius')).toEqual(seriesStyle('429.nebius'));
  });

  it('tells the roles apart by colour, and by dash or marker without it', () => {
    const looks = ['embedding', 'code-embedding', 'reranker', 'code-assistant', 'rlm'].map((id) =>
      seriesStyle(`queue.${id}`),
    );
    expect(new Set(looks.map((look) => look.colour)).size).toBe(5);
    expect(new Set(looks.map((look) => look.marker)).size).toBe(5);
  });

  it('is of the orange family for the cloud and never for local work', () => {
    for (let n = 0; n < 50; n += 1) {
      expect(['orange', 'amber']).toContain(seriesStyle(`p${n}`, 'cloud').colour);
      expect(['orange', 'amber']).not.toContain(seriesStyle(`p${n}`, 'local').colour);
    }
  });
});

it('finds the newest value that is known', () => {
  expect(lastKnown([1, 2, null])).toBe(2);
  expect(lastKnown([0, null])).toBe(0);
  expect(lastKnown([null])).toBeNull();
});

describe('a mark', () => {
  it('has a short word, and a cut its figures where the budget remembers it', () => {
    const marks = [
      { atMs: 1000, kind: 'restart' as const, sentence: 'Serving at http://127.0.0.1:7411.' },
      { atMs: 60_000, kind: 'cut' as const, sentence: 'OpenRouter limited the account.' },
      { atMs: 90_000, kind: 'cut' as const, sentence: 'OpenRouter limited the account.' },
    ];
    const cuts = [{ atMs: 60_400, from: 16, to: 8, cause: { code: 'account', sentence: '' } }];
    const labels = chartMarks(marks, cuts, createI18n('en')).map(({ label }) => label);
    expect(labels).toEqual(['restart', 'cut 16 → 8', 'cut']);
  });

  it('of a cut stands at the moment that the budget remembers, the nearest of two', () => {
    const cause = { code: 'account', sentence: '' };
    const cuts = [
      { atMs: 59_000, from: 16, to: 8, cause },
      { atMs: 59_990, from: 8, to: 4, cause },
    ];
    const marks = [{ atMs: 60_010, kind: 'cut' as const, sentence: 'OpenRouter limited the account.' }];
    expect(chartMarks(marks, cuts, createI18n('en'))).toMatchObject([{ atMs: 59_990, label: 'cut 8 → 4' }]);
  });

  it('of a machine bears its name', () => {
    const marks = [{ atMs: 1000, kind: 'node' as const, sentence: 'studio: the connection to the agent broke' }];
    expect(chartMarks(marks, [], createI18n('en'))).toMatchObject([{ label: 'studio' }]);
  });
});

describe('a long name', () => {
  it('keeps its beginning and its end', () => {
    expect(shortened('qwen3:8b', 10)).toBe('qwen3:8b');
    // 9 characters beside the sign: ceil(9 * 0.55) = 5 at the end, 4 at the beginning
    expect(shortened('/models/qwen3-coder-30b.gguf', 10)).toBe('/mod….gguf');
    expect([...shortened('日本語の長いモデル名です', 8)]).toHaveLength(8);
  });
});
