import { type ReactElement, useState } from 'react';
import { useI18n } from '../i18n/i18n.tsx';
import { KEY_PLACEHOLDER, setups } from '../pages/setups.ts';
import { Snippet } from './controls.tsx';

/** The lines that point a tool here. */
export function SetupPicker(props: { readonly endpoint: string; readonly secret: string | null }): ReactElement {
  const { t } = useI18n();
  const all = setups(props.endpoint, props.secret ?? KEY_PLACEHOLDER);
  const [chosen, setChosen] = useState(all[0]?.id ?? '');
  const setup = all.find((one) => one.id === chosen);
  return (
    <div className="stack">
      <select
        className="field"
        aria-label={t('setup.tool')}
        value={chosen}
        onChange={(event) => setChosen(event.target.value)}
      >
        {all.map((one) => (
          <option key={one.id} value={one.id}>
            {one.name}
          </option>
        ))}
      </select>
      {setup && <Snippet text={setup.text} label={t('setup.copy', { tool: setup.name })} />}
      {props.secret === null && <small>{t('setup.replace', { placeholder: KEY_PLACEHOLDER })}</small>}
    </div>
  );
}
