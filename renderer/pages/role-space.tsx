import { type ReactElement, useState } from 'react';
import type { FounderView, Output, RolePatch, RoleView } from '../../preload/contract.ts';
import { useUi } from '../app/ui.tsx';
import { Check, Sheet } from '../components/controls.tsx';
import { Failure } from '../components/panel.tsx';
import { Note } from '../components/status.tsx';
import { useI18n } from '../i18n/i18n.tsx';
import { useConsole } from '../state/console.tsx';
import { LeavingWords } from './role-leaving.tsx';

/**
 * Says what a new vector space means before there is one: every vector written so far is worthless in it. Nothing happens without
 * a founder, a tick and a button.
 */
export function NewSpaceSheet(props: {
  readonly role: RoleView;
  readonly patch: RolePatch;
  readonly preview: Output<'roles.preview'>;
  /** What is said when nobody can found; absent: by the policy. */
  readonly nobody?: 'space.thisCannot';
  readonly onClose: () => void;
}): ReactElement {
  const { t, say } = useI18n();
  const { transport } = useConsole();
  const ui = useUi();
  const { role, preview } = props;
  const [founder, setFounder] = useState<string | null>(preview.founders.find((one) => one.ready)?.providerId ?? null);
  const [understood, setUnderstood] = useState(false);
  const policy = props.patch.policy ?? role.policy;
  const able = preview.founders.some((one) => one.ready);
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState<unknown>(null);
  const confirm = async () => {
    if (founder === null) return;
    setBusy(true);
    setFailure(null);
    try {
      // One call: a change that fails after its founding would leave a worthless index and the old settings.
      const patch = Object.keys(props.patch).length > 0 ? { patch: props.patch } : {};
      await transport.call('spaces.found', { role: role.id, founder, ...patch, confirm: true });
      ui.announce(t('space.founded', { role: role.id }));
      props.onClose();
    } catch (error) {
      setFailure(error);
    } finally {
      setBusy(false);
    }
  };
  return (
    <Sheet
      title={t(role.space ? 'space.replaceTitle' : 'space.foundTitle', { role: role.id })}
      wide
      onClose={props.onClose}
    >
      {preview.reasons.map((reason) => (
        <p key={reason.code}>{say(reason)}</p>
      ))}
      {role.space && able && <Note tone="warn">{t('space.means', { space: role.space.id })}</Note>}
      {preview.leaves && able && (
        <Note tone="warn">
          <LeavingWords role={role.id} leaves={preview.leaves} />
        </Note>
      )}
      {preview.founders.length === 0 ? (
        <Note tone="bad">
          {t(props.nobody ?? (policy === 'cloud' ? 'space.noFounderCloud' : 'space.noFounder'), { role: role.id })}
        </Note>
      ) : (
        <FounderChoice
          founders={preview.founders}
          hasSpace={role.space !== null}
          chosen={founder}
          onChoose={setFounder}
        />
      )}
      {role.space && able && <Check label={t('space.understood')} checked={understood} onChange={setUnderstood} />}
      {failure !== null && <Failure error={failure} />}
      <div className="row end">
        <button type="button" className="button" onClick={props.onClose}>
          {t(able ? 'action.cancel' : 'action.close')}
        </button>
        {able && (
          <button
            type="button"
            className="button primary"
            disabled={busy || founder === null || (role.space !== null && !understood)}
            onClick={() => void confirm()}
          >
            {t('space.found')}
          </button>
        )}
      </div>
    </Sheet>
  );
}

function FounderChoice(props: {
  readonly founders: readonly FounderView[];
  /** There is one to compare with. */
  readonly hasSpace: boolean;
  readonly chosen: string | null;
  readonly onChoose: (id: string) => void;
}): ReactElement {
  const { t, f, say, named } = useI18n();
  return (
    <fieldset className="form">
      <legend className="quiet">{t('space.founder')}</legend>
      {props.founders.map((one) => (
        <label key={one.providerId} className="check">
          <input
            type="radio"
            name="founder"
            checked={one.providerId === props.chosen}
            disabled={!one.ready}
            onChange={() => props.onChoose(one.providerId)}
          />
          <span>
            <b>{named(one.title)}</b> <span className="mono">{one.model}</span>
            {one.width !== null && `, ${t('role.wide', { width: f.number(one.width) })}`}
            <span className="quiet">
              {' '}
              {props.hasSpace &&
                (one.minCosine === null
                  ? t('space.neverMeasured')
                  : t('space.measured', { cosine: f.cosine(one.minCosine) }))}
              {one.reason && ` ${say(one.reason)}`}
            </span>
          </span>
        </label>
      ))}
    </fieldset>
  );
}
