import { type ReactElement, useCallback, useMemo, useState } from 'react';
import { useStore } from 'zustand';
import { RANGES, ROLE_IDS } from '../../preload/contract/names.ts';
import type {
  BudgetView,
  FiguresView,
  HistoryView,
  LastHourView,
  MarkView,
  Range,
  Series,
} from '../../preload/contract.ts';
import { useUi } from '../app/ui.tsx';
import { ChartPanel } from '../charts/chart-panel.tsx';
import { chartMarks } from '../charts/marks.ts';
import { type Axis, sumBuckets } from '../charts/points.ts';
import type { ChartSeries, ChartSpan } from '../charts/time-series.tsx';
import { Segments } from '../components/controls.tsx';
import { useStaleAge } from '../components/panel.tsx';
import { type ShownRates, shownRates } from '../format/rates.ts';
import { useI18n } from '../i18n/i18n.tsx';
import { useTopic } from '../state/console.tsx';
import { RANGE_MS } from '../state/live-history.ts';
import { useHistory } from '../state/use-history.ts';
import { useSteady } from '../state/use-steady.ts';
import { useWindowHeight } from '../state/window-size.ts';
import { CanWait, NeedsYou } from './overview-needs.tsx';

/** Two rows of charts fill a window of usual height; stacked in one column they keep their least. */
function chartHeight(windowPx: number): number {
  return Math.max(170, Math.min(300, Math.round((windowPx - 396) / 2)));
}
const MOST_BARS = 60;
const MOST_LATENCY_POINTS = 75;
const NO_CUTS: BudgetView['cuts'] = [];
const NO_MOMENTS: readonly number[] = [];
type RoleId = (typeof ROLE_IDS)[number];

/** The range, and the way back to now after a stretch was drawn. */
export function RangeTools(): ReactElement {
  const { t } = useI18n();
  const ui = useUi();
  const { range, zoom } = useStore(ui);
  return (
    <>
      {zoom && (
        <button type="button" className="button" onClick={() => ui.setState({ zoom: null })}>
          {t('overview.resumeLive')}
        </button>
      )}
      <Segments<Range>
        label={t('overview.range')}
        value={range}
        options={RANGES.map((value) => ({ value, label: t(`range.${value}`) }))}
        onChange={(next) => ui.setState({ range: next, zoom: null })}
      />
    </>
  );
}

export function OverviewPage(): ReactElement {
  const { range, zoom } = useStore(useUi());
  const [role, setRole] = useState<RoleId>('code-assistant');
  const { overview, history, endMs } = useHistory({ range, role }, zoom !== null);
  const latest = useTopic('series')?.at(-1);
  const health = useTopic('health');
  return (
    <div className="stack">
      <Figures figures={latest?.figures ?? overview.data?.figures ?? null} />
      <div className="overview">
        <Charts
          history={history}
          endMs={endMs}
          loading={overview.isPending}
          error={overview.isError && !overview.data ? overview.error : null}
          onRetry={() => void overview.refetch()}
          role={role}
          onRole={setRole}
        />
        <aside>
          {/* Both at once: sentences that came later would push the figures down. */}
          {health && (
            <>
              <NeedsYou health={health} />
              <LastHourFigures figures={latest?.lastHour ?? overview.data?.lastHour ?? null} />
              <CanWait health={health} />
            </>
          )}
        </aside>
      </div>
    </div>
  );
}

/** Null while one of them is not known. */
function shownRatesOf(figures: FiguresView | null): ShownRates | null {
  if (figures === null) return null;
  const { requestsPerSecond, localPerSecond, cloudPerSecond } = figures;
  if (requestsPerSecond === null || localPerSecond === null || cloudPerSecond === null) return null;
  return shownRates({ requestsPerSecond, localPerSecond, cloudPerSecond });
}

function Figures({ figures }: { readonly figures: FiguresView | null }): ReactElement {
  const { t, f } = useI18n();
  const stale = useStaleAge(true);
  const rates = shownRatesOf(figures);
  const waiting = figures?.oldestWaitRole
    ? `${figures.oldestWaitRole}, ${t(`class.${figures.oldestWaitClass ?? 'normal'}`)}`
    : figures?.oldestWaitMs === 0
      ? t('overview.nothingWaits')
      : '\u00a0';
  const cap =
    figures === null
      ? '\u00a0'
      : figures.capTodayUsd === null
        ? t('overview.noCap')
        : t('overview.ofCap', { cap: f.usd(figures.capTodayUsd) });
  return (
    <section className={stale === null ? 'figures-bar' : 'figures-bar stale-body'} aria-label={t('overview.figures')}>
      <div>
        <small>{t('overview.rate')}</small>
        <strong>{f.number(rates?.total, 1)}</strong>
        <span>
          {rates
            ? t(rates.neither > 0 ? 'overview.splitNeither' : 'overview.split', {
                local: f.number(rates.local, 1),
                cloud: f.number(rates.cloud, 1),
                neither: f.number(rates.neither, 1),
              })
            : '\u00a0'}
        </span>
      </div>
      <div>
        <small>{t('overview.oldest')}</small>
        <strong>{f.duration(figures?.oldestWaitMs)}</strong>
        <span>{waiting}</span>
      </div>
      <div>
        <small>{t('overview.spent')}</small>
        <strong>{f.usd(figures?.spentTodayUsd)}</strong>
        <span>{cap}</span>
      </div>
    </section>
  );
}

function LastHourFigures({ figures }: { readonly figures: LastHourView | null }): ReactElement {
  const { t, f } = useI18n();
  return (
    <section>
      <h3>{t('overview.lastHour')}</h3>
      <dl className="facts figures">
        <dt>{t('overview.localShare')}</dt>
        <dd>{f.percent(figures?.localShare)}</dd>
        <dt>{t('overview.overflowed')}</dt>
        <dd>{f.number(figures?.overflowed)}</dd>
        <dt>{t('overview.refused')}</dt>
        <dd>{f.number(figures?.refused)}</dd>
        <dt>{t('overview.stopped')}</dt>
        <dd>{f.number(figures?.stoppedByGate)}</dd>
      </dl>
    </section>
  );
}

interface ChartsProps {
  readonly history: HistoryView | null;
  readonly endMs: number;
  readonly loading: boolean;
  readonly error: unknown;
  readonly onRetry: () => void;
  readonly role: RoleId;
  readonly onRole: (role: RoleId) => void;
}

const NO_SERIES: readonly Series[] = [];

/** Series as the chart takes them, named by what follows the first dot of their id. */
function named(series: Axis['series'], shape: ChartSeries['shape'], label: (name: string) => string): ChartSeries[] {
  return series.map(({ id, values }) => ({ id, values, shape, label: label(id.slice(id.indexOf('.') + 1)) }));
}

function Charts(props: ChartsProps): ReactElement {
  const i18n = useI18n();
  const { t, f } = i18n;
  const ui = useUi();
  const { range, zoom } = useStore(ui);
  const cuts = useSteady(useTopic('budget')?.cuts ?? NO_CUTS);
  const height = chartHeight(useWindowHeight());
  const { history } = props;
  const [fromMs, toMs] = zoom ?? [props.endMs - RANGE_MS[range], props.endMs];
  // Whole steps, so that no bar gets one more than its neighbours.
  const stepMs = history?.stepMs ?? 1000;
  const barMs = stepMs * Math.max(1, Math.ceil(RANGE_MS[range] / stepMs / MOST_BARS));
  const refusals = useMemo(
    () => sumBuckets({ atMs: history?.atMs ?? [], series: history?.tooMany ?? NO_SERIES }, barMs),
    [history, barMs],
  );
  const series = useMemo(
    () => ({
      queue: named(history?.queue ?? NO_SERIES, 'step', (id) => id),
      latency: named(history?.latency ?? NO_SERIES, 'line', (id) => id),
      tooMany: named(refusals.series, 'bar', (id) => (id === 'account' ? t('overview.account') : id)),
      permits: named(history?.permits ?? NO_SERIES, 'step', (id) =>
        t(id === 'inFlight' ? 'permits.inFlight' : id === 'effective' ? 'permits.effective' : 'permits.ceiling'),
      ).map((one) => (one.id === 'permits.inFlight' ? { ...one, shape: 'area' as const } : one)),
    }),
    [history, refusals, t],
  );
  const { gaps, gapsAndCooldowns } = useMemo(() => {
    const all: ChartSpan[] = (history?.gaps ?? []).map((gap) => ({ ...gap, kind: 'gap' }));
    const cooldowns: ChartSpan[] = (history?.cooldowns ?? []).map((span) => ({ ...span, kind: 'cooldown' }));
    return { gaps: all, gapsAndCooldowns: [...all, ...cooldowns] };
  }, [history]);
  const marks = useMemo(() => {
    const of = (...kinds: readonly MarkView['kind'][]) =>
      chartMarks(
        (history?.marks ?? []).filter(({ kind }) => kinds.includes(kind)),
        cuts,
        i18n,
      );
    return { queue: of('node', 'restart'), cuts: of('cut') };
  }, [history, cuts, i18n]);
  const format = useCallback((value: number | null) => f.number(value), [f]);
  const select = useCallback((from: number, to: number) => ui.setState({ zoom: [from, to] }), [ui]);
  const shared = {
    atMs: history?.atMs ?? NO_MOMENTS,
    stepMs,
    height,
    fromMs,
    toMs,
    live: zoom === null,
    group: 'overview',
    broadcast: true,
    loading: props.loading,
    error: props.error,
    onRetry: props.onRetry,
    onSelect: select,
    format,
  };
  return (
    <div className="charts">
      <ChartPanel
        {...shared}
        title={t('overview.queue')}
        sub={t('overview.byRole')}
        unit={t('unit.requests')}
        whole
        series={series.queue}
        marks={marks.queue}
        spans={gaps}
      />
      <ChartPanel
        {...shared}
        title={t('overview.latency')}
        sub={t('overview.firstByte', { count: f.number(history?.latencyCount) })}
        unit={t('unit.msToFirstByte')}
        // A second in which nothing ended has no latency; a few of them together nearly always have one.
        maxPoints={MOST_LATENCY_POINTS}
        series={series.latency}
        spans={gaps}
        tools={
          <select
            className="link quiet"
            aria-label={t('overview.latencyRole')}
            value={props.role}
            onChange={(event) => props.onRole(ROLE_IDS.find((id) => id === event.target.value) ?? props.role)}
          >
            {ROLE_IDS.map((id) => (
              <option key={id}>{id}</option>
            ))}
          </select>
        }
      />
      <ChartPanel
        {...shared}
        title={t('overview.tooMany')}
        sub={t('overview.byUpstream')}
        atMs={refusals.atMs}
        stepMs={barMs}
        unit={t('unit.tooMany', { step: f.duration(barMs) })}
        whole
        series={series.tooMany}
        marks={marks.cuts}
        spans={gaps}
      />
      <ChartPanel
        {...shared}
        title={t('overview.permits')}
        sub={t('overview.account')}
        unit={t('unit.permits')}
        whole
        series={series.permits}
        spans={gapsAndCooldowns}
      />
    </div>
  );
}
