import { useQueryClient } from '@tanstack/react-query';
import { type FormEvent, type ReactElement, useEffect, useRef, useState } from 'react';
import { Failure } from '../components/panel.tsx';
import { useI18n } from '../i18n/i18n.tsx';
import { useConsole } from '../state/console.tsx';

/**
 * All that a console shows that nobody is signed in to. The field belongs to the browser: the token is in no React state and no
 * storage; it is read once, cleared, and exchanged for a session.
 */
export function SignIn(): ReactElement {
  const { t } = useI18n();
  const { transport } = useConsole();
  const queries = useQueryClient();
  const field = useRef<HTMLInputElement>(null);
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState<unknown>(null);
  // What the last session read is not for whoever comes next.
  useEffect(() => queries.clear(), [queries]);
  useEffect(() => {
    document.title = `${t('signIn.title')} · Switchyard`;
    field.current?.focus();
  }, [t]);
  const submit = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const input = field.current;
    if (!input || busy || !transport.signIn) return;
    const typed = input.value;
    input.value = '';
    setBusy(true);
    setFailure(null);
    try {
      await transport.signIn(typed);
    } catch (error) {
      setFailure(error);
    } finally {
      setBusy(false);
      field.current?.focus();
    }
  };
  return (
    <main className="sign-in">
      <h1>Switchyard</h1>
      <h2>{t('signIn.title')}</h2>
      <p>{t('signIn.why')}</p>
      <form className="form" onSubmit={(event) => void submit(event)} autoComplete="off">
        <label>
          {t('signIn.token')}
          <input ref={field} className="field mono" type="password" autoComplete="off" spellCheck={false} required />
        </label>
        <div className="row end">
          <button type="submit" className="button primary" disabled={busy}>
            {t(busy ? 'signIn.checking' : 'signIn.enter')}
          </button>
        </div>
      </form>
      {failure !== null && <Failure error={failure} />}
      <p className="quiet">{t('signIn.lost')}</p>
    </main>
  );
}
