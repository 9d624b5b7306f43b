import { useQueryClient } from '@tanstack/react-query';
import { type FormEvent, type ReactElement, useEffect, useRef, useState } from 'react';
import { Failure } from '../components/panel.tsx';
import { useI18n } from '../i18n/i18n.tsx';
import { useConsole } from '../state/console.tsx';
import { CallError } from '../transport/port.ts';

const isWrongToken = (failure: unknown) => failure instanceof CallError && failure.code === 'invalid_admin_token';

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
      {isWrongToken(failure) ? <WrongToken /> : failure !== null && <Failure error={failure} />}
      <p className="quiet">{t('signIn.lost')}</p>
    </main>
  );
}

/** The error's own sentence is for programs, which send a header: a person is told what may be wrong and what to do. */
function WrongToken(): ReactElement {
  const { t } = useI18n();
  return (
    <div className="empty" role="alert">
      <span className="bad">
        <b aria-hidden="true">✕ </b>
        {t('signIn.wrong')}
      </span>
      <p>{t('signIn.wrongNext')}</p>
      <small>
        <code>invalid_admin_token</code>
      </small>
    </div>
  );
}
