import { type FormEvent, type ReactElement, useRef, useState } from 'react';
import { KEY_BYTES } from '../../preload/contract/names.ts';
import type { CloudView, KeyHolderView, Output } from '../../preload/contract.ts';
import { useUi } from '../app/ui.tsx';
import { useI18n } from '../i18n/i18n.tsx';
import { useChange, useConsole } from '../state/console.tsx';
import { CallError } from '../transport/port.ts';
import { Check, Sheet } from './controls.tsx';
import { Moment } from './moment.tsx';
import { Failure } from './panel.tsx';
import { Status, type Tone } from './status.tsx';

const HOLDER_TONE: Readonly<Record<KeyHolderView['state'], Tone>> = {
  accepted: 'ok',
  pending: 'idle',
  refused: 'bad',
  'key-missing': 'warn',
  'key-stale': 'warn',
  unreachable: 'bad',
};

/** Printable ASCII of the right length, as bytes of its own; null when it cannot be a key. */
export function keyBytes(typed: string): Uint8Array | null {
  const bytes = new TextEncoder().encode(typed.trim());
  const printable = bytes.every((byte) => byte > 0x20 && byte < 0x7f);
  if (printable && bytes.length >= KEY_BYTES.min && bytes.length <= KEY_BYTES.max) return bytes;
  bytes.fill(0);
  return null;
}

/**
 * The OpenRouter key, write-only. The field belongs to the browser: its text is in no React state, no cache and no form data; it is
 * read once, cleared, and leaves as bytes that are zeroed behind it.
 */
export function CloudKeyForm({ cloud }: { readonly cloud: CloudView | null }): ReactElement {
  const { t, say } = useI18n();
  const { transport } = useConsole();
  const ui = useUi();
  const field = useRef<HTMLInputElement>(null);
  const [remember, setRemember] = useState(false);
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState<unknown>(null);
  const submit = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const input = field.current;
    if (!input || busy) return;
    const bytes = keyBytes(input.value);
    input.value = '';
    if (!bytes) {
      setFailure(new CallError('invalid_cloud_key'));
      return;
    }
    setBusy(true);
    setFailure(null);
    try {
      await transport.pushCloudKey(bytes, remember ? { remember: true } : {});
      ui.announce(t('key.pushed'));
    } catch (error) {
      setFailure(error);
    } finally {
      setBusy(false);
    }
  };
  return (
    <form className="form" onSubmit={(event) => void submit(event)} autoComplete="off">
      <div className="row">
        <input
          ref={field}
          className="field mono grow"
          type="password"
          aria-label={t('key.label')}
          placeholder={isHeld(cloud) ? t('key.replacePlaceholder') : 'sk-or-…'}
          autoComplete="off"
          spellCheck={false}
        />
        <button type="submit" className="button primary" disabled={busy}>
          {t(busy ? 'key.sending' : 'key.send')}
        </button>
      </div>
      {cloud?.canRemember && <Check label={t('key.remember')} checked={remember} onChange={setRemember} />}
      {cloud?.rememberNote && <small>{say(cloud.rememberNote)}</small>}
      {failure !== null && <Failure error={failure} />}
    </form>
  );
}

const isHeld = (cloud: CloudView | null): boolean =>
  (cloud?.holders ?? []).some(({ state }) => state === 'accepted' || state === 'key-stale');

/** Who holds the key, since when; never the key. */
export function KeyHolders({ cloud }: { readonly cloud: CloudView }): ReactElement {
  const { t, say } = useI18n();
  const accepted = cloud.holders.filter((holder) => holder.state === 'accepted');
  // Nobody misses a key that was never given, or that a person had dropped.
  const isNone = (holder: KeyHolderView) =>
    holder.reason?.code === 'key_none' || holder.reason?.code === 'key_forgotten';
  return (
    <div className="stack">
      <p>
        {accepted.length > 0 ? (
          <>
            <Status tone="ok">
              {t(accepted.length === 1 ? 'key.acceptedByOne' : 'key.acceptedBy', {
                count: accepted.length,
                names: accepted.map((holder) => holder.nodeName).join(', '),
              })}
            </Status>{' '}
            <span className="quiet">
              <Moment atMs={Math.max(...accepted.map((holder) => holder.atMs ?? 0)) || null} />
            </span>
          </>
        ) : (
          <span className="quiet">{t('key.none')}</span>
        )}
      </p>
      {cloud.holders.length > 0 && (
        <ul className="holders">
          {cloud.holders.map((holder) => (
            <li key={holder.nodeId}>
              <b>{holder.nodeName}</b>
              <span>
                {isNone(holder) ? (
                  <Status tone="idle">{t(holder.reason?.code === 'key_none' ? 'key.noneYet' : 'key.noKey')}</Status>
                ) : (
                  <>
                    <Status tone={HOLDER_TONE[holder.state]}>{t(`holder.${holder.state}`)}</Status>{' '}
                    {holder.reason && <span className="quiet">{say(holder.reason)}</span>}
                  </>
                )}
                {holder.baseUrl && <span className="mono quiet"> {new URL(holder.baseUrl).host}</span>}
                {holder.remembered && <span className="quiet"> {t('key.remembered')}</span>}
              </span>
              <span className="quiet">
                <Moment atMs={holder.atMs} />
              </span>
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

export function KeyActions({ cloud }: { readonly cloud: CloudView }): ReactElement | null {
  const { t, say } = useI18n();
  const ui = useUi();
  const test = useChange('cloud.test', ['cloud.status']);
  const forget = useChange('cloud.forget', ['cloud.status']);
  const [asking, setAsking] = useState(false);
  const [results, setResults] = useState<Output<'cloud.test'>['results'] | null>(null);
  if (!cloud.holders.some((holder) => holder.state !== 'key-missing')) return null;
  return (
    <div className="stack">
      <div className="row">
        <button
          type="button"
          className="button"
          disabled={test.isPending}
          onClick={() => test.mutate({}, { onSuccess: (answer) => setResults(answer.results) })}
        >
          {t(test.isPending ? 'key.testing' : 'key.test')}
        </button>
        <button type="button" className="button danger" onClick={() => setAsking(true)}>
          {t('key.forget')}
        </button>
      </div>
      {test.isError && <Failure error={test.error} />}
      {results?.map((result) => (
        <p key={result.nodeId}>
          <Status tone={result.works ? 'ok' : 'bad'}>{result.nodeName}</Status>{' '}
          <span className="quiet">{say(result.reason)}</span>
        </p>
      ))}
      {asking && (
        <Sheet title={t('key.forgetTitle')} onClose={() => setAsking(false)}>
          <p>{t('key.forgetMeans')}</p>
          {forget.isError && <Failure error={forget.error} />}
          <div className="row end">
            <button type="button" className="button" onClick={() => setAsking(false)}>
              {t('action.cancel')}
            </button>
            <button
              type="button"
              className="button danger"
              disabled={forget.isPending}
              onClick={() =>
                forget.mutate(
                  {},
                  {
                    onSuccess: () => {
                      setAsking(false);
                      setResults(null);
                      ui.announce(t('key.forgotten'));
                    },
                  },
                )
              }
            >
              {t('key.forget')}
            </button>
          </div>
        </Sheet>
      )}
    </div>
  );
}
