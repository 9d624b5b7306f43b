import { type FormEvent, type ReactElement, useId, useState } from 'react';
import type { RolePatch, RoleView } from '../../preload/contract.ts';
import { Check, Side } from '../components/controls.tsx';
import { NumberField, useNumberFields } from '../components/number-field.tsx';
import { Note } from '../components/status.tsx';
import type { NumberRule } from '../format/read-number.ts';
import { useI18n } from '../i18n/i18n.tsx';
import { useRead, useTopic } from '../state/console.tsx';
import { UpstreamPicker } from './role-upstreams.tsx';
import { HurdleView, useRoleChange } from './roles.tsx';

const CAP: NumberRule = { min: 0, max: 1e6, unit: 'usd' };
const NUMBERS = {
  wait: { min: 0, max: 3600, required: true, unit: 'seconds' },
  floor: { min: 0, max: 1e6, unit: 'tokens' },
  threshold: { min: 0.99, max: 1, required: true },
  dayCap: CAP,
  monthCap: CAP,
} as const satisfies Record<string, NumberRule>;
type RoleNumbers = Readonly<Record<keyof typeof NUMBERS, number | null>>;

/** Comma or line separated names, without empty ones. */
export function names(text: string): string[] {
  return text
    .split(/[,\n]/)
    .map((name) => name.trim())
    .filter((name) => name !== '');
}

/** Only what differs from the role as it is now goes out. */
export function patchOf(role: RoleView, form: FormData, auto: boolean, numbers: RoleNumbers): RolePatch {
  const text = (name: string) => String(form.get(name) ?? '').trim();
  const patch: { -readonly [Key in keyof RolePatch]: RolePatch[Key] } = {};
  const localModels = auto ? ('auto' as const) : names(text('localModels'));
  if (JSON.stringify(localModels) !== JSON.stringify(role.localModels)) patch.localModels = localModels;
  const model = text('cloudModel') === '' ? null : text('cloudModel');
  const upstreams = names(text('upstreams'));
  const cloud = {
    ...(model === role.cloud.model ? {} : { model }),
    ...(JSON.stringify(upstreams) === JSON.stringify(role.cloud.upstreams) ? {} : { upstreams }),
  };
  if (Object.keys(cloud).length > 0) patch.cloud = cloud;
  const { threshold, wait, floor, dayCap: dayUsd, monthCap: monthUsd } = numbers;
  if (role.threshold !== null && threshold !== null && threshold !== role.threshold) patch.threshold = threshold;
  if (wait !== null && Math.round(wait * 1000) !== role.maxLocalWaitMs) patch.maxLocalWaitMs = Math.round(wait * 1000);
  if (floor !== role.minTokensPerSecond) patch.minTokensPerSecond = floor;
  const caps = {
    ...(dayUsd === role.spendCaps.dayUsd ? {} : { dayUsd }),
    ...(monthUsd === role.spendCaps.monthUsd ? {} : { monthUsd }),
  };
  if (Object.keys(caps).length > 0) patch.spendCaps = caps;
  return patch;
}

/** Models, pin, threshold and caps of one role. */
export function RoleSide({ role, onClose }: { readonly role: RoleView; readonly onClose: () => void }): ReactElement {
  const { t, f, say } = useI18n();
  /** The cloud model in the field, once it has been left: its upstreams are looked up before it is saved. */
  const [chosen, setChosen] = useState(role.cloud.model ?? '');
  const [pins, setPins] = useState(role.cloud.upstreams.join(', '));
  const cloudState = useTopic('cloud')?.state;
  // Nobody has tried to read it then: an agent does, with the key.
  const keyless = cloudState === 'key-missing' || cloudState === 'no-agent';
  const models = useRead('roles.models', { id: role.id, ...(chosen === '' ? {} : { model: chosen.slice(0, 160) }) });
  const { change, busy, hurdle, notes, clear } = useRoleChange(role);
  const [auto, setAuto] = useState(role.localModels === 'auto');
  const [saved, setSaved] = useState(false);
  const lists = useId();
  const numbers = useNumberFields(NUMBERS);
  const submit = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const read = numbers.read(event.currentTarget);
    if (read === null) return;
    const patch = patchOf(role, new FormData(event.currentTarget), auto, read);
    setSaved(Object.keys(patch).length === 0 || (await change(patch)));
  };
  const upstreams = models.data?.cloud?.find((one) => one.model === chosen)?.upstreams ?? [];
  const pinned = names(pins);
  const toggle = (slug: string) => {
    setSaved(false);
    setPins((pinned.includes(slug) ? pinned.filter((pin) => pin !== slug) : [...pinned, slug]).join(', '));
  };
  return (
    <Side title={role.id} onClose={onClose}>
      <form className="form" onSubmit={(event) => void submit(event)} onChange={() => setSaved(false)}>
        <Check
          label={t('role.enabled')}
          checked={role.enabled}
          disabled={busy}
          onChange={(enabled) => void change({ enabled })}
        />
        <h4>{t('role.local')}</h4>
        <Check label={t('role.auto')} checked={auto} onChange={setAuto} />
        {!auto && (
          <label>
            {t('role.localModels')}
            <textarea
              className="field mono"
              name="localModels"
              defaultValue={
                role.localModels === 'auto'
                  ? role.serving
                      .filter(({ kind }) => kind === 'local')
                      .map(({ model }) => model)
                      .join('\n')
                  : role.localModels.join('\n')
              }
            />
            <small>
              {(models.data?.local ?? []).length > 0 &&
                t('role.present', { models: models.data?.local.map((one) => one.model).join(', ') ?? '' })}
            </small>
          </label>
        )}
        <div className="pair">
          <NumberField {...numbers.of('wait')} label={t('role.wait')} value={role.maxLocalWaitMs / 1000} />
          <NumberField {...numbers.of('floor')} label={t('role.floor')} value={role.minTokensPerSecond} />
        </div>
        {role.threshold !== null && (
          <NumberField {...numbers.of('threshold')} label={t('role.thresholdLabel')} value={role.threshold} />
        )}
        <h4>{t('role.cloud')}</h4>
        <label>
          {t('role.cloudModel')}
          <input
            className="field mono"
            name="cloudModel"
            list={`${lists}m`}
            defaultValue={role.cloud.model ?? ''}
            placeholder="author/model"
            onBlur={(event) => setChosen(event.currentTarget.value.trim())}
          />
          <datalist id={`${lists}m`}>
            {(models.data?.cloud ?? []).map((one) => (
              <option key={one.model} value={one.model} />
            ))}
          </datalist>
          {models.data && models.data.cloud === null && (
            <small>{t(keyless ? 'role.keyFirst' : 'role.noCatalogue')}</small>
          )}
        </label>
        <label>
          {t('role.pin')}
          <input
            className="field mono"
            name="upstreams"
            value={pins}
            onChange={(event) => setPins(event.currentTarget.value)}
          />
          {role.task === 'embed' && upstreams.length === 0 && <small>{t('role.pinMeans')}</small>}
        </label>
        {upstreams.length > 0 && <UpstreamPicker upstreams={upstreams} pinned={pinned} onToggle={toggle} />}
        <div className="pair">
          <NumberField {...numbers.of('dayCap')} label={t('role.dayCap')} value={role.spendCaps.dayUsd} />
          <NumberField {...numbers.of('monthCap')} label={t('role.monthCap')} value={role.spendCaps.monthUsd} />
        </div>
        <small>{t('role.spentSoFar', { day: f.usd(role.spentDayUsd), month: f.usd(role.spentMonthUsd) })}</small>
        {hurdle && <HurdleView role={role} hurdle={hurdle} onClose={clear} />}
        {notes.map((note) => (
          <Note key={note.code} tone="warn" alert>
            {say(note)}
          </Note>
        ))}
        <div className="row end">
          {saved && <span className="ok">✓ {t('action.saved')}</span>}
          <button type="submit" className="button primary" disabled={busy}>
            {t('action.save')}
          </button>
        </div>
      </form>
    </Side>
  );
}
