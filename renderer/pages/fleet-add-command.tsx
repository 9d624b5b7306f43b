import { type FormEvent, type ReactElement, useEffect, useState } from 'react';
import type { EnrolmentView, Output } from '../../preload/contract.ts';
import { useUi } from '../app/ui.tsx';
import { Snippet } from '../components/controls.tsx';
import { Failure } from '../components/panel.tsx';
import { Note, Status, type Tone } from '../components/status.tsx';
import { useI18n } from '../i18n/i18n.tsx';
import { useChange, useConsole, useRead } from '../state/console.tsx';
import { useNow } from '../state/ticker.tsx';

const TONES: Readonly<Record<EnrolmentView['state'], Tone>> = {
  waiting: 'idle',
  running: 'idle',
  joined: 'ok',
  failed: 'bad',
  expired: 'bad',
};

const isOver = ({ state }: EnrolmentView) => state === 'joined' || state === 'expired';

/** The command works once, so it lives in this dialog alone and in no cache. */
export function OneCommand(): ReactElement {
  const { t } = useI18n();
  const { transport } = useConsole();
  const [made, setMade] = useState<Output<'enrolments.create'> | null>(null);
  const [failure, setFailure] = useState<unknown>(null);
  const [busy, setBusy] = useState(false);
  const enrolments = useRead('enrolments.list', {}, { everyMs: 1000 });
  const submit = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const text = (name: string) => String(form.get(name)).trim();
    setBusy(true);
    setFailure(null);
    try {
      setMade(
        await transport.call('enrolments.create', {
          model: text('model') === '' ? null : text('model'),
          engine: text('engine') === 'ollama' ? 'ollama' : null,
          baseWeight: Number(form.get('weight')) || 1,
          ...(text('from') === '' ? {} : { address: text('from') }),
        }),
      );
    } catch (error) {
      setFailure(error);
    } finally {
      setBusy(false);
    }
  };
  if (made) {
    const progress = enrolments.data?.enrolments.find((one) => one.id === made.enrolment.id) ?? made.enrolment;
    return <Command made={made} progress={progress} onLeave={() => setMade(null)} />;
  }
  const underway = (enrolments.data?.enrolments ?? []).filter((one) => !isOver(one));
  return (
    <form className="form" onSubmit={(event) => void submit(event)}>
      <p className="quiet">{t('add.commandMeans')}</p>
      <div className="pair">
        <label>
          {t('add.model')}
          <input className="field mono" name="model" placeholder="qwen3:8b" pattern="[A-Za-z0-9._:\/@\-]{1,128}" />
        </label>
        <label>
          {t('add.engine')}
          <select className="field" name="engine" defaultValue="ollama">
            <option value="ollama">Ollama</option>
            <option value="">{t('add.adopt')}</option>
          </select>
        </label>
      </div>
      <div className="pair">
        <label>
          {t('add.weight')}
          <input className="field num" name="weight" type="number" min="0.1" max="10" step="0.1" defaultValue="1" />
        </label>
        <label>
          {t('add.from')}
          <input className="field mono" name="from" maxLength={64} placeholder={t('add.fromMeans')} />
        </label>
      </div>
      {failure !== null && <Failure error={failure} />}
      <div className="row end">
        <button type="submit" className="button primary" disabled={busy}>
          {t('add.make')}
        </button>
      </div>
      {underway.length > 0 && (
        <section aria-label={t('add.underway')}>
          <h4>{t('add.underway')}</h4>
          <ul className="holders">
            {underway.map((one) => (
              <li key={one.id}>
                <Status tone={TONES[one.state]}>{t(`enrolment.${one.state}`)}</Status>
                <span className="quiet">
                  <span className="mono">{one.model ?? t('add.anyModel')}</span> · <Left until={one.expiresAtMs} />
                </span>
                <Withdraw enrolment={one} />
              </li>
            ))}
          </ul>
        </section>
      )}
    </form>
  );
}

function Left({ until }: { readonly until: number }): ReactElement {
  const { t, f } = useI18n();
  return <span className="num quiet">{t('add.left', { left: f.duration(Math.max(0, until - useNow())) })}</span>;
}

function Withdraw(props: { readonly enrolment: EnrolmentView; readonly onDone?: () => void }): ReactElement {
  const { t } = useI18n();
  const ui = useUi();
  const cancel = useChange('enrolments.cancel', ['enrolments.list']);
  const withdraw = () =>
    cancel.mutate(
      { id: props.enrolment.id },
      {
        onSuccess: () => {
          ui.announce(t('add.withdrawn'));
          props.onDone?.();
        },
      },
    );
  return (
    <span className="row">
      {cancel.isError && <Failure error={cancel.error} />}
      <button type="button" className="button" disabled={cancel.isPending} onClick={withdraw}>
        {t('add.withdraw')}
      </button>
    </span>
  );
}

function Command(props: {
  readonly made: Output<'enrolments.create'>;
  readonly progress: EnrolmentView;
  readonly onLeave: () => void;
}): ReactElement {
  const { t, say } = useI18n();
  const ui = useUi();
  const { progress } = props;
  const joined = progress.state === 'joined';
  useEffect(() => {
    if (joined) ui.announce(t('add.joined'));
  }, [joined, t, ui]);
  const failed = progress.steps.findLast((step) => step.state === 'failed');
  return (
    <div className="stack">
      {!isOver(progress) && (
        <>
          <h4>Linux, macOS</h4>
          <Snippet text={props.made.commands.posix} label={t('add.copyPosix')} />
          <h4>Windows PowerShell</h4>
          <Snippet text={props.made.commands.powershell} label={t('add.copyPowershell')} />
          <p className="quiet">{t('add.once')}</p>
        </>
      )}
      <div className="row">
        <Status tone={TONES[progress.state]}>{t(`enrolment.${progress.state}`)}</Status>
        {!isOver(progress) && <Left until={progress.expiresAtMs} />}
      </div>
      {failed && !joined && (
        <Note tone="bad" alert>
          {failed.detail ? say(failed.detail) : t('add.again')}
        </Note>
      )}
      <Steps steps={progress.steps} />
      <div className="row end">
        {isOver(progress) ? (
          <button type="button" className="button" onClick={props.onLeave}>
            {t('add.newCommand')}
          </button>
        ) : (
          <Withdraw enrolment={progress} onDone={props.onLeave} />
        )}
      </div>
    </div>
  );
}

function Steps({ steps }: Pick<EnrolmentView, 'steps'>): ReactElement | null {
  const { t, f, say } = useI18n();
  if (steps.length === 0) return null;
  return (
    <ul className="holders" aria-label={t('add.steps')}>
      {steps.map((step) => (
        <li key={step.code}>
          <Status tone={step.state === 'done' ? 'ok' : step.state === 'failed' ? 'bad' : 'idle'}>
            {say({ code: `enrol_${step.code}`, sentence: step.sentence })}
          </Status>
          {/* Why one failed stands above, where it is read. */}
          <span className="quiet">{step.state === 'done' && step.detail ? say(step.detail) : ''}</span>
          <span className="num quiet">{step.percent === null ? '' : f.unit(step.percent, '%')}</span>
        </li>
      ))}
    </ul>
  );
}
