import { type FormEvent, type ReactElement, useEffect, useRef, useState } from 'react';
import { useUi } from '../app/ui.tsx';
import { Segments, Sheet } from '../components/controls.tsx';
import { Failure, Panel } from '../components/panel.tsx';
import { Note } from '../components/status.tsx';
import { useI18n } from '../i18n/i18n.tsx';
import { useChange, useRead } from '../state/console.tsx';
import { CallError } from '../transport/port.ts';
import { OneCommand } from './fleet-add-command.tsx';

type Way = 'found' | 'address' | 'command';

/** Three ways to a new machine: one that was seen on the network, one whose address is known, one with nothing on it yet. */
export function AddMachine(props: {
  /** Opens the form for it at once, '' for one that is yet to be typed; null looks on the network first. */
  readonly address?: string | null;
  readonly onClose: () => void;
}): ReactElement {
  const { t } = useI18n();
  const { onClose } = props;
  const [way, setWay] = useState<Way>(props.address == null ? 'found' : 'address');
  const [address, setAddress] = useState(props.address ?? '');
  // Somebody who goes through the ways with the arrow keys stays at them; one who picked a machine types next.
  const [typesNext, setTypesNext] = useState(way === 'address');
  return (
    <Sheet title={t('add.title')} wide onClose={onClose}>
      <Segments<Way>
        label={t('add.way')}
        value={way}
        options={[
          { value: 'found', label: t('add.found') },
          { value: 'address', label: t('add.address') },
          { value: 'command', label: t('add.command') },
        ]}
        onChange={(chosen) => {
          setTypesNext(false);
          setWay(chosen);
        }}
      />
      {way === 'found' && (
        <Found
          onPick={(picked) => {
            setAddress(picked);
            setTypesNext(true);
            setWay('address');
          }}
        />
      )}
      {way === 'address' && <PairForm key={address} address={address} typesNext={typesNext} onClose={onClose} />}
      {way === 'command' && <OneCommand />}
      {way !== 'address' && (
        <div className="row end">
          <CloseButton onClose={onClose} />
        </div>
      )}
    </Sheet>
  );
}

function CloseButton({ onClose }: { readonly onClose: () => void }): ReactElement {
  const { t } = useI18n();
  return (
    <button type="button" className="button" onClick={onClose}>
      {t('action.close')}
    </button>
  );
}

/** Machines seen on the network now. A hint only: one behind a VPN is added by its address. */
export function Found({ onPick }: { readonly onPick: (address: string) => void }): ReactElement {
  const { t, say } = useI18n();
  const discovery = useRead('discovery.list', {}, { everyMs: 2000 });
  const found = (discovery.data?.found ?? []).filter((one) => !one.paired);
  return (
    <Panel
      label={t('add.found')}
      minHeight={90}
      loading={discovery.isPending}
      error={discovery.data ? null : discovery.error}
      onRetry={() => void discovery.refetch()}
    >
      {discovery.data?.problem && <Note tone="warn">{say(discovery.data.problem)}</Note>}
      {found.length === 0 ? (
        <p className="quiet">{t(discovery.data?.searching ? 'add.searching' : 'add.nothingFound')}</p>
      ) : (
        <ul className="holders">
          {found.map((one) => (
            <li key={one.id}>
              <b>{one.name}</b>
              <span className="mono quiet" title={t('add.fingerprint')}>
                {one.address} · {one.fingerprintShort}
              </span>
              <button type="button" className="button" onClick={() => onPick(one.address)}>
                {t('add.pair')}
                <span className="visually-hidden"> {one.name}</span>
              </button>
            </li>
          ))}
        </ul>
      )}
    </Panel>
  );
}

function PairForm(props: {
  readonly address: string;
  /** The first field that is still empty takes the keyboard. */
  readonly typesNext: boolean;
  readonly onClose: () => void;
}): ReactElement {
  const { t } = useI18n();
  const ui = useUi();
  const form = useRef<HTMLFormElement>(null);
  useEffect(() => {
    const fields = [...(form.current?.querySelectorAll('input') ?? [])];
    if (props.typesNext) fields.find((field) => field.value === '')?.focus();
  }, [props.typesNext]);
  const add = useChange('nodes.add', ['nodes.list', 'discovery.list']);
  const [wrong, setWrong] = useState<'address' | 'code' | null>(null);
  const asking = add.isPending;
  // The button that was pressed is off while it is asked, and loses the keyboard: a refusal puts it where it can be mended.
  useEffect(() => {
    if (wrong === null || asking) return;
    form.current?.querySelector<HTMLInputElement>(`input[name=${wrong}]`)?.focus();
  }, [wrong, asking]);
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    setWrong(null);
    add.mutate(
      { address: String(form.get('address')).trim(), joinCode: String(form.get('code')).trim() },
      {
        onSuccess: (node) => {
          ui.announce(t('add.paired', { name: node.name }));
          props.onClose();
        },
        onError: (error) => setWrong(fieldOf(error)),
      },
    );
  };
  return (
    <form className="form" ref={form} onSubmit={submit}>
      <div className="pair">
        <label>
          {t('add.addressLabel')}
          <input
            className="field mono"
            name="address"
            required
            aria-invalid={wrong === 'address'}
            defaultValue={props.address}
            placeholder="192.168.1.20:7412"
          />
        </label>
        <label>
          {t('add.code')}
          <input
            className="field mono"
            name="code"
            required
            aria-invalid={wrong === 'code'}
            autoComplete="off"
            spellCheck={false}
            placeholder="XXXX-XXXX-XXXX-XXXX"
          />
        </label>
      </div>
      <p className="quiet">{t('add.codeMeans')}</p>
      {add.isError && <Failure error={add.error} />}
      <div className="row end">
        <CloseButton onClose={props.onClose} />
        <button type="submit" className="button primary" disabled={add.isPending}>
          {t(add.isPending ? 'add.pairing' : 'add.pair')}
        </button>
      </div>
    </form>
  );
}

/** Which of the two a refusal speaks of. */
function fieldOf(error: unknown): 'address' | 'code' {
  const isCode = error instanceof CallError && (error.code === 'join_refused' || error.code === 'invalid_join_code');
  return isCode ? 'code' : 'address';
}
