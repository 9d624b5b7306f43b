import type { ReactElement } from 'react';
import { useI18n } from '../i18n/i18n.tsx';
import type { Point } from './points.ts';
import type { ChartSeries } from './time-series.tsx';

/** The same points as figures, newest first. */
export function TableView(props: {
  readonly label: string;
  readonly points: readonly Point[];
  readonly series: readonly ChartSeries[];
  readonly format: (value: number | null) => string;
}): ReactElement {
  const { t, f } = useI18n();
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
          </tr>
        ))}
      </tbody>
    </table>
  );
}
