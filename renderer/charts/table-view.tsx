import type { ReactElement } from 'react';
import { useI18n } from '../i18n/i18n.tsx';
import type { Point } from './points.ts';
import type { ChartMark, ChartSeries, ChartSpan } from './time-series.tsx';

/** The same points as figures, newest first, and to the second what is drawn across them. */
export function TableView(props: {
  readonly label: string;
  readonly points: readonly Point[];
  readonly series: readonly ChartSeries[];
  readonly marks: readonly ChartMark[];
  readonly spans: readonly ChartSpan[];
  readonly format: (value: number | null) => string;
}): ReactElement {
  const { t, f } = useI18n();
  const happened = happenings(props, (key, atMs) => t(key, { time: f.clock(atMs) }), f.clock);
  return (
    <table className="compact">
      <caption className="visually-hidden">{props.label}</caption>
      <thead>
        <tr>
          <th scope="col">{t('chart.time')}</th>
          {props.series.map((series) => (
            <th key={series.id} scope="col" className="right">
              {series.label}
            </th>
          ))}
          {happened.size > 0 && <th scope="col">{t('chart.happened')}</th>}
        </tr>
      </thead>
      <tbody>
        {props.points.toReversed().map((point) => (
          <tr key={point.atMs}>
            <td className="num">{f.clock(point.atMs)}</td>
            {props.series.map((series) => (
              <td key={series.id} className="right">
                {props.format(point[series.id] ?? null)}
              </td>
            ))}
            {happened.size > 0 && <td>{happened.get(point.atMs)?.join('; ')}</td>}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

interface Drawn {
  readonly points: readonly Point[];
  readonly marks: readonly ChartMark[];
  readonly spans: readonly ChartSpan[];
}

/** Row's moment -> what happened from then until the next row. What came before the first row is left out. */
function happenings(
  { points, marks, spans }: Drawn,
  until: (key: 'chart.cooling' | 'chart.notSampled', atMs: number) => string,
  clock: (atMs: number) => string,
): ReadonlyMap<number, readonly string[]> {
  const all = [
    ...marks.map(({ atMs, sentence }) => ({ atMs, words: sentence })),
    ...spans.map(({ fromMs, toMs, kind }) => ({
      atMs: fromMs,
      words: until(kind === 'cooldown' ? 'chart.cooling' : 'chart.notSampled', toMs),
    })),
  ].sort((a, b) => a.atMs - b.atMs);
  const found = new Map<number, string[]>();
  for (const { atMs, words } of all) {
    const row = points.findLast((point) => point.atMs <= atMs);
    if (!row) continue;
    found.set(row.atMs, [...(found.get(row.atMs) ?? []), `${clock(atMs)} ${words}`]);
  }
  return found;
}
