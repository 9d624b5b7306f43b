import { type FormEvent, type ReactElement, useState } from 'react';
import { isListenAddress, isOrigin, isServedName } from '../../preload/contract/names.ts';
import type { AppView, SettingsPatch, SettingsView } from '../../preload/contract.ts';
import { Check, Snippet } from '../components/controls.tsx';
import { NumberField, useNumberFields } from '../components/number-field.tsx';
import { Note } from '../components/status.tsx';
import { TextField } from '../components/text-field.tsx';
import type { NumberRule } from '../format/read-number.ts';
import { useI18n } from '../i18n/i18n.tsx';
import { CallError } from '../transport/port.ts';
import { names } from './role-side.tsx';
import { Section } from './settings-section.tsx';

const NUMBERS = {
  port: { min: 0, max: 65_535, whole: true, required: true },
} as const satisfies Record<string, NumberRule>;
type Field = 'bind' | 'names' | 'origins';

/** A refusal that is about the address alone, and stands at its field. */
export const isAboutAddress = (error: unknown): boolean =>
  error instanceof CallError && (error.code === 'address_absent' || error.code === 'address_unknown');

/** Where it is reached, and by whom. */
export function Endpoint(props: {
  readonly settings: SettingsView;
  readonly app: AppView | null;
  /** What the last change was refused for. */
  readonly failure: unknown;
  readonly onChange: (patch: SettingsPatch) => void;
}): ReactElement {
  const { t, say } = useI18n();
  const { endpoint } = props.settings;
  return (
    <Section title={t('settings.endpoint')}>
      {props.app?.endpoint && <Snippet text={`${props.app.endpoint}/v1`} label={t('nav.copyEndpoint')} />}
      {props.app?.endpointNote && <Note tone="warn">{say(props.app.endpointNote)}</Note>}
      {/* Others may have changed it meanwhile: what is shown is what holds. */}
      <Form key={JSON.stringify(endpoint)} {...props} />
      <Check
        label={t('settings.openLoopback')}
        checked={endpoint.openLoopback}
        onChange={(openLoopback) => props.onChange({ endpoint: { openLoopback } })}
      />
    </Section>
  );
}

function Form(props: {
  readonly settings: SettingsView;
  readonly failure: unknown;
  readonly onChange: (patch: SettingsPatch) => void;
}): ReactElement {
  const { t, sayError } = useI18n();
  const { endpoint } = props.settings;
  const numbers = useNumberFields(NUMBERS);
  const [faults, setFaults] = useState<Partial<Record<Field, string>>>({});
  const [isEdited, setEdited] = useState(false);
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const element = event.currentTarget;
    const form = new FormData(element);
    const bind = String(form.get('bind')).trim();
    const served = names(String(form.get('names')));
    // As a browser writes an origin: without a last slash, in lower case.
    const origins = names(String(form.get('origins'))).map((origin) => origin.replace(/\/$/, '').toLowerCase());
    const strangeName = served.find((name) => !isServedName(name));
    const strangeOrigin = origins.find((origin) => !isOrigin(origin));
    const found: Partial<Record<Field, string>> = {
      ...(isListenAddress(bind) ? {} : { bind: t('settings.strangeBind') }),
      ...(strangeName === undefined ? {} : { names: t('settings.strangeName', { name: strangeName }) }),
      ...(strangeOrigin === undefined ? {} : { origins: t('settings.strangeOrigin', { origin: strangeOrigin }) }),
    };
    setFaults(found);
    setEdited(false);
    const read = numbers.read(element);
    const [first] = Object.keys(found);
    if (first !== undefined) element.querySelector<HTMLInputElement>(`[name="${first}"]`)?.focus();
    if (first !== undefined || read === null) return;
    props.onChange({
      endpoint: { bind, port: read.port ?? endpoint.port, names: served, allowedOrigins: origins },
    });
  };
  const of = (name: Field) => ({
    name,
    onEdit: () => {
      setEdited(true);
      setFaults((before) => ({ ...before, [name]: undefined }));
    },
  });
  const refused = isAboutAddress(props.failure) && !isEdited ? sayError(props.failure) : null;
  return (
    <form className="form" onSubmit={submit} noValidate>
      <div className="pair">
        <TextField {...of('bind')} label={t('settings.bind')} value={endpoint.bind} fault={faults.bind ?? refused} />
        <NumberField {...numbers.of('port')} label={t('settings.port')} value={endpoint.port} />
      </div>
      <TextField
        {...of('names')}
        label={t('settings.names')}
        value={endpoint.names.join(', ')}
        fault={faults.names ?? null}
      />
      <TextField
        {...of('origins')}
        label={t('settings.origins')}
        value={endpoint.allowedOrigins.join(', ')}
        fault={faults.origins ?? null}
      />
      <div className="row end">
        <button type="submit" className="button">
          {t('action.save')}
        </button>
      </div>
    </form>
  );
}
