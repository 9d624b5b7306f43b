import { type ReactElement, type ReactNode, useState } from 'react';
import type { Output } from '../../preload/contract.ts';
import { useNavigation } from '../app/place.tsx';
import { CloudKeyForm, KeyHolders } from '../components/cloud-key.tsx';
import { Segments } from '../components/controls.tsx';
import { Failure } from '../components/panel.tsx';
import { SetupPicker } from '../components/setup-picker.tsx';
import { Status } from '../components/status.tsx';
import { useI18n } from '../i18n/i18n.tsx';
import { useChange, useTopic } from '../state/console.tsx';
import { AddMachine, Found } from './fleet-add.tsx';
import { byName, NODE_TONE, servedBy } from './states.ts';

/** First run: a machine, the key, a test. Machines are being looked for at once; each step can be left out. */
export function WelcomePage(): ReactElement {
  const { t } = useI18n();
  const { go } = useNavigation();
  const settings = useChange('settings.set', ['settings.get']);
  const leave = () => {
    settings.mutate({ console: { firstRunDone: true } });
    go('overview');
  };
  return (
    <div className="welcome">
      <p>{t('welcome.intro')}</p>
      <ol className="steps">
        <Machines />
        <CloudStep />
        <TestStep />
      </ol>
      <div className="row">
        <button type="button" className="button primary" onClick={leave}>
          {t('welcome.done')}
        </button>
        <span className="quiet">{t('welcome.later')}</span>
      </div>
    </div>
  );
}

function Step(props: {
  readonly number: number;
  readonly done: boolean;
  readonly title: string;
  readonly children: ReactNode;
}): ReactElement {
  const { t } = useI18n();
  return (
    <li>
      <span className={props.done ? 'badge done' : 'badge'}>
        {props.done ? '✓' : props.number}
        {props.done && <span className="visually-hidden">{t('welcome.stepDone')}</span>}
      </span>
      <section className="what" aria-label={props.title}>
        <h3>{props.title}</h3>
        {props.children}
      </section>
    </li>
  );
}

function Machines(): ReactElement {
  const { t } = useI18n();
  const nodes = useTopic('nodes');
  const providers = useTopic('providers');
  const [address, setAddress] = useState<string | null>(null);
  const ready = (nodes ?? []).filter((node) => node.state === 'ready');
  const trialOnly = ready.every((node) => node.embedded) && (providers ?? []).length > 0;
  return (
    <Step number={1} done={ready.length > 0} title={t('welcome.machines')}>
      <ul className="holders">
        {[...(nodes ?? [])].sort(byName).map((node) => (
          <li key={node.id}>
            <b>{node.name}</b>
            <span className="quiet">{servedBy(node) || t('fleet.noRoles')}</span>
            <Status tone={NODE_TONE[node.state]}>{t(`node.${node.state}`)}</Status>
          </li>
        ))}
      </ul>
      {trialOnly && <p className="quiet">{t('welcome.trialOnly')}</p>}
      <Found onPick={setAddress} />
      <div className="row">
        <button type="button" className="button" aria-haspopup="dialog" onClick={() => setAddress('')}>
          {t('welcome.byAddress')}
        </button>
      </div>
      {address !== null && <AddMachine address={address} onClose={() => setAddress(null)} />}
    </Step>
  );
}

function CloudStep(): ReactElement {
  const { t } = useI18n();
  const cloud = useTopic('cloud');
  const held = (cloud?.holders ?? []).some((holder) => holder.state === 'accepted');
  return (
    <Step number={2} done={held} title={t('welcome.cloud')}>
      <p className="quiet">{t('welcome.cloudMeans')}</p>
      <CloudKeyForm cloud={cloud ?? null} />
      {cloud && held && <KeyHolders cloud={cloud} />}
    </Step>
  );
}

function TestStep(): ReactElement {
  const { t, f, say, named } = useI18n();
  const roles = useTopic('roles');
  const app = useTopic('app');
  const test = useChange('test.request');
  const served = (roles ?? []).filter((role) => role.localReady + role.cloudReady > 0);
  const [chosen, setChosen] = useState<(typeof served)[number]['id'] | null>(null);
  const role = chosen ?? served[0]?.id ?? 'embedding';
  const result: Output<'test.request'> | undefined = test.data;
  return (
    <Step number={3} done={result?.ok ?? false} title={t('welcome.test')}>
      <div className="row">
        {served.length > 1 && (
          <Segments
            label={t('welcome.testRole')}
            value={role}
            options={served.map((one) => ({ value: one.id, label: one.id }))}
            onChange={setChosen}
          />
        )}
        <button type="button" className="button" disabled={test.isPending} onClick={() => test.mutate({ role })}>
          {t(test.isPending ? 'welcome.testing' : 'welcome.runTest')}
        </button>
      </div>
      {test.isError && <Failure error={test.error} />}
      {result && (
        <p>
          <Status tone={result.ok ? 'ok' : 'bad'}>
            {result.ok
              ? t(result.providerName?.startsWith(`${result.model} `) ? 'welcome.answeredBy' : 'welcome.answered', {
                  provider: named(result.providerName ?? ''),
                  model: result.model ?? '',
                  time: f.duration(result.totalMs),
                })
              : result.error
                ? say(result.error)
                : t('error.internal')}
          </Status>{' '}
          {result.measure && (
            <span className="quiet">
              {t(`measure.${result.measure.unit}`, { value: f.number(result.measure.value) })}
            </span>
          )}
        </p>
      )}
      {app?.endpoint && (
        <>
          <h4>{t('setup.title')}</h4>
          <SetupPicker endpoint={app.endpoint} secret={null} />
        </>
      )}
    </Step>
  );
}
