import { type ReactElement, useState } from 'react';
import type { AppView, SettingsPatch, SettingsView, UpdateView } from '../../preload/contract.ts';
import { Check, Sheet } from '../components/controls.tsx';
import { Moment } from '../components/moment.tsx';
import { Failure } from '../components/panel.tsx';
import { UNKNOWN } from '../format/format.ts';
import { useI18n } from '../i18n/i18n.tsx';
import { useChange } from '../state/console.tsx';
import { Section } from './settings-section.tsx';

export function About(props: {
  readonly app: AppView | null;
  readonly settings: SettingsView;
  readonly onChange: (patch: SettingsPatch) => void;
}): ReactElement {
  const { t } = useI18n();
  const { app } = props;
  return (
    <Section title={t('settings.about')}>
      <dl className="facts">
        <dt>{t('settings.version')}</dt>
        <dd>{app?.version ?? UNKNOWN}</dd>
        {app?.updates && (
          <>
            <dt>{t('settings.updates')}</dt>
            <dd>
              <UpdateState update={app.updates} />
            </dd>
          </>
        )}
        <dt>{t('settings.runsAs')}</dt>
        <dd>{app ? `${t(`shell.${app.shell}`)}, ${app.platform}` : UNKNOWN}</dd>
        <dt>{t('settings.started')}</dt>
        <dd>
          <Moment atMs={app?.startedAtMs ?? null} />
        </dd>
      </dl>
      {app?.updates && app.updates.state !== 'unavailable' && (
        <>
          <Check
            label={t('settings.checkUpdates')}
            checked={props.settings.updates.check}
            onChange={(check) => props.onChange({ updates: { check } })}
          />
          <UpdateActions update={app.updates} />
        </>
      )}
    </Section>
  );
}

function UpdateState({ update }: { readonly update: UpdateView }): ReactElement {
  const { t } = useI18n();
  switch (update.state) {
    case 'unavailable':
      return <span className="quiet">{t(`updateNone.${update.reason}`)}</span>;
    case 'idle':
      return update.checkedAtMs === null ? (
        <span className="quiet">{t('update.notYet')}</span>
      ) : (
        <>
          {t('update.newest')}{' '}
          <span className="quiet">
            <Moment atMs={update.checkedAtMs} />
          </span>
        </>
      );
    case 'checking':
      return <>{t('update.checking')}</>;
    case 'available':
      return (
        <>
          <span className="warn">{t('update.available', { version: update.version })}</span>{' '}
          <code>{update.feedUrl}</code>
        </>
      );
    case 'downloading':
      return <>{t('update.downloading', { version: update.version })}</>;
    case 'ready':
      return <span className="warn">{t('update.ready', { version: update.version })}</span>;
    case 'failed':
      return <span className="bad">{t(`updateFailed.${update.step}`)}</span>;
  }
}

/** Looks now, or puts in place what is ready; that ends the app, so it asks first. */
function UpdateActions({ update }: { readonly update: UpdateView }): ReactElement {
  const { t } = useI18n();
  const look = useChange('updates.check');
  const install = useChange('updates.install');
  const [asking, setAsking] = useState(false);
  const busy = look.isPending || update.state === 'checking' || update.state === 'downloading';
  return (
    <>
      <div className="row">
        {update.state === 'ready' ? (
          <button type="button" className="button" onClick={() => setAsking(true)}>
            {t('update.install')}
          </button>
        ) : (
          <button type="button" className="button" disabled={busy} onClick={() => look.mutate({})}>
            {t('update.look')}
          </button>
        )}
      </div>
      {look.isError && <Failure error={look.error} />}
      {asking && (
        <Sheet title={t('update.install')} onClose={() => setAsking(false)}>
          <p>{t('update.installMeans')}</p>
          {install.isError && <Failure error={install.error} />}
          <div className="row end">
            <button type="button" className="button" onClick={() => setAsking(false)}>
              {t('action.cancel')}
            </button>
            <button
              type="button"
              className="button primary"
              disabled={install.isPending}
              onClick={() => install.mutate({})}
            >
              {t('update.install')}
            </button>
          </div>
        </Sheet>
      )}
    </>
  );
}
