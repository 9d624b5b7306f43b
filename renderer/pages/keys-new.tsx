import { useQueryClient } from '@tanstack/react-query';
import { type FormEvent, type ReactElement, useState } from 'react';
import { PRIORITY_CLASSES } from '../../preload/contract/names.ts';
import { Check, Sheet, Snippet } from '../components/controls.tsx';
import { NumberField, useNumberFields } from '../components/number-field.tsx';
import { Failure } from '../components/panel.tsx';
import { SetupPicker } from '../components/setup-picker.tsx';
import { Note } from '../components/status.tsx';
import type { NumberRule } from '../format/read-number.ts';
import { useI18n } from '../i18n/i18n.tsx';
import { useConsole } from '../state/console.tsx';

const PER_MINUTE: NumberRule = { min: 1, max: 1e9, whole: true, unit: 'minute' };
const NUMBERS = {
  rpm: PER_MINUTE,
  tpm: PER_MINUTE,
  usd: { min: 0, max: 1e6, unit: 'usd' },
} as const satisfies Record<string, NumberRule>;

/** Makes a key and shows it this once. It is called past the query cache, which would keep the secret. */
export function NewKeySheet(props: { readonly endpoint: string | null; readonly onClose: () => void }): ReactElement {
  const { t } = useI18n();
  const { transport } = useConsole();
  const queries = useQueryClient();
  const [secret, setSecret] = useState<string | null>(null);
  const numbers = useNumberFields(NUMBERS);
  const [widen, setWiden] = useState(false);
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState<unknown>(null);
  const submit = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    // Whatever is no number is no "unlimited" either.
    const limits = numbers.read(event.currentTarget);
    if (limits === null) return;
    const form = new FormData(event.currentTarget);
    const text = (name: string) => String(form.get(name) ?? '');
    setBusy(true);
    setFailure(null);
    try {
      const made = await transport.call('keys.create', {
        name: text('name'),
        project: text('project'),
        allowWiden: widen,
        maxClass: PRIORITY_CLASSES.find((one) => one === text('class')) ?? 'interactive',
        requestsPerMinute: limits.rpm,
        tokensPerMinute: limits.tpm,
        usdPerDay: limits.usd,
      });
      setSecret(made.secret);
      void queries.invalidateQueries({ queryKey: ['keys.list'] });
    } catch (error) {
      setFailure(error);
    } finally {
      setBusy(false);
    }
  };
  if (secret !== null) {
    return (
      <Sheet title={t('keys.madeTitle')} wide held={t('keys.held')} onClose={props.onClose}>
        <Note tone="warn">{t('keys.once')}</Note>
        <Snippet text={secret} label={t('keys.copySecret')} />
        {props.endpoint && <SetupPicker endpoint={props.endpoint} secret={secret} />}
        <div className="row end">
          <button type="button" className="button primary" onClick={props.onClose}>
            {t('keys.stored')}
          </button>
        </div>
      </Sheet>
    );
  }
  return (
    <Sheet title={t('keys.newTitle')} onClose={props.onClose}>
      <form className="form" onSubmit={(event) => void submit(event)}>
        <div className="pair">
          <label>
            {t('keys.name')}
            <input className="field" name="name" required maxLength={100} placeholder={t('keys.namePlaceholder')} />
          </label>
          <label>
            {t('keys.project')}
            <input className="field" name="project" required maxLength={100} defaultValue="default" />
          </label>
        </div>
        <label>
          {t('keys.highestClass')}
          <select className="field" name="class" defaultValue="interactive">
            {PRIORITY_CLASSES.map((one) => (
              <option key={one} value={one}>
                {t(`class.${one}`)}
              </option>
            ))}
          </select>
        </label>
        <Check label={t('keys.widenMeans')} checked={widen} onChange={setWiden} />
        <div className="pair">
          <NumberField {...numbers.of('rpm')} label={t('keys.rpm')} value={null} placeholder={t('keys.unlimited')} />
          <NumberField {...numbers.of('tpm')} label={t('keys.tpm')} value={null} placeholder={t('keys.unlimited')} />
        </div>
        <NumberField {...numbers.of('usd')} label={t('keys.usdDay')} value={null} placeholder={t('keys.unlimited')} />
        {failure !== null && <Failure error={failure} />}
        <div className="row end">
          <button type="button" className="button" onClick={props.onClose}>
            {t('action.cancel')}
          </button>
          <button type="submit" className="button primary" disabled={busy}>
            {t('keys.make')}
          </button>
        </div>
      </form>
    </Sheet>
  );
}
