import { type ChangeEvent, type ReactElement, useRef, useState } from 'react';
import type { Output } from '../../preload/contract.ts';
import { useUi } from '../app/ui.tsx';
import { Sheet } from '../components/controls.tsx';
import { Failure } from '../components/panel.tsx';
import { Note } from '../components/status.tsx';
import { useI18n } from '../i18n/i18n.tsx';
import { useChange, useConsole } from '../state/console.tsx';
import { LeavingWords } from './role-leaving.tsx';

interface Asked {
  readonly content: string;
  readonly preview: Output<'settings.preview'>;
}

/** Takes a file over. One that would let a role's texts out of the network is asked about first, as the Roles page does. */
export function useImport() {
  const { t, f } = useI18n();
  const { transport } = useConsole();
  const ui = useUi();
  const file = useRef<HTMLInputElement>(null);
  const [asked, setAsked] = useState<Asked | null>(null);
  const [failure, setFailure] = useState<unknown>(null);
  const bring = useChange('settings.import', ['settings.get']);
  const take = (content: string, confirm: boolean) =>
    bring.mutate(confirm ? { content, confirm } : { content }, {
      onSuccess: ({ changed }) => {
        setAsked(null);
        ui.announce(t('settings.imported', { count: f.number(changed.length) }));
      },
    });
  const read = async (event: ChangeEvent<HTMLInputElement>) => {
    const chosen = event.target.files?.[0];
    event.target.value = '';
    if (!chosen) return;
    setFailure(null);
    bring.reset();
    try {
      const content = await chosen.text();
      const preview = await transport.call('settings.preview', { content });
      if (preview.leaves.length > 0) setAsked({ content, preview });
      else take(content, false);
    } catch (error) {
      setFailure(error);
    }
  };
  const problem = failure ?? (asked === null ? bring.error : null);
  return {
    choose: () => file.current?.click(),
    failure: problem,
    skipped: bring.data?.skipped ?? [],
    parts: (
      <>
        <input ref={file} type="file" accept="application/json,.json" hidden onChange={(event) => void read(event)} />
        {asked && (
          <ImportSheet
            preview={asked.preview}
            busy={bring.isPending}
            failure={bring.error}
            onClose={() => setAsked(null)}
            onConfirm={() => take(asked.content, true)}
          />
        )}
      </>
    ),
  };
}

function ImportSheet(props: {
  readonly preview: Output<'settings.preview'>;
  readonly busy: boolean;
  readonly failure: unknown;
  readonly onClose: () => void;
  readonly onConfirm: () => void;
}): ReactElement {
  const { t, say } = useI18n();
  const { changes, leaves, skipped } = props.preview;
  return (
    <Sheet title={t('settings.importLeaves')} onClose={props.onClose}>
      {leaves.map(({ role, to }) => (
        <section key={role} aria-label={role}>
          <h4>{role}</h4>
          <LeavingWords role={role} leaves={to} />
        </section>
      ))}
      <p className="quiet">{t('settings.importTakes', { what: changes.join(', ') })}</p>
      {skipped.map((reason) => (
        <Note key={reason.sentence} tone="warn">
          {say(reason)}
        </Note>
      ))}
      {props.failure !== null && <Failure error={props.failure} />}
      <div className="row end">
        <button type="button" className="button" onClick={props.onClose}>
          {t('action.cancel')}
        </button>
        <button type="button" className="button primary" disabled={props.busy} onClick={props.onConfirm}>
          {t('leaving.confirm')}
        </button>
      </div>
    </Sheet>
  );
}
