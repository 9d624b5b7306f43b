import { type ReactElement, useState } from 'react';
import type { KeyView } from '../../preload/contract.ts';
import { useAsked, useUi } from '../app/ui.tsx';
import { CloudKeyForm, KeyActions, KeyHolders } from '../components/cloud-key.tsx';
import { Sheet } from '../components/controls.tsx';
import { type Column, DataTable } from '../components/data-table.tsx';
import { Moment } from '../components/moment.tsx';
import { Failure, Panel } from '../components/panel.tsx';
import { SetupPicker } from '../components/setup-picker.tsx';
import { Status } from '../components/status.tsx';
import { type I18n, useI18n } from '../i18n/i18n.tsx';
import { useChange, useRead, useTopic } from '../state/console.tsx';
import { NewKeySheet } from './keys-new.tsx';

export function KeysPage(): ReactElement {
  const i18n = useI18n();
  const { t } = i18n;
  const cloud = useTopic('cloud');
  const app = useTopic('app');
  const keys = useRead('keys.list', {}, { everyMs: 10_000 });
  const [making, setMaking] = useState(false);
  useAsked('new-key', () => setMaking(true));
  const [revoking, setRevoking] = useState<KeyView | null>(null);
  const newButton = (
    <button type="button" className="button primary" onClick={() => setMaking(true)}>
      {t('keys.new')}
    </button>
  );
  const rows = keys.data?.keys ?? [];
  return (
    <div className="stack">
      <div className="columns">
        <Panel live title={t('key.title')} sub={t('key.writeOnly')} loading={!cloud} minHeight={120}>
          <div className="stack">
            <CloudKeyForm cloud={cloud ?? null} />
            {cloud && <KeyHolders cloud={cloud} />}
            {cloud && <KeyActions cloud={cloud} />}
          </div>
        </Panel>
        <Panel title={t('setup.title')} sub={t('setup.sub')}>
          {app?.endpoint ? (
            <SetupPicker endpoint={app.endpoint} secret={null} />
          ) : (
            <p className="quiet">{t('setup.notListening')}</p>
          )}
        </Panel>
      </div>
      <Panel
        title={t('keys.title')}
        sub={t('keys.sub')}
        tools={newButton}
        loading={keys.isPending}
        error={keys.data ? null : keys.error}
        onRetry={() => void keys.refetch()}
        empty={keys.data && rows.length === 0 ? { why: t('keys.empty'), action: newButton } : null}
      >
        <DataTable
          label={t('keys.title')}
          columns={columnsOf(i18n, setRevoking)}
          rows={rows}
          rowKey={(key) => key.id}
        />
      </Panel>
      {making && <NewKeySheet endpoint={app?.endpoint ?? null} onClose={() => setMaking(false)} />}
      {revoking && <RevokeSheet apiKey={revoking} onClose={() => setRevoking(null)} />}
    </div>
  );
}

function columnsOf({ t, f }: I18n, onRevoke: (key: KeyView) => void): readonly Column<KeyView>[] {
  return [
    {
      id: 'name',
      head: t('keys.name'),
      cell: (key) => (
        <>
          <b>{key.name}</b>
          {key.revokedAtMs !== null && (
            <small>
              <Status tone="idle">{t('keys.revoked')}</Status>
            </small>
          )}
        </>
      ),
    },
    {
      id: 'project',
      head: t('keys.project'),
      cell: (key) => (key.anyProject ? t('keys.anyProject') : key.projectName),
    },
    {
      id: 'scopes',
      head: t('keys.scopes'),
      cell: (key) =>
        [
          ...key.scopes.map((scope) => t(`scope.${scope}`)),
          ...(key.allowWiden ? [t('keys.widens')] : []),
          t('keys.upTo', { class: t(`class.${key.maxClass}`) }),
        ].join(', '),
    },
    {
      id: 'limits',
      head: t('keys.limits'),
      cell: (key) => {
        const limits = [
          key.requestsPerMinute === null ? null : t('keys.perMinute', { count: f.number(key.requestsPerMinute) }),
          key.tokensPerMinute === null ? null : t('keys.tokensPerMinute', { count: f.number(key.tokensPerMinute) }),
          key.usdPerDay === null ? null : t('keys.perDay', { usd: f.usd(key.usdPerDay) }),
        ].filter((limit) => limit !== null);
        return limits.length > 0 ? limits.join(', ') : <span className="quiet">{t('keys.noLimits')}</span>;
      },
    },
    {
      id: 'used',
      head: t('keys.lastUsed'),
      cell: (key) =>
        key.lastUsedAtMs === null ? (
          <span className="quiet">{t('keys.never')}</span>
        ) : (
          <Moment atMs={key.lastUsedAtMs} />
        ),
    },
    { id: 'made', head: t('keys.made'), cell: (key) => <Moment atMs={key.createdAtMs} /> },
    {
      id: 'do',
      head: <span className="visually-hidden">{t('action.actions')}</span>,
      align: 'right',
      cell: (key) =>
        key.revokedAtMs === null && (
          <button type="button" className="link" onClick={() => onRevoke(key)}>
            {t('keys.revoke')}
            <span className="visually-hidden"> {key.name}</span>
          </button>
        ),
    },
  ];
}

function RevokeSheet({ apiKey, onClose }: { readonly apiKey: KeyView; readonly onClose: () => void }): ReactElement {
  const { t } = useI18n();
  const ui = useUi();
  const revoke = useChange('keys.revoke', ['keys.list']);
  return (
    <Sheet title={t('keys.revokeTitle', { name: apiKey.name })} onClose={onClose}>
      <p>{t('keys.revokeMeans')}</p>
      {revoke.isError && <Failure error={revoke.error} />}
      <div className="row end">
        <button type="button" className="button" onClick={onClose}>
          {t('action.cancel')}
        </button>
        <button
          type="button"
          className="button danger"
          disabled={revoke.isPending}
          onClick={() =>
            revoke.mutate(
              { id: apiKey.id },
              {
                onSuccess: () => {
                  ui.announce(t('keys.wasRevoked', { name: apiKey.name }));
                  onClose();
                },
              },
            )
          }
        >
          {t('keys.revoke')}
        </button>
      </div>
    </Sheet>
  );
}
