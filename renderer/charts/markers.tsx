import type { ReactElement } from 'react';
import { usePlotArea } from 'recharts';
import type { Point } from './points.ts';
import { markerPath, seriesStyle, seriesVar } from './series-style.ts';
import type { ChartSeries } from './time-series.tsx';

interface MarkersProps {
  readonly points: readonly Point[];
  readonly series: readonly ChartSeries[];
  readonly span: readonly [fromMs: number, toMs: number];
  readonly domain: readonly [bottom: number, top: number];
}

/**
 * Markers about every sixth of a line, so that lines are told apart without colour, and on points that stand alone, which no line
 * would show. One path per line: an element per point made the page busy all the time.
 */
export function Markers({ points, series, span, domain }: MarkersProps): ReactElement | null {
  const area = usePlotArea();
  if (!area) return null;
  const xOf = (atMs: number) => area.x + ((atMs - span[0]) / (span[1] - span[0])) * area.width;
  const yOf = (value: number) => area.y + ((domain[1] - value) / (domain[1] - domain[0])) * area.height;
  return (
    <g className="markers">
      {series
        .filter(({ shape }) => shape === 'line' || shape === 'step')
        .map((one) => {
          const look = one.style ?? seriesStyle(one.id);
          const path = markedPoints(points, one.id)
            .filter(({ atMs }) => atMs >= span[0] && atMs <= span[1])
            .map(({ atMs, value }) => markerPath(look.marker, Math.round(xOf(atMs)), Math.round(yOf(value))))
            .join('');
          return <path key={one.id} d={path} fill={seriesVar(look.colour)} />;
        })}
    </g>
  );
}

export function markedPoints(
  points: readonly Point[],
  id: string,
): { readonly atMs: number; readonly value: number }[] {
  const every = Math.max(4, Math.floor(points.length / 6));
  const value = (at: number) => points[at]?.[id] ?? null;
  return points.flatMap((point, at) => {
    const known = value(at);
    if (known === null) return [];
    const alone = value(at - 1) === null && value(at + 1) === null;
    return alone || at % every === Math.floor(every / 2) ? [{ atMs: point.atMs, value: known }] : [];
  });
}
