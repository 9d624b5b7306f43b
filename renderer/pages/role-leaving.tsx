import { type ReactElement, useState } from 'react';
import { OPENROUTER_HOST } from '../../preload/contract/names.ts';
import type { LeavingView, RolePatch, RoleView } from '../../preload/contract.ts';
import { useUi } from '../app/ui.tsx';
import { Sheet } from '../components/controls.tsx';
import { Failure } from '../components/panel.tsx';
import { useI18n } from '../i18n/i18n.tsx';
import { useConsole } from '../state/console.tsx';

/** That texts of a role leave from then on, and to whom they go. */
export function LeavingWords(props: { readonly role: string; readonly leaves: LeavingView }): ReactElement {
  const { t } = useI18n();
  const { openRouter, elsewhere } = props.leaves;
  const there = openRouter && {
    hosts: openRouter.hosts.join(', ') || OPENROUTER_HOST,
    model: openRouter.model,
  };
  return (
    <>
      <p>{t('leaving.soFar', { role: props.role })}</p>
      {openRouter && there && (
        <p>
          {openRouter.upstreams.length === 0
            ? t('leaving.toOpenRouter', there)
            : t('leaving.toPinned', { ...there, upstreams: openRouter.upstreams.join(', ') })}
        </p>
      )}
      {elsewhere.length > 0 && <p>{t('leaving.elsewhere', { hosts: elsewhere.join(', ') })}</p>}
      {openRouter === null && elsewhere.length === 0 && <p>{t('leaving.nobodyYet')}</p>}
    </>
  );
}

/** Asked before a role lets go of `local`: nothing leaves the network because of one click. */
export function LeavingSheet(props: {
  readonly role: RoleView;
  readonly patch: RolePatch;
  readonly leaves: LeavingView | null;
  readonly onClose: () => void;
}): ReactElement {
  const { t } = useI18n();
  const { transport } = useConsole();
  const ui = useUi();
  const { role, patch, leaves, onClose } = props;
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState<unknown>(null);
  const confirm = async () => {
    setBusy(true);
    setFailure(null);
    try {
      await transport.call('roles.update', { id: role.id, patch });
      ui.announce(t('role.changed', { role: role.id }));
      onClose();
    } catch (error) {
      setFailure(error);
      setBusy(false);
    }
  };
  return (
    <Sheet title={t('leaving.title', { role: role.id })} onClose={onClose}>
      {leaves && <LeavingWords role={role.id} leaves={leaves} />}
      {patch.policy && (
        <p className="quiet">
          {t(`policy.${patch.policy}`)}: {t(`policyMeans.${patch.policy}`)}.
        </p>
      )}
      {failure !== null && <Failure error={failure} />}
      <div className="row end">
        <button type="button" className="button" onClick={onClose}>
          {t('action.cancel')}
        </button>
        <button type="button" className="button primary" disabled={busy} onClick={() => void confirm()}>
          {t('leaving.confirm')}
        </button>
      </div>
    </Sheet>
  );
}
