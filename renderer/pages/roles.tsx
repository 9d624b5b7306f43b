import { type ReactElement, type ReactNode, useEffect, useState } from 'react';
import { POLICIES } from '../../preload/contract/names.ts';
import type { Output, RolePatch, RoleView } from '../../preload/contract.ts';
import { useNavigation } from '../app/place.tsx';
import { useUi } from '../app/ui.tsx';
import { Segments } from '../components/controls.tsx';
import { Failure, Panel } from '../components/panel.tsx';
import { Short } from '../components/short.tsx';
import { Note } from '../components/status.tsx';
import { UNKNOWN } from '../format/format.ts';
import { useI18n } from '../i18n/i18n.tsx';
import { useConsole, useTopic } from '../state/console.tsx';
import { placeHash } from '../state/ui-store.ts';
import { LeavingSheet } from './role-leaving.tsx';
import { RoleSide } from './role-side.tsx';
import { NewSpaceSheet } from './role-space.tsx';

type Preview = Output<'roles.preview'>;

export function RolesPage(): ReactElement {
  const { t } = useI18n();
  const { place, go } = useNavigation();
  const roles = useTopic('roles');
  const selected = roles?.find((role) => role.id === place.target) ?? null;
  return (
    <div className={selected ? 'with-side' : 'stack'}>
      <Panel live label={t('page.roles')} loading={!roles} minHeight={480}>
        <div className="roles">
          {(roles ?? []).map((role) => (
            <Role key={role.id} role={role} onOpen={() => go('roles', role.id)} />
          ))}
        </div>
      </Panel>
      {selected && <RoleSide key={selected.id} role={selected} onClose={() => go('roles')} />}
    </div>
  );
}

/** What stands between a wish and its change: a refusal, a new space or a way out of the network to be confirmed. */
export type Hurdle =
  | { readonly kind: 'refused'; readonly preview: Preview }
  | { readonly kind: 'new-space' | 'leaves'; readonly preview: Preview; readonly patch: RolePatch }
  | { readonly kind: 'failed'; readonly error: unknown };

/** Asks first what a change would mean, and makes it only when it is plain and lets nothing out that so far may not leave. */
export function useRoleChange(role: RoleView) {
  const { transport } = useConsole();
  const ui = useUi();
  const { t } = useI18n();
  const [hurdle, setHurdle] = useState<Hurdle | null>(null);
  const [notes, setNotes] = useState<NonNullable<Preview['notes']>>([]);
  const [busy, setBusy] = useState(false);
  const change = async (patch: RolePatch): Promise<boolean> => {
    setBusy(true);
    setHurdle(null);
    setNotes([]);
    try {
      const preview = await transport.call('roles.preview', { id: role.id, patch });
      if (preview.effect === 'refused') setHurdle({ kind: 'refused', preview });
      else if (preview.effect === 'new-space') setHurdle({ kind: 'new-space', preview, patch });
      else if (preview.leaves !== null) setHurdle({ kind: 'leaves', preview, patch });
      else {
        await transport.call('roles.update', { id: role.id, patch });
        ui.announce(t('role.changed', { role: role.id }));
        setNotes(preview.notes ?? []);
        return true;
      }
    } catch (error) {
      setHurdle({ kind: 'failed', error });
    } finally {
      setBusy(false);
    }
    return false;
  };
  return { change, busy, hurdle, notes, clear: () => setHurdle(null) };
}

/** By then a change that was made has been heard of, or never will be. */
const HEARD_WITHIN_MS = 2000;

function Role({ role, onOpen }: { readonly role: RoleView; readonly onOpen: () => void }): ReactElement {
  const { t, f, say } = useI18n();
  const { change, busy, hurdle, clear } = useRoleChange(role);
  // Shown as chosen at once; the core's own word, which follows within half a second, takes its place.
  const [wanted, setWanted] = useState<{ readonly policy: RoleView['policy']; readonly made: boolean } | null>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: any word of the core about the policy ends the wish
  useEffect(() => setWanted(null), [role.policy]);
  useEffect(() => {
    if (!wanted?.made) return;
    // Somebody else may have changed it back before the core said anything: then no word ever comes.
    const timer = setTimeout(() => setWanted(null), HEARD_WITHIN_MS);
    return () => clearTimeout(timer);
  }, [wanted]);
  const choose = async (policy: RoleView['policy']) => {
    if (busy) return;
    setWanted({ policy, made: false });
    setWanted((await change({ policy })) ? { policy, made: true } : null);
  };
  // What the role would use is under "Cloud model"; nobody offers it, so nobody serves with it.
  const serving = role.serving.filter((one) => one.kind === 'local' || role.cloudOffered !== false);
  return (
    <article className="role" aria-label={role.id} data-role={role.id}>
      <div className="head">
        <h3>{role.id}</h3>
        <small>{t(`task.${role.task}`)}</small>
        <p className={role.enabled ? undefined : 'quiet'}>{say(role.now)}</p>
      </div>
      <div className="row">
        <Segments
          label={t('role.policy', { role: role.id })}
          deliberate
          value={wanted?.policy ?? role.policy}
          options={POLICIES.map((policy) => ({
            value: policy,
            label: t(`policy.${policy}`),
            title: t(`policyMeans.${policy}`),
          }))}
          onChange={(policy) => void choose(policy)}
        />
        <button type="button" className="button" onClick={onOpen}>
          {t('action.edit')}
          <span className="visually-hidden"> {role.id}</span>
        </button>
      </div>
      <dl className="details">
        <Fact label={t('role.models')}>
          {serving.length === 0
            ? UNKNOWN
            : serving.map((one) => (
                <div key={`${one.kind} ${one.model}`} className="mono">
                  <Short text={one.model} most={24} />
                </div>
              ))}
        </Fact>
        <Fact label={t('role.ready')}>
          {t('role.readyCounts', { local: f.number(role.localReady), cloud: f.number(role.cloudReady) })}
        </Fact>
        <Fact label={t('role.waiting')}>{f.number(role.queued)}</Fact>
        <Fact label={t('role.estimate')}>{f.duration(role.waitEstimateMs)}</Fact>
        {role.task === 'embed' && (
          <Fact label={t('role.space')}>
            <SpaceFact role={role} />
          </Fact>
        )}
        <Fact label={t('role.cloudModel')} className="cloud-model">
          <CloudFact role={role} />
        </Fact>
        <Fact label={t('role.today')} className="today">
          {f.usd(role.spentDayUsd)}
          {role.spendCaps.dayUsd !== null && ` / ${f.usd(role.spendCaps.dayUsd)}`}
        </Fact>
      </dl>
      {hurdle && <HurdleView role={role} hurdle={hurdle} onClose={clear} />}
    </article>
  );
}

export function HurdleView(props: {
  readonly role: RoleView;
  readonly hurdle: Hurdle;
  readonly onClose: () => void;
}): ReactElement {
  const { say } = useI18n();
  const { role, hurdle, onClose } = props;
  switch (hurdle.kind) {
    case 'new-space':
      return <NewSpaceSheet role={role} patch={hurdle.patch} preview={hurdle.preview} onClose={onClose} />;
    case 'leaves':
      return <LeavingSheet role={role} patch={hurdle.patch} leaves={hurdle.preview.leaves} onClose={onClose} />;
    case 'failed':
      return (
        <div>
          <Failure error={hurdle.error} />
        </div>
      );
    default:
      return (
        <div>
          <Note tone="bad" alert>
            {hurdle.preview.reasons.map((reason) => (
              <p key={reason.code}>{say(reason)}</p>
            ))}
          </Note>
        </div>
      );
  }
}

function Fact(props: {
  readonly label: string;
  readonly className?: string;
  readonly children: ReactNode;
}): ReactElement {
  const { label, children } = props;
  return (
    <div className={props.className}>
      <dt>{label}</dt>
      <dd>{children}</dd>
    </div>
  );
}

function SpaceFact({ role }: { readonly role: RoleView }): ReactElement {
  const { t, f } = useI18n();
  if (!role.space) return <a href={placeHash('gate')}>{t('role.unfounded')}</a>;
  const parts = [
    t('role.wide', { width: f.number(role.space.width) }),
    ...(role.space.trial ? [t('role.trial')] : []),
    t('role.thresholdShort', { threshold: f.cosine(role.threshold) }),
  ];
  return (
    <>
      <a className="mono" href={placeHash('gate')}>
        {role.space.id}
      </a>
      <small>{parts.join(', ')}</small>
    </>
  );
}

function CloudFact({ role }: { readonly role: RoleView }): ReactElement {
  const { t } = useI18n();
  const { model, upstreams } = role.cloud;
  if (model === null) return <span className="quiet">{t('role.noCloudModel')}</span>;
  return (
    <>
      <span className="mono">{model}</span>
      {upstreams.length > 0 && <small>{t('role.pinned', { upstreams: upstreams.join(', ') })}</small>}
      {role.task === 'embed' && upstreams.length === 0 && <small className="warn">{t('role.noPin')}</small>}
      {role.cloudOffered === false && (
        <small className="warn">
          {t('role.notOffered')}
          {role.cloudNearest.length > 0 && ` ${t('role.nearest', { ids: role.cloudNearest.join(', ') })}`}
        </small>
      )}
    </>
  );
}
