import { type FormEvent, type ReactElement, useCallback, useMemo } from 'react';
import { useStore } from 'zustand';
import { OVERRIDE_MAX, RANGES } from '../../preload/contract/names.ts';
import type { BudgetView, Range, SpendView } from '../../preload/contract.ts';
import { useUi } from '../app/ui.tsx';
import { ChartPanel } from '../charts/chart-panel.tsx';
import { chartMarks } from '../charts/marks.ts';
import type { ChartSpan } from '../charts/time-series.tsx';
import { Segments } from '../components/controls.tsx';
import { DataTable } from '../components/data-table.tsx';
import { Moment } from '../components/moment.tsx';
import { Failure, Panel } from '../components/panel.tsx';
import { Note, Status, type Tone } from '../components/status.tsx';
import { UNKNOWN } from '../format/format.ts';
import { useI18n } from '../i18n/i18n.tsx';
import { useChange, useTopic } from '../state/console.tsx';
import { RANGE_MS } from '../state/live-history.ts';
import { useNow } from '../state/ticker.tsx';
import { useHistory } from '../state/use-history.ts';
import { useSteady } from '../state/use-steady.ts';

const BUDGET_TONE: Readonly<Record<BudgetView['state'], Tone>> = {
  steady: 'ok',
  ramping: 'ok',
  'backing-off': 'warn',
  cooling: 'warn',
  off: 'bad',
};

/** The one pool of cloud permits: how many, why, who has them, what it cost. */
export function BudgetPage(): ReactElement {
  const { t, f, say } = useI18n();
  const budget = useTopic('budget');
  return (
    <div className="stack">
      <Panel live label={t('page.budget')} loading={!budget} minHeight={60}>
        {budget && (
          <div className="stack">
            <p>
              <Status tone={BUDGET_TONE[budget.state]}>{t(`budget.${budget.state}`)}</Status> {say(budget.sentence)}
            </p>
            <Suggestion budget={budget} />
            <section className="figures-bar" aria-label={t('budget.figures')}>
              <div>
                <small>{t('permits.inFlight')}</small>
                <strong>{f.number(budget.inFlight)}</strong>
                <span>{t('budget.waiting', { count: f.number(budget.waiting) })}</span>
              </div>
              <div>
                <small>{t('permits.effective')}</small>
                <strong>{f.number(budget.effective)}</strong>
                <span>
                  <NextStep budget={budget} />
                </span>
              </div>
              <div>
                <small>{t('permits.ceiling')}</small>
                <strong>{f.number(budget.ceiling)}</strong>
                <span>{t(`budgetSource.${budget.source}`)}</span>
              </div>
            </section>
          </div>
        )}
      </Panel>
      <PermitsChart cuts={budget?.cuts ?? NO_CUTS} />
      {budget && (
        <div className="columns">
          <Shares budget={budget} />
          <Facts budget={budget} />
        </div>
      )}
      {budget && (
        <div className="columns">
          <Spend title={t('budget.spendByRole')} rows={budget.spendByRole} />
          <Spend title={t('budget.spendByProject')} rows={budget.spendByProject} />
        </div>
      )}
    </div>
  );
}

function NextStep({ budget }: { readonly budget: BudgetView }): ReactElement {
  const { t, f } = useI18n();
  const now = useNow();
  if (budget.coolingUntilMs !== null && budget.coolingUntilMs > now) {
    return <>{t('budget.coolingFor', { time: f.duration(budget.coolingUntilMs - now) })}</>;
  }
  if (budget.nextStepAtMs !== null && budget.effective < budget.ceiling) {
    return <>{t('budget.nextStep', { time: f.duration(Math.max(0, budget.nextStepAtMs - now)) })}</>;
  }
  return <>{'\u00a0'}</>;
}

const NO_CUTS: BudgetView['cuts'] = [];
const NO_MOMENTS: readonly number[] = [];

function PermitsChart({ cuts }: { readonly cuts: BudgetView['cuts'] }): ReactElement {
  const i18n = useI18n();
  const { t, f } = i18n;
  const ui = useUi();
  const { range } = useStore(ui);
  const { overview, history, endMs } = useHistory({ range });
  const steadyCuts = useSteady(cuts);
  const drawn = useMemo(() => {
    const span = (kind: ChartSpan['kind']) => (one: { readonly fromMs: number; readonly toMs: number }) => ({
      ...one,
      kind,
    });
    return {
      series: (history?.permits ?? []).map(({ id, values }) => ({
        id,
        values,
        shape: id === 'permits.inFlight' ? ('area' as const) : ('step' as const),
        label: t(
          id === 'permits.inFlight'
            ? 'permits.inFlight'
            : id === 'permits.effective'
              ? 'permits.effective'
              : 'permits.ceiling',
        ),
      })),
      spans: [...(history?.gaps ?? []).map(span('gap')), ...(history?.cooldowns ?? []).map(span('cooldown'))],
      marks: chartMarks(
        (history?.marks ?? []).filter((mark) => mark.kind === 'cut'),
        steadyCuts,
        i18n,
      ),
    };
  }, [history, steadyCuts, i18n, t]);
  const format = useCallback((value: number | null) => f.number(value), [f]);
  return (
    <ChartPanel
      title={t('overview.permits')}
      sub={t('overview.account')}
      unit={t('unit.permits')}
      atMs={history?.atMs ?? NO_MOMENTS}
      stepMs={history?.stepMs ?? 1000}
      {...drawn}
      height={260}
      fromMs={endMs - RANGE_MS[range]}
      toMs={endMs}
      live
      broadcast
      whole
      format={format}
      loading={overview.isPending}
      error={overview.data ? null : overview.error}
      onRetry={() => void overview.refetch()}
      tools={
        <Segments<Range>
          label={t('overview.range')}
          value={range}
          options={RANGES.map((value) => ({ value, label: t(`range.${value}`) }))}
          onChange={(next) => ui.setState({ range: next, zoom: null })}
        />
      }
    />
  );
}

/** What each project holds, its share as a mark, and what waits behind it. */
function Shares({ budget }: { readonly budget: BudgetView }): ReactElement {
  const { t, f } = useI18n();
  const most = Math.max(1, budget.usable, ...budget.shares.map((share) => Math.max(share.held, share.share)));
  return (
    <Panel live title={t('budget.shares')} empty={budget.shares.length === 0 ? { why: t('budget.noShares') } : null}>
      <div className="stack">
        {budget.shares.map((share) => (
          <div key={share.project} className="share">
            <span>{share.name}</span>
            <svg
              viewBox="0 0 100 14"
              preserveAspectRatio="none"
              role="img"
              aria-label={t('budget.shareWords', {
                name: share.name,
                held: f.number(share.held),
                share: f.number(share.share),
                waiting: f.number(share.waiting),
              })}
            >
              <rect className="bar-back" width="100" height="14" rx="1" />
              <rect className="bar-fill" width={(100 * share.held) / most} height="14" />
              <line
                className="bar-mark"
                x1={(100 * share.share) / most}
                x2={(100 * share.share) / most}
                y1="0"
                y2="14"
                vectorEffect="non-scaling-stroke"
              />
            </svg>
            <span className="num quiet">
              {f.number(share.held)} / {f.number(share.share)}
              {share.waiting > 0 && `, +${f.number(share.waiting)}`}
            </span>
          </div>
        ))}
        <small>{t('budget.sharesLegend')}</small>
      </div>
    </Panel>
  );
}

function Facts({ budget }: { readonly budget: BudgetView }): ReactElement {
  const { t, f, say } = useI18n();
  const lastCut = budget.cuts.at(-1);
  return (
    <section className="stack">
      <h3>{t('budget.limits')}</h3>
      <dl className="facts">
        <dt>{t('budget.credit')}</dt>
        <dd>{f.usd(budget.creditUsd)}</dd>
        <dt>{t('budget.rate')}</dt>
        <dd>{budget.rate ? say(budget.rate.reason) : UNKNOWN}</dd>
        <dt>{t('budget.window')}</dt>
        <dd>
          {budget.window
            ? t('budget.windowFigures', {
                starts: f.number(budget.window.starts),
                limit: f.number(budget.window.limit),
                seconds: f.number(budget.window.seconds),
              })
            : t('budget.noWindow')}
        </dd>
        <dt>{t('budget.latency')}</dt>
        <dd>
          {f.duration(budget.latencyMs)}
          {budget.assumedLatencyMs !== null && (
            <span className="quiet"> {t('budget.assumed', { time: f.duration(budget.assumedLatencyMs) })}</span>
          )}
        </dd>
        <dt>{t('budget.lastCut')}</dt>
        <dd>
          {lastCut ? (
            <>
              {f.number(lastCut.from)} → {f.number(lastCut.to)}, <Moment atMs={lastCut.atMs} />. {say(lastCut.cause)}
            </>
          ) : (
            t('budget.noCut')
          )}
        </dd>
        <dt>{t('budget.plateau')}</dt>
        <dd>{budget.plateau === null ? t('budget.noPlateau') : t('budget.plateauAt', { permits: budget.plateau })}</dd>
        {budget.freeTierClosedUntilMs !== null && (
          <>
            <dt>{t('budget.freeTier')}</dt>
            <dd>{t('budget.closedUntil', { time: f.moment(budget.freeTierClosedUntilMs) })}</dd>
          </>
        )}
      </dl>
      <Override budget={budget} />
    </section>
  );
}

function Override({ budget }: { readonly budget: BudgetView }): ReactElement {
  const { t } = useI18n();
  const ui = useUi();
  const set = useChange('budget.set', ['budget.get']);
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const typed = Number(new FormData(event.currentTarget).get('override'));
    set.mutate({ override: typed }, { onSuccess: () => ui.announce(t('budget.overridden')) });
  };
  return (
    <form className="form" onSubmit={submit} key={budget.override}>
      <label>
        {t('budget.override', { most: OVERRIDE_MAX })}
        <span className="row">
          <input
            className="field num grow"
            name="override"
            type="number"
            required
            min={1}
            max={OVERRIDE_MAX}
            step={1}
            defaultValue={budget.override ?? ''}
          />
          <button type="submit" className="button" disabled={set.isPending}>
            {t('budget.setOverride')}
          </button>
          <button
            type="button"
            className="button"
            disabled={set.isPending || budget.override === null}
            onClick={() => set.mutate({ override: null })}
          >
            {t('budget.lift')}
          </button>
        </span>
      </label>
      <small>{t('budget.overrideMeans')}</small>
      {set.isError && <Failure error={set.error} />}
    </form>
  );
}

function Suggestion({ budget }: { readonly budget: BudgetView }): ReactElement | null {
  const { t, say } = useI18n();
  const set = useChange('budget.set', ['budget.get']);
  const dismiss = useChange('budget.dismiss', ['budget.get']);
  const { suggestion } = budget;
  if (!suggestion) return null;
  return (
    <Note tone="warn">
      <p>{say(suggestion.reason)}</p>
      <div className="row">
        <button type="button" className="button" onClick={() => set.mutate({ override: suggestion.override })}>
          {t('budget.take', { permits: suggestion.override })}
        </button>
        <button type="button" className="button" onClick={() => dismiss.mutate({})}>
          {t('budget.dismiss')}
        </button>
      </div>
    </Note>
  );
}

function Spend({ title, rows }: { readonly title: string; readonly rows: readonly SpendView[] }): ReactElement {
  const { t, f } = useI18n();
  const against = (spent: number | null, cap: number | null) =>
    cap === null ? f.usd(spent) : `${f.usd(spent)} / ${f.usd(cap)}`;
  return (
    <Panel live title={title} empty={rows.length === 0 ? { why: t('budget.noSpend') } : null}>
      <DataTable
        label={title}
        className="compact"
        rows={rows}
        rowKey={(row) => row.id}
        columns={[
          { id: 'name', head: t('keys.name'), cell: (row) => row.name },
          { id: 'day', head: t('budget.day'), align: 'right', cell: (row) => against(row.dayUsd, row.dayCapUsd) },
          {
            id: 'month',
            head: t('budget.month'),
            align: 'right',
            cell: (row) => against(row.monthUsd, row.monthCapUsd),
          },
        ]}
      />
    </Panel>
  );
}
