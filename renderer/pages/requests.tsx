import { type ReactElement, useMemo, useState } from 'react';
import {
  doubtOf,
  FILTER_FIELDS,
  type FilterToken,
  parseToken,
  tokenText,
} from '../../preload/contract/request-filter.ts';
import type { RequestView } from '../../preload/contract.ts';
import { useNavigation } from '../app/place.tsx';
import { type Column, DataTable } from '../components/data-table.tsx';
import { Icon } from '../components/icons.tsx';
import { Panel } from '../components/panel.tsx';
import { Short } from '../components/short.tsx';
import { Note, Status, type Tone } from '../components/status.tsx';
import { UNKNOWN } from '../format/format.ts';
import { type I18n, useI18n } from '../i18n/i18n.tsx';
import { placeHash } from '../state/ui-store.ts';
import { useRequestHistory } from '../state/use-requests.ts';
import { TraceSide } from './request-trace.tsx';

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
  const { place, filters, go } = useNavigation();
  const tokens = useMemo(() => filters.flatMap((typed) => parseToken(typed) ?? []), [filters]);
  const history = useRequestHistory(tokens);
  // Held still under its filter only: on the way back there may be another.
  const [held, setHeld] = useState<{ readonly under: string; readonly rows: readonly RequestView[] } | null>(null);
  const under = filters.join('\n');
  const frozen = held?.under === under ? held.rows : null;
  const rows = useMemo(() => (frozen ? [...frozen, ...history.before(frozen)] : history.rows), [frozen, history]);
  const columns = useMemo(() => columnsOf(i18n), [i18n]);
  const setTokens = (next: readonly FilterToken[]) => {
    setHeld(null);
    go('requests', place.target, next.map(tokenText));
  };
  const newer = frozen ? history.newerThan(frozen) : 0;
  return (
    <div className={place.target ? 'with-side' : 'stack'}>
      <div className="stack">
        <div className="row">
          <FilterField tokens={tokens} onTokens={setTokens} />
          <button
            type="button"
            className="button"
            aria-pressed={frozen !== null}
            onClick={() => setHeld(frozen ? null : { under, rows: history.rows })}
          >
            {frozen ? t('requests.resume', { count: f.number(newer) }) : t('requests.pause')}
          </button>
        </div>
        <Doubts tokens={tokens} />
        <Panel
          live
          label={t('page.requests')}
          loading={rows.length === 0 && history.asking}
          error={rows.length === 0 || history.failedOlder ? history.error : null}
          onRetry={history.retry}
          minHeight={300}
          empty={
            rows.length === 0 && tokens.length === 0 && !history.more
              ? { why: t('requests.empty'), action: <KeysLink /> }
              : null
          }
          noMatch={rows.length === 0 && tokens.length > 0 && !history.more ? () => setTokens([]) : null}
        >
          {rows.length > 0 && (
            <DataTable
              label={t('page.requests')}
              className="compact"
              columns={columns}
              rows={rows}
              rowKey={(row) => row.id}
              selected={place.target}
              onOpen={(row) => {
                setHeld({ under, rows });
                go('requests', row.id, filters);
              }}
            />
          )}
        </Panel>
        <p className="row quiet">
          {history.more && (
            <button type="button" className="link" disabled={history.asking} onClick={history.loadOlder}>
              {t(history.asking ? 'requests.loading' : 'requests.older')}
            </button>
          )}
          <small>
            {history.more && history.lookedToMs !== null && tokens.length > 0
              ? t('requests.lookedTo', { count: f.number(rows.length), at: f.moment(history.lookedToMs) })
              : t(history.more ? 'requests.count' : 'requests.countAll', { count: f.number(rows.length) })}
          </small>
        </p>
      </div>
      {place.target && <TraceSide key={place.target} id={place.target} onClose={() => go('requests', null, filters)} />}
    </div>
  );
}

/** What of a filter cannot mean what was typed. */
function Doubts({ tokens }: { readonly tokens: readonly FilterToken[] }): ReactElement | null {
  const { t } = useI18n();
  const doubts = tokens.flatMap((token) => {
    const doubt = doubtOf(token);
    return doubt ? [{ token: tokenText(token), doubt }] : [];
  });
  if (doubts.length === 0) return null;
  return (
    <div role="status">
      {doubts.map(({ token, doubt }) => (
        <Note key={token} tone="warn">
          {doubt.about === 'field'
            ? t('requests.noField', { field: doubt.name, token, fields: FILTER_FIELDS.join(', ') })
            : t('requests.noValue', { field: doubt.name, token, values: doubt.values.join(', ') })}
        </Note>
      ))}
    </div>
  );
}

function KeysLink(): ReactElement {
  const { t } = useI18n();
  return <a href={placeHash('keys')}>{t('go.look', { page: t('page.keys') })}</a>;
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
