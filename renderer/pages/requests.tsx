import { type ReactElement, useMemo, useState } from 'react';
import type { RequestView } from '../../preload/contract.ts';
import { useNavigation } from '../app/place.tsx';
import { type Column, DataTable } from '../components/data-table.tsx';
import { Icon } from '../components/icons.tsx';
import { Panel } from '../components/panel.tsx';
import { Short } from '../components/short.tsx';
import { Status, type Tone } from '../components/status.tsx';
import { UNKNOWN } from '../format/format.ts';
import { type I18n, useI18n } from '../i18n/i18n.tsx';
import { useRead, useTopic } from '../state/console.tsx';
import { placeHash } from '../state/ui-store.ts';
import { FILTER_FIELDS, type FilterToken, matchesAll, parseToken, tokenText } from './request-filter.ts';
import { TraceSide } from './request-trace.tsx';

/** Rows shown at once; older ones are found with filters. */
const SHOWN = 200;

export const OUTCOME_TONE: Readonly<Record<RequestView['outcome'], Tone>> = {
  queued: 'idle',
  running: 'idle',
  ok: 'ok',
  failed: 'bad',
  cancelled: 'idle',
};

/** What went where, newest first. The list stands still while it is paused or a request is open. */
export function RequestsPage(): ReactElement {
  const i18n = useI18n();
  const { t, f } = i18n;
  const { place, go } = useNavigation();
  const live = useTopic('requests');
  const stored = useRead('requests.list', { limit: 100 });
  const [tokens, setTokens] = useState<readonly FilterToken[]>([]);
  const [frozen, setFrozen] = useState<readonly RequestView[] | null>(null);
  const all = useMemo(() => newestFirst(live ?? [], stored.data?.requests ?? []), [live, stored.data]);
  const source = frozen ?? all;
  const shown = useMemo(() => source.filter((row) => matchesAll(row, tokens)).slice(0, SHOWN), [source, tokens]);
  const columns = useMemo(() => columnsOf(i18n), [i18n]);
  return (
    <div className={place.target ? 'with-side' : 'stack'}>
      <div className="stack">
        <div className="row">
          <FilterField tokens={tokens} onTokens={setTokens} />
          <button
            type="button"
            className="button"
            aria-pressed={frozen !== null}
            onClick={() => setFrozen(frozen ? null : all)}
          >
            {frozen
              ? t('requests.resume', { count: f.number(Math.max(0, all.length - frozen.length)) })
              : t('requests.pause')}
          </button>
        </div>
        <Panel
          live
          label={t('page.requests')}
          loading={!live && stored.isPending}
          error={!live && !stored.data ? stored.error : null}
          onRetry={() => void stored.refetch()}
          minHeight={300}
          empty={all.length === 0 ? { why: t('requests.empty'), action: <KeysLink /> } : null}
          noMatch={all.length > 0 && shown.length === 0 ? () => setTokens([]) : null}
        >
          <DataTable
            label={t('page.requests')}
            className="compact"
            columns={columns}
            rows={shown}
            rowKey={(row) => row.id}
            selected={place.target}
            onOpen={(row) => {
              setFrozen(frozen ?? all);
              go('requests', row.id);
            }}
          />
        </Panel>
      </div>
      {place.target && <TraceSide key={place.target} id={place.target} onClose={() => go('requests')} />}
    </div>
  );
}

function KeysLink(): ReactElement {
  const { t } = useI18n();
  return <a href={placeHash('keys')}>{t('go.look', { page: t('page.keys') })}</a>;
}

function newestFirst(live: readonly RequestView[], stored: readonly RequestView[]): RequestView[] {
  const known = new Map(stored.map((row) => [row.id, row]));
  for (const row of live) known.set(row.id, row);
  return [...known.values()].sort((a, b) => b.atMs - a.atMs || (a.id < b.id ? 1 : -1));
}

function FilterField(props: {
  readonly tokens: readonly FilterToken[];
  readonly onTokens: (tokens: readonly FilterToken[]) => void;
}): ReactElement {
  const { t } = useI18n();
  const { tokens, onTokens } = props;
  return (
    <div className="row grow">
      <input
        className="field grow"
        data-filter
        type="search"
        aria-label={t('requests.filter')}
        placeholder={`${t('requests.filterHint', { fields: FILTER_FIELDS.slice(0, 4).join(', ') })}   /`}
        onKeyDown={(event) => {
          const field = event.currentTarget;
          if (event.key === 'Escape') field.blur();
          if (event.key === 'Backspace' && field.value === '') onTokens(tokens.slice(0, -1));
          if (event.key !== 'Enter') return;
          const token = parseToken(field.value);
          if (token) onTokens([...tokens, token]);
          field.value = '';
        }}
      />
      {tokens.length > 0 && (
        <ul className="tokens">
          {tokens.map((token) => (
            <li key={tokenText(token)} className="token">
              {tokenText(token)}
              <button
                type="button"
                className="icon-button"
                aria-label={t('requests.removeFilter', { filter: tokenText(token) })}
                onClick={() => onTokens(tokens.filter((other) => other !== token))}
              >
                <Icon name="close" />
              </button>
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

/** "model on machine": the model has a column of its own when it is the one asked for. */
function providerWords({ providerName, model }: RequestView, { named }: I18n): string {
  const name = providerName ?? '';
  return name.startsWith(`${model} on `) ? name.slice(model.length + 4) : named(name);
}

function columnsOf(i18n: I18n): readonly Column<RequestView>[] {
  const { t, f } = i18n;
  const ms = (value: number | null) => f.number(value === null ? null : Math.round(value));
  return [
    { id: 'time', head: t('chart.time'), cell: (row) => <span className="num">{f.clock(row.atMs)}</span> },
    {
      id: 'outcome',
      head: t('requests.outcome'),
      cell: (row) => (
        <Status tone={OUTCOME_TONE[row.outcome]}>
          {row.errorCode && row.outcome !== 'cancelled' ? (
            <code>
              <Short text={row.errorCode} most={18} />
            </code>
          ) : (
            t(`outcome.${row.outcome}`)
          )}
        </Status>
      ),
    },
    { id: 'project', head: t('keys.project'), cell: (row) => row.projectName },
    { id: 'role', head: t('requests.role'), cell: (row) => row.role },
    { id: 'model', head: t('requests.model'), cell: (row) => <code>{<Short text={row.model} most={18} />}</code> },
    {
      id: 'route',
      head: t('requests.route'),
      // An overflow is always to the cloud.
      cell: (row) =>
        row.overflowed ? t('requests.overflowed') : row.route === null ? UNKNOWN : t(`kind.${row.route}`),
    },
    {
      id: 'provider',
      head: t('gate.provider'),
      cell: (row) => (row.providerName === null ? UNKNOWN : <Short text={providerWords(row, i18n)} most={22} />),
    },
    { id: 'queue', head: t('requests.queueMs'), align: 'right', cell: (row) => ms(row.queueMs) },
    { id: 'first', head: t('fleet.firstByte'), align: 'right', cell: (row) => ms(row.firstByteMs) },
    { id: 'total', head: t('requests.totalMs'), align: 'right', cell: (row) => ms(row.totalMs) },
    {
      id: 'tokens',
      head: t('requests.tokens'),
      align: 'right',
      cell: (row) =>
        row.promptTokens === null ? UNKNOWN : `${f.number(row.promptTokens)} / ${f.number(row.completionTokens)}`,
    },
    { id: 'cost', head: t('requests.cost'), align: 'right', cell: (row) => f.usd(row.costUsd) },
  ];
}
