import { type ReactElement, useId, useState } from 'react';
import { Sheet } from '../components/controls.tsx';
import { Failure } from '../components/panel.tsx';
import { useI18n } from '../i18n/i18n.tsx';
import { type Choice, choicesFor, useChoices } from './palette-choices.ts';
import { PAGE_LETTERS } from './shortcuts.ts';

/** Every key there is. */
export function HelpSheet({ onClose }: { readonly onClose: () => void }): ReactElement {
  const { t } = useI18n();
  const keys: readonly (readonly [string, string])[] = [
    ['Ctrl K', t('help.palette')],
    ['/', t('help.filter')],
    ['j  k  ↓  ↑', t('help.move')],
    ['Enter', t('help.open')],
    ['Esc', t('help.close')],
    ...Object.entries(PAGE_LETTERS).map(
      ([letter, page]) => [`g ${letter}`, t('help.go', { page: t(`page.${page}`) })] as const,
    ),
    ['?', t('help.help')],
  ];
  return (
    <Sheet title={t('help.title')} onClose={onClose}>
      <dl className="facts">
        {keys.map(([key, does]) => (
          <KeyRow key={key} name={key} does={does} />
        ))}
      </dl>
      <p className="quiet">{t('help.off')}</p>
      <div className="row end">
        <button type="button" className="button" onClick={onClose}>
          {t('action.close')}
        </button>
      </div>
    </Sheet>
  );
}

function KeyRow({ name, does }: { readonly name: string; readonly does: string }): ReactElement {
  return (
    <>
      <dt>
        <kbd>{name}</kbd>
      </dt>
      <dd>{does}</dd>
    </>
  );
}

/** Goes anywhere, and does what there is to do, by typing a piece of its name. */
export function Palette({ onClose }: { readonly onClose: () => void }): ReactElement {
  const { t } = useI18n();
  const list = useId();
  const [typed, setTyped] = useState('');
  const [active, setActive] = useState(0);
  const choices = useChoices();
  const found = choicesFor(choices, typed).slice(0, 40);
  const current = Math.min(active, Math.max(0, found.length - 1));
  const pick = (choice: Choice | undefined) => {
    if (!choice) return;
    onClose();
    choice.go();
  };
  return (
    <Sheet title={t('palette.title')} onClose={onClose}>
      <div className="palette">
        <input
          // biome-ignore lint/a11y/noAutofocus: the palette is opened to type in it
          autoFocus
          role="combobox"
          aria-expanded="true"
          aria-controls={list}
          aria-activedescendant={found[current] ? `${list}-${current}` : undefined}
          aria-label={t('palette.label')}
          placeholder={t('palette.label')}
          value={typed}
          onChange={(event) => {
            setTyped(event.target.value);
            setActive(0);
          }}
          onKeyDown={(event) => {
            const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0;
            if (step !== 0) {
              event.preventDefault();
              setActive(Math.max(0, Math.min(found.length - 1, current + step)));
            } else if (event.key === 'Enter') {
              event.preventDefault();
              pick(found[current]);
            }
          }}
        />
        <div className="choices" id={list} role="listbox" tabIndex={-1} aria-label={t('palette.title')}>
          {found.map((choice, at) => (
            // biome-ignore lint/a11y/useKeyWithClickEvents: the combobox above takes the keys
            // biome-ignore lint/a11y/useFocusableInteractive: focus stays in the combobox
            <div
              key={choice.id}
              className="choice"
              id={`${list}-${at}`}
              role="option"
              aria-selected={at === current}
              onClick={() => pick(choice)}
            >
              {choice.label}
              <small>{choice.hint}</small>
            </div>
          ))}
        </div>
        {found.length === 0 && <p className="quiet">{t('palette.none')}</p>}
      </div>
    </Sheet>
  );
}

/** What was chosen in the palette and could not be done: it has no place of its own on a page. */
export function FailureSheet({
  error,
  onClose,
}: {
  readonly error: unknown;
  readonly onClose: () => void;
}): ReactElement {
  const { t } = useI18n();
  return (
    <Sheet title={t('palette.failed')} onClose={onClose}>
      <Failure error={error} />
      <div className="row end">
        <button type="button" className="button" onClick={onClose}>
          {t('action.close')}
        </button>
      </div>
    </Sheet>
  );
}
