import type { ReactElement } from 'react';
import { useI18n } from '../i18n/i18n.tsx';
import { lastKnown } from './points.ts';
import { markerPath, type SeriesStyle, seriesStyle, seriesVar } from './series-style.ts';
import type { ChartMark, ChartSeries } from './time-series.tsx';

/** A short piece of the line itself: colour, dash and marker. */
export function Swatch({
  look,
  shape,
}: {
  readonly look: SeriesStyle;
  readonly shape: ChartSeries['shape'];
}): ReactElement {
  const colour = seriesVar(look.colour);
  return (
    <svg width="20" height="10" viewBox="0 0 20 10" aria-hidden="true">
      {shape === 'bar' || shape === 'area' ? (
        <rect
          x="2"
          y="1"
          width="16"
          height="8"
          rx="1"
          fill={shape === 'bar' ? barFill(look) : colour}
          fillOpacity={shape === 'area' ? 0.4 : 1}
        />
      ) : (
        <>
          <path d="M0,5h20" stroke={colour} strokeWidth="2" strokeDasharray={look.dash} fill="none" />
          <path d={markerPath(look.marker, 10, 5)} fill={colour} />
        </>
      )}
    </svg>
  );
}

/** Bars cannot be dashed: every other one of a family is hatched instead. */
export function barFill(look: SeriesStyle): string {
  return look.dash === '' || look.dash === '2 3' ? seriesVar(look.colour) : `url(#hatch-${look.colour})`;
}

/** The hatches that bars of a chart refer to. */
export function Hatches(): ReactElement {
  return (
    <defs>
      {(['orange', 'amber'] as const).map((colour) => (
        <pattern key={colour} id={`hatch-${colour}`} width="4" height="4" patternUnits="userSpaceOnUse">
          <path d="M0,4L4,0" stroke={seriesVar(colour)} strokeWidth="2" />
        </pattern>
      ))}
    </defs>
  );
}

export function Legend(props: {
  readonly series: readonly ChartSeries[];
  readonly format: (value: number | null) => string;
}): ReactElement {
  return (
    <ul className="legend">
      {props.series.map((series) => (
        <li key={series.id}>
          <Swatch look={series.style ?? seriesStyle(series.id)} shape={series.shape} />
          {series.label}
          <b>{props.format(lastKnown(series.values))}</b>
        </li>
      ))}
    </ul>
  );
}

interface TipProps {
  readonly active?: boolean;
  readonly label?: string | number;
  readonly payload?: readonly { readonly dataKey?: unknown; readonly value?: unknown }[];
  readonly series: readonly ChartSeries[];
  readonly marks: readonly ChartMark[];
  /** How far from the cursor a mark may be to be told. */
  readonly reachMs: number;
  readonly format: (value: number | null) => string;
}

/** All values at the cursor, also of series that have none there, and what happened there. */
export function PointTip(props: TipProps): ReactElement | null {
  const { f } = useI18n();
  if (!props.active || props.label === undefined) return null;
  const values = new Map((props.payload ?? []).map((entry) => [entry.dataKey, entry.value]));
  const near = props.marks.filter(({ atMs }) => Math.abs(atMs - Number(props.label)) <= props.reachMs);
  return (
    <div className="tip">
      <b>{f.clock(Number(props.label))}</b>
      {props.series.map((series) => {
        const value = values.get(series.id);
        return (
          <div key={series.id}>
            <Swatch look={series.style ?? seriesStyle(series.id)} shape={series.shape} />
            <span>{series.label}</span>
            <b>{props.format(typeof value === 'number' ? value : null)}</b>
          </div>
        );
      })}
      {near.map((mark) => (
        <p key={`${mark.atMs}${mark.sentence}`}>{mark.sentence}</p>
      ))}
    </div>
  );
}

/** An hour of one value without axes; for its figure see the text beside it. */
export function Sparkline(props: {
  readonly values: readonly (number | null)[];
  readonly label: string;
}): ReactElement {
  const known = props.values.filter((value) => value !== null);
  const top = Math.max(1e-9, ...known);
  const last = Math.max(1, props.values.length - 1);
  let pen = 'M';
  let path = '';
  props.values.forEach((value, at) => {
    if (value === null) {
      pen = 'M';
      return;
    }
    path += `${pen}${((at / last) * 240).toFixed(1)},${(33 - (value / top) * 30).toFixed(1)}`;
    pen = 'L';
  });
  return (
    <svg className="spark" viewBox="0 0 240 36" preserveAspectRatio="none" role="img" aria-label={props.label}>
      <line x1="0" x2="240" y1="33.5" y2="33.5" />
      <path d={path} vectorEffect="non-scaling-stroke" />
    </svg>
  );
}
