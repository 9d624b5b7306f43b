import { type ReactElement, useState } from 'react';
import type { AppView, SettingsPatch, SettingsView } from '../../preload/contract.ts';
import { useUi } from '../app/ui.tsx';
import { saveFile } from '../components/clipboard.ts';
import { Check, Segments } from '../components/controls.tsx';
import { Failure, Panel } from '../components/panel.tsx';
import { Note } from '../components/status.tsx';
import { UNKNOWN } from '../format/format.ts';
import { useI18n } from '../i18n/i18n.tsx';
import { useChange, useConsole, useSettings, useTopic } from '../state/console.tsx';
import { About } from './settings-about.tsx';
import { Endpoint, isAboutAddress } from './settings-endpoint.tsx';
import { useImport } from './settings-import.tsx';
import { Section } from './settings-section.tsx';

export function SettingsPage(): ReactElement {
  const { t } = useI18n();
  const settings = useSettings();
  const app = useTopic('app') ?? null;
  return (
    <Panel
      label={t('page.settings')}
      loading={settings.isPending}
      error={settings.data ? null : settings.error}
      onRetry={() => void settings.refetch()}
      minHeight={480}
    >
      {/* After a restart nothing waits for one any more. */}
      {settings.data && <Sections key={app?.startedAtMs} settings={settings.data} app={app} />}
    </Panel>
  );
}

function Sections(props: { readonly settings: SettingsView; readonly app: AppView | null }): ReactElement {
  const { t } = useI18n();
  const ui = useUi();
  const { settings, app } = props;
  const set = useChange('settings.set', ['settings.get']);
  const change = (patch: SettingsPatch) =>
    set.mutate(patch, {
      onSuccess: (answer) => ui.announce(t(answer.restartNeeded ? 'settings.restart' : 'action.saved')),
    });
  const console = settings.console;
  return (
    <div className="settings">
      {set.isError && !isAboutAddress(set.error) && <Failure error={set.error} />}
      {set.data?.restartNeeded && <Note tone="warn">{t('settings.restart')}</Note>}
      <Section title={t('settings.appearance')}>
        <Choice label={t('settings.theme')}>
          <Segments
            label={t('settings.theme')}
            value={console.theme}
            options={(['system', 'light', 'dark'] as const).map((value) => ({ value, label: t(`theme.${value}`) }))}
            onChange={(theme) => change({ console: { theme } })}
          />
        </Choice>
        <Choice label={t('settings.language')}>
          <Segments
            label={t('settings.language')}
            value={console.language}
            options={[
              { value: 'system' as const, label: t('theme.system') },
              { value: 'en' as const, label: 'English' },
              { value: 'fr' as const, label: 'Français' },
            ]}
            onChange={(language) => change({ console: { language } })}
          />
        </Choice>
        <Check
          label={t('settings.singleKeys')}
          checked={console.singleKeys}
          onChange={(singleKeys) => change({ console: { singleKeys } })}
        />
      </Section>
      <Endpoint settings={settings} app={app} failure={set.error} onChange={change} />
      <Section title={t('settings.network')}>
        <Check
          label={t('settings.discovery')}
          checked={settings.discovery.enabled}
          onChange={(enabled) => change({ discovery: { enabled } })}
        />
      </Section>
      {app?.shell === 'desktop' && (
        <Section title={t('settings.desktop')}>
          <Check
            label={t('settings.startAtLogin')}
            checked={settings.desktop.startAtLogin}
            onChange={(startAtLogin) => change({ desktop: { startAtLogin } })}
          />
          <Check
            label={t('settings.closeToTray')}
            checked={settings.desktop.closeToTray}
            onChange={(closeToTray) => change({ desktop: { closeToTray } })}
          />
          <Check
            label={t('settings.notify')}
            checked={settings.notifications.enabled}
            onChange={(enabled) => change({ notifications: { enabled } })}
          />
        </Section>
      )}
      <Data app={app} />
      <About app={app} settings={settings} onChange={change} />
    </div>
  );
}

/** The word over a group of radio buttons, which bears it as its name already. */
function Choice({ label, children }: { readonly label: string; readonly children: ReactElement }): ReactElement {
  return (
    <div className="choice-of">
      <span aria-hidden="true">{label}</span>
      {children}
    </div>
  );
}

function Data({ app }: { readonly app: AppView | null }): ReactElement {
  const { t, f, say } = useI18n();
  const { transport } = useConsole();
  const [failure, setFailure] = useState<unknown>(null);
  const rotate = useChange('encryption.rotate');
  const backup = useChange('store.backup');
  const bring = useImport();
  const save = async (name: 'settings.export' | 'diagnostics.get') => {
    setFailure(null);
    try {
      saveFile(await transport.call(name, {}));
    } catch (error) {
      setFailure(error);
    }
  };
  return (
    <Section title={t('settings.data')}>
      <dl className="facts">
        <dt>{t('settings.folder')}</dt>
        <dd className="mono">{app?.dataFolder ?? UNKNOWN}</dd>
        <dt>{t('settings.size')}</dt>
        <dd>{f.bytes(app?.dataBytes)}</dd>
        <dt>{t('settings.encryption')}</dt>
        <dd>
          {app ? t(`keyring.${app.encryption.source}`, { version: app.encryption.version }) : UNKNOWN}
          {app?.encryption.note && <p className="warn">{say(app.encryption.note)}</p>}
        </dd>
      </dl>
      <div className="row">
        <button type="button" className="button" disabled={rotate.isPending} onClick={() => rotate.mutate({})}>
          {t('settings.rotate')}
        </button>
        <button type="button" className="button" disabled={backup.isPending} onClick={() => backup.mutate({})}>
          {t('settings.backup')}
        </button>
        <button type="button" className="button" onClick={() => void save('settings.export')}>
          {t('settings.export')}
        </button>
        {bring.parts}
        <button type="button" className="button" onClick={bring.choose}>
          {t('settings.import')}
        </button>
        <button type="button" className="button" onClick={() => void save('diagnostics.get')}>
          {t('settings.diagnostics')}
        </button>
      </div>
      {rotate.data && <Note tone="ok">{t('settings.rotated', { rows: f.number(rotate.data.rows) })}</Note>}
      {backup.data && <Note tone="ok">{t('settings.backedUp', { file: `backups/${backup.data.file}` })}</Note>}
      {bring.skipped.map((reason) => (
        <Note key={reason.sentence} tone="warn">
          {say(reason)}
        </Note>
      ))}
      {(failure !== null || rotate.isError || backup.isError || bring.failure !== null) && (
        <Failure error={failure ?? rotate.error ?? backup.error ?? bring.failure} />
      )}
    </Section>
  );
}
