import { useQueries } from '@tanstack/react-query';
import { type ReactElement, useMemo } from 'react';
import type { RoleView, VerdictView } from '../../preload/contract.ts';
import { ChartPanel } from '../charts/chart-panel.tsx';
import { seriesStyle } from '../charts/series-style.ts';
import type { ChartSeries } from '../charts/time-series.tsx';
import { saveFile } from '../components/clipboard.ts';
import { Moment } from '../components/moment.tsx';
import { Failure } from '../components/panel.tsx';
import { shortened } from '../components/short.tsx';
import { Note } from '../components/status.tsx';
import { UNKNOWN } from '../format/format.ts';
import { useI18n } from '../i18n/i18n.tsx';
import { useChange, useConsole, useRead } from '../state/console.tsx';
import { useNow } from '../state/ticker.tsx';
import { subjectOf, useFoundFrom } from './gate.tsx';
import { NewSpaceSheet } from './role-space.tsx';

/** Why one provider passed or did not: the worst probe, both vectors' first numbers, and its minimum over time. */
export function GateDetail(props: {
  readonly row: VerdictView;
  readonly rows: readonly VerdictView[];
  readonly role: RoleView | null;
}): ReactElement {
  const { t, f, say, named } = useI18n();
  const { row } = props;
  const verify = useChange('gate.verify', ['gate.list', 'gate.history']);
  const found = useFoundFrom(props.role);
  return (
    <div className="gate-detail">
      <section aria-label={named(row.title)}>
        <h3>{t('gate.worst', { provider: named(row.title) })}</h3>
        <div className="stack">
          {row.reason && row.verdict !== 'pass' && (
            <Note tone={row.verdict === 'pass-reduced' || row.verdict === 'unverified' ? 'warn' : 'bad'}>
              {say(row.reason)}
            </Note>
          )}
          {row.worstProbe ? (
            <>
              <p>
                <code>{row.worstProbe.probe}</code> {row.worstProbe.text}
              </p>
              <dl className="facts">
                <dt>{t('gate.anchor')}</dt>
                <dd className="vector">{vectorHead(row.worstProbe.anchorHead, f.number)}</dd>
                <dt>{subjectOf(row)}</dt>
                <dd className="vector">{vectorHead(row.worstProbe.providerHead, f.number)}</dd>
              </dl>
            </>
          ) : (
            <p className="quiet">{t('gate.noProbe')}</p>
          )}
          <dl className="facts">
            <dt>{t('gate.minMean')}</dt>
            <dd>
              {f.cosine(row.minCosine)} / {f.cosine(row.meanCosine)} / {f.cosine(row.centredMin)}
            </dd>
            <dt>{t('gate.norms')}</dt>
            <dd>
              {f.number(row.anchorNorm, 2)} / {f.number(row.providerNorm, 2)}
            </dd>
            <dt>{t('gate.fingerprint')}</dt>
            <dd className="mono">{fingerprint(row)}</dd>
            <dt>{t('gate.checked')}</dt>
            <dd>
              <Moment atMs={row.checkedAtMs} />
            </dd>
          </dl>
          {row.rowsInDoubt !== null && row.rowsInDoubt > 0 && <InDoubt row={row} />}
          {mayFound(row) && <p>{t('gate.rebuild')}</p>}
          {verify.isError && <Failure error={verify.error} />}
          <div className="row">
            <button
              type="button"
              className="button"
              disabled={verify.isPending || row.running}
              onClick={() => verify.mutate({ providerId: row.providerId })}
            >
              {t(row.running ? 'gate.checking' : 'gate.verify')}
            </button>
            {mayFound(row) && (
              <button
                type="button"
                className="button"
                onClick={() => void found.open(row.providerId).catch(() => undefined)}
              >
                {t('gate.foundFrom')}
              </button>
            )}
          </div>
        </div>
      </section>
      <History row={row} rows={props.rows} />
      {found.preview && props.role && (
        <NewSpaceSheet
          role={props.role}
          patch={{}}
          preview={found.preview}
          nobody="space.thisCannot"
          onClose={found.close}
        />
      )}
    </div>
  );
}

/** Sentences that speak of founding a space from this encoder. */
const SPEAKS_OF_FOUNDING: ReadonlySet<string> = new Set(['gate_serve_founding', 'gate_width', 'gate_short']);

/** What is said to be a way out must be one here. A row without its role's space has a button of its own above. */
function mayFound({ verdict, reason, spaceId }: VerdictView): boolean {
  if (spaceId === null) return false;
  if (verdict === 'vector-incompatible' || verdict === 'dimension-mismatch') return true;
  return [reason?.code, ...(reason?.more ?? []).map(({ code }) => code)].some(
    (code) => code !== undefined && SPEAKS_OF_FOUNDING.has(code),
  );
}

function InDoubt({ row }: { readonly row: VerdictView }): ReactElement {
  const { t, f } = useI18n();
  const affected = useRead('gate.affected', { providerId: row.providerId });
  const save = () => {
    const lines = (affected.data?.ranges ?? []).map((range) => JSON.stringify(range));
    saveFile({ fileName: 'rows-in-doubt.jsonl', mediaType: 'application/jsonl', content: `${lines.join('\n')}\n` });
  };
  return (
    <Note tone="warn">
      {t('gate.inDoubt', { rows: f.number(row.rowsInDoubt) })}{' '}
      <button type="button" className="link" disabled={!affected.data} onClick={save}>
        {t('gate.saveRanges')}
      </button>
    </Note>
  );
}

/** A history of minutes is drawn over minutes. */
const LEAST_SPAN_MS = 600_000;
/** Providers on one chart; more would be a tangle. */
const MOST_LINES = 6;

function History({ row, rows }: { readonly row: VerdictView; readonly rows: readonly VerdictView[] }): ReactElement {
  const { t, f } = useI18n();
  const { transport } = useConsole();
  const now = useNow();
  const compared = useMemo(() => comparable(row, rows).slice(0, MOST_LINES), [row, rows]);
  const histories = useQueries({
    queries: compared.map((one) => {
      const input = one.spaceId ? { providerId: one.providerId, spaceId: one.spaceId } : { providerId: one.providerId };
      return {
        queryKey: ['gate.history', input],
        queryFn: () => transport.call('gate.history', input),
        refetchInterval: 30_000,
      };
    }),
  });
  const own = histories[0];
  const points = histories.flatMap((history) => history.data?.points ?? []);
  const atMs = useMemo(() => [...new Set(points.map((point) => point.atMs))].sort((a, b) => a - b), [points]);
  const series: ChartSeries[] = compared.map((one, at) => {
    const known = new Map((histories[at]?.data?.points ?? []).map((point) => [point.atMs, point.minCosine]));
    let last: number | null = null;
    // Checks of several providers fall on different moments: each keeps its value until its next check.
    const values = atMs.map((moment) => {
      if (known.has(moment)) last = known.get(moment) ?? null;
      return last;
    });
    return {
      id: one.id,
      label: shortened(lineName(one), 36),
      shape: 'step',
      values,
      style: seriesStyle(one.id, one.kind),
    };
  });
  const threshold = own?.data?.threshold ?? 0.99;
  const lowest = points.reduce((least, point) => Math.min(least, point.minCosine ?? 1), threshold);
  const oldest = Math.max(LEAST_SPAN_MS, now - (atMs[0] ?? now));
  return (
    <ChartPanel
      title={t('gate.overTime')}
      unit={t('unit.cosine')}
      atMs={atMs}
      stepMs={0}
      series={series}
      height={186}
      fromMs={now - oldest}
      toMs={now}
      live
      domain={[Math.max(-1, Math.floor((lowest - 0.004) * 50) / 50), 1]}
      threshold={{ value: threshold, label: t('gate.thresholdLine', { threshold: f.cosine(threshold) }) }}
      format={(value) => f.cosine(value)}
      loading={own?.isPending ?? true}
      error={own?.data ? null : own?.error}
      onRetry={() => void own?.refetch()}
      empty={own?.data && own.data.points.length === 0 ? { why: t('gate.noHistory') } : null}
    />
  );
}

/** Figures beside each other, so that both vectors stand in the same columns. */
const VECTOR_ROW = 4;

/** The row and the others of its space; of an upstream that several machines ask one, since the numerics are the upstream's. */
function comparable(row: VerdictView, rows: readonly VerdictView[]): readonly VerdictView[] {
  const lines = new Map([[lineName(row), row]]);
  for (const other of rows) {
    if (other.spaceId === row.spaceId && !lines.has(lineName(other))) lines.set(lineName(other), other);
  }
  return [...lines.values()];
}

/** Short enough for a legend. */
const lineName = (row: VerdictView): string => (row.kind === 'cloud' ? subjectOf(row) : row.nodeName);

function vectorHead(values: readonly number[], number: (value: number, digits: number) => string): string {
  if (values.length === 0) return UNKNOWN;
  const figures = values.map((value) => (value < 0 ? '−' : ' ') + number(Math.abs(value), 4));
  const lines = Array.from({ length: Math.ceil(figures.length / VECTOR_ROW) }, (_, at) =>
    figures.slice(at * VECTOR_ROW, (at + 1) * VECTOR_ROW).join('  '),
  );
  return `${lines.join('\n')} …`;
}

function fingerprint(row: VerdictView): string {
  const print = row.fingerprint;
  if (!print) return UNKNOWN;
  return [
    print.engine,
    print.version,
    print.modelDigest?.slice(0, 19),
    print.upstream,
    print.processMark?.split(' ', 1)[0],
  ]
    .filter(Boolean)
    .join(' · ');
}
