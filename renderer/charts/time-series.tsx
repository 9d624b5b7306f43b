import { memo, type ReactElement, useMemo, useState } from 'react';
import {
  Area,
  Bar,
  CartesianGrid,
  ComposedChart,
  Line,
  ReferenceArea,
  ReferenceLine,
  ResponsiveContainer,
  Tooltip,
  XAxis,
  YAxis,
} from 'recharts';
import type { Formats } from '../format/format.ts';
import { useI18n } from '../i18n/i18n.tsx';
import { Markers } from './markers.tsx';
import { barFill, Hatches, Legend, PointTip } from './parts.tsx';
import { labelSides, MAX_POINTS, type Point, roundMaximum, timeTicks, toPoints, valueTicks } from './points.ts';
import { type SeriesStyle, seriesStyle, seriesVar } from './series-style.ts';
import { TableView } from './table-view.tsx';
import { useStretch } from './use-stretch.ts';

export interface ChartSeries {
  readonly id: string;
  readonly label: string;
  readonly shape: 'line' | 'step' | 'area' | 'bar';
  readonly values: readonly (number | null)[];
  readonly style?: SeriesStyle;
}
export interface ChartSpan {
  readonly fromMs: number;
  readonly toMs: number;
  /** `cooldown` is shaded in the warning's colour, `gap` in grey. */
  readonly kind: 'cooldown' | 'gap';
}
/** Something that happened: a line across the plot with a word beside it; the sentence is told at the cursor. */
export interface ChartMark {
  readonly atMs: number;
  readonly label: string;
  readonly sentence: string;
}
export interface TimeSeriesProps {
  readonly label: string;
  readonly unit: string;
  readonly atMs: readonly number[];
  readonly stepMs: number;
  readonly series: readonly ChartSeries[];
  readonly height: number;
  readonly fromMs: number;
  readonly toMs: number;
  /** The right edge is now. */
  readonly live: boolean;
  readonly whole?: boolean;
  readonly domain?: readonly [number, number];
  readonly threshold?: { readonly value: number; readonly label: string };
  readonly marks?: readonly ChartMark[];
  readonly spans?: readonly ChartSpan[];
  readonly format: (value: number | null) => string;
  readonly asTable: boolean;
  /** Most points that are drawn: fewer where a step often has nothing to tell. */
  readonly maxPoints?: number;
  /** Charts of one group share the cursor. */
  readonly group?: string;
  /** A stretch of time was drawn with the pointer. */
  readonly onSelect?: (fromMs: number, toMs: number) => void;
}

const NO_MARKS: readonly ChartMark[] = [];
const NO_SPANS: readonly ChartSpan[] = [];
/** "now" at the right edge, a gap, and half of a time before it. */
const END_PX = 52;
/** What a chart is as wide as before it has been measured. */
const FIRST_WIDTH = 420;

/** Around the plot; the stretch that a pointer draws is reckoned with it too. */
export const MARGIN = { top: 18, right: 10, bottom: 0, left: 0 } as const;
/** Room for the longest figure; the same on most charts, so that their axes line up. */
const axisWidth = (labels: readonly string[]): number =>
  Math.max(40, 7.2 * Math.max(...labels.map((one) => one.length)) + 10);

/**
 * The one chart of the console: values over time on a shared axis. Nothing moves by itself, and a gap stays a gap. Drawing costs more
 * than all the rest of a page, so it is done when its properties are others, and pages keep them the same ones while they can.
 */
export const TimeSeries = memo(function TimeSeries(props: TimeSeriesProps): ReactElement {
  const { atMs, series, stepMs, maxPoints = MAX_POINTS } = props;
  const points = useMemo(() => {
    // A row that makes a gap in lines would make bars as thin as the way to its neighbour.
    const gapsFrom = series.some(({ shape }) => shape === 'bar') ? 0 : stepMs;
    return toPoints({ atMs, series }, gapsFrom, maxPoints);
  }, [atMs, series, stepMs, maxPoints]);
  return (
    <>
      {props.asTable ? (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard
        <section className="chart-table" aria-label={props.label} tabIndex={0} style={{ height: props.height }}>
          <TableView
            points={points}
            series={props.series}
            marks={props.marks ?? NO_MARKS}
            spans={props.spans ?? NO_SPANS}
            label={props.label}
            format={props.format}
          />
        </section>
      ) : (
        <Plot {...props} points={points} />
      )}
      <Legend series={props.series} format={props.format} />
    </>
  );
});

function Plot(props: TimeSeriesProps & { readonly points: readonly Point[] }): ReactElement {
  const { t, f } = useI18n();
  const maximum = useMemo(() => highest(props.points, props.series), [props.points, props.series]);
  const nothing = useMemo(
    () => !props.points.some((point) => props.series.some(({ id }) => typeof point[id] === 'number')),
    [props.points, props.series],
  );
  const top = props.domain?.[1] ?? roundMaximum(maximum, props.whole ?? false);
  const bottom = props.domain?.[0] ?? 0;
  const yTicks = nothing ? [bottom] : valueTicks(bottom, top, props.format);
  const axis = axisWidth(yTicks.map(props.format));
  const [width, setWidth] = useState(FIRST_WIDTH);
  const plotWidth = Math.max(1, width - axis - MARGIN.right);
  const zoneMs = -60_000 * new Date(props.toMs).getTimezoneOffset();
  const xTicks = timeTicks(props.fromMs, props.toMs, zoneMs, END_PX / plotWidth);
  if (props.live && xTicks.at(-1) !== props.toMs) xTicks.push(props.toMs);
  const marks = (props.marks ?? []).filter((mark) => mark.atMs >= props.fromMs && mark.atMs <= props.toMs);
  const sides = labelSides(
    marks,
    props.fromMs,
    props.toMs,
    Math.max(0, ...marks.map(({ label }) => labelPx(label))) / plotWidth,
  );
  const reachMs = (props.toMs - props.fromMs) / 100;
  const { drag, handlers } = useStretch(props, axis);
  const clip = (atMs: number) => Math.max(props.fromMs, Math.min(props.toMs, atMs));

  return (
    <div className="chart" style={{ height: props.height }} {...handlers}>
      <ResponsiveContainer
        width="100%"
        height={props.height}
        initialDimension={{ width: FIRST_WIDTH, height: props.height }}
        onResize={setWidth}
      >
        <ComposedChart
          data={props.points as Point[]}
          margin={MARGIN}
          barCategoryGap={1}
          title={props.label}
          {...(props.group ? { syncId: props.group, syncMethod: 'value' as const } : {})}
        >
          <CartesianGrid vertical={false} stroke="var(--line)" />
          <XAxis
            dataKey="atMs"
            type="number"
            domain={[props.fromMs, props.toMs]}
            allowDataOverflow
            ticks={xTicks}
            interval={0}
            height={20}
            axisLine={false}
            tickLine={false}
            tick={(tick: TickProps) => (
              <TimeTick
                {...tick}
                atEdge={tick.payload.value >= props.toMs}
                text={tickText(tick.payload.value, props, f, t('chart.now'))}
              />
            )}
          />
          <YAxis
            width={axis}
            domain={[bottom, top]}
            allowDataOverflow
            ticks={yTicks}
            interval={0}
            axisLine={false}
            tickLine={false}
            tick={AXIS_TEXT}
            tickFormatter={(value: number) => props.format(value)}
          />
          <Hatches />
          <text x={axis} y={10}>
            {props.unit}
          </text>
          {(props.spans ?? []).map((span) => (
            <ReferenceArea
              key={`${span.kind}${span.fromMs}`}
              x1={clip(span.fromMs)}
              x2={clip(span.toMs)}
              fill={span.kind === 'cooldown' ? 'var(--warn)' : 'var(--line)'}
              fillOpacity={span.kind === 'cooldown' ? 0.18 : 0.6}
              className={`span-${span.kind}`}
            />
          ))}
          <Tooltip
            isAnimationActive={false}
            cursor={{ stroke: 'var(--edge)', strokeWidth: 1 }}
            content={<PointTip series={props.series} marks={marks} reachMs={reachMs} format={props.format} />}
          />
          {props.series.map(shapeOf)}
          <Markers
            points={props.points}
            series={props.series}
            span={[props.fromMs, props.toMs]}
            domain={[bottom, top]}
          />
          {props.threshold && (
            <ReferenceLine
              y={props.threshold.value}
              stroke="var(--bad)"
              strokeDasharray="5 3"
              label={{ value: props.threshold.label, position: 'insideTopLeft', ...AXIS_TEXT }}
            />
          )}
          {marks.map((mark) => (
            <ReferenceLine
              key={`${mark.atMs}${mark.sentence}`}
              x={mark.atMs}
              stroke="var(--quiet)"
              strokeDasharray="2 2"
              {...(sides.has(mark)
                ? {
                    label: {
                      value: short(mark.label),
                      position: sides.get(mark) === 'after' ? ('insideTopLeft' as const) : ('insideTopRight' as const),
                      ...AXIS_TEXT,
                    },
                  }
                : {})}
            />
          ))}
          {drag && <ReferenceArea x1={drag[0]} x2={drag[1]} fill="var(--accent)" fillOpacity={0.16} />}
        </ComposedChart>
      </ResponsiveContainer>
      {nothing && <p className="nothing">{t('chart.nothing')}</p>}
    </div>
  );
}

interface TickProps {
  readonly x: number | string;
  readonly y: number | string;
  readonly payload: { readonly value: number };
}

function TimeTick(props: TickProps & { readonly atEdge: boolean; readonly text: string }): ReactElement {
  return (
    <text x={props.x} y={Number(props.y) + 8} textAnchor={props.atEdge ? 'end' : 'middle'}>
      {props.text}
    </text>
  );
}

const DAY_MS = 86_400_000;

function tickText(atMs: number, props: TimeSeriesProps, f: Pick<Formats, 'clock' | 'duration'>, now: string): string {
  if (props.live && atMs >= props.toMs) return now;
  const span = props.toMs - props.fromMs;
  const days = Math.round((props.toMs - atMs) / DAY_MS);
  if (span > 2 * DAY_MS && days > 0) return `−${f.duration(days * DAY_MS)}`;
  return span < 4 * 60_000 ? f.clock(atMs) : f.clock(atMs).slice(0, 5);
}

const short = (label: string): string => (label.length > 24 ? `${label.slice(0, 23)}…` : label);
/** About how wide a label is, with the room between it and its line. */
const labelPx = (label: string): number => 12 + 6.2 * Math.min(24, label.length);
/** As an attribute, since the chart writes a grey of its own where none is given. */
const AXIS_TEXT = { fill: 'var(--quiet)', fontSize: 11.5 } as const;

function highest(points: readonly Point[], series: readonly ChartSeries[]): number {
  let best = 0;
  for (const point of points) for (const { id } of series) best = Math.max(best, point[id] ?? 0);
  return best;
}

function shapeOf(series: ChartSeries): ReactElement {
  const look = series.style ?? seriesStyle(series.id);
  const colour = seriesVar(look.colour);
  const shared = { dataKey: series.id, name: series.label, isAnimationActive: false } as const;
  if (series.shape === 'bar') {
    return <Bar key={series.id} {...shared} fill={barFill(look)} stackId="bars" maxBarSize={14} />;
  }
  const type = series.shape === 'line' ? ('linear' as const) : ('stepAfter' as const);
  if (series.shape === 'area') {
    return (
      <Area
        key={series.id}
        {...shared}
        type={type}
        stroke="none"
        fill={colour}
        fillOpacity={0.26}
        dot={false}
        activeDot={false}
        connectNulls={false}
      />
    );
  }
  return (
    <Line
      key={series.id}
      {...shared}
      type={type}
      stroke={colour}
      strokeWidth={1.6}
      strokeDasharray={look.dash}
      dot={false}
      activeDot={false}
      connectNulls={false}
    />
  );
}
