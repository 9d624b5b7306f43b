import { type ReactElement, useState } from 'react';
import { CHECK_IDS } from '../../preload/contract/names.ts';
import type { CheckView, RoleView, SpaceView, VerdictView } from '../../preload/contract.ts';
import { useNavigation } from '../app/place.tsx';
import { useAsked, useUi } from '../app/ui.tsx';
import { type Column, DataTable } from '../components/data-table.tsx';
import { Moment } from '../components/moment.tsx';
import { Failure, Panel } from '../components/panel.tsx';
import { Short } from '../components/short.tsx';
import { GLYPHS, Status, type Tone } from '../components/status.tsx';
import { type I18n, useI18n } from '../i18n/i18n.tsx';
import { useChange, useConsole, useRead, useTopic } from '../state/console.tsx';
import { placeHash } from '../state/ui-store.ts';
import { GateDetail } from './gate-detail.tsx';
import { SpacesPanel } from './gate-spaces.tsx';
import { NewSpaceSheet } from './role-space.tsx';
import { verdictTone } from './states.ts';

/** Who may see texts of which space, and why not. One matrix per embedding role. */
export function GatePage(): ReactElement {
  const { t } = useI18n();
  const { place, go } = useNavigation();
  const roles = useTopic('roles');
  const verdicts = useTopic('gate');
  const spaces = useRead('spaces.list', {}, { everyMs: 10_000 });
  const embedding = (roles ?? []).filter((role) => role.task === 'embed');
  const chosen =
    verdicts?.find((row) => row.id === place.target) ??
    verdicts?.find((row) => row.providerId === place.target) ??
    null;
  return (
    <div className="stack">
      <Panel live label={t('page.gate')} loading={!roles || !verdicts} minHeight={360}>
        <div className="stack">
          {embedding.map((role) => (
            <RoleMatrix
              key={role.id}
              role={role}
              spaces={(spaces.data?.spaces ?? []).filter((space) => space.role === role.id)}
              rows={(verdicts ?? []).filter((row) => row.role === role.id)}
              selected={chosen?.id ?? null}
              onOpen={(row) => go('gate', row.id)}
            />
          ))}
        </div>
      </Panel>
      {chosen && (
        <GateDetail
          key={chosen.id}
          row={chosen}
          rows={(verdicts ?? []).filter((row) => row.role === chosen.role)}
          role={embedding.find((role) => role.id === chosen.role) ?? null}
        />
      )}
      <SpacesPanel spaces={spaces.data?.spaces ?? null} error={spaces.data ? null : spaces.error} />
    </div>
  );
}

function RoleMatrix(props: {
  readonly role: RoleView;
  readonly spaces: readonly SpaceView[];
  readonly rows: readonly VerdictView[];
  readonly selected: string | null;
  readonly onOpen: (row: VerdictView) => void;
}): ReactElement {
  const i18n = useI18n();
  const { t, f } = i18n;
  const { role } = props;
  // One whose reference is lost is still the space of its role.
  const lost = props.spaces.find(({ state }) => state === 'anchor-lost')?.id;
  const current = role.space?.id ?? lost ?? null;
  const space = props.spaces.find(({ id }) => id === current) ?? null;
  const rows = props.rows.filter(({ spaceId }) => spaceId === null || spaceId === current);
  const kept = [...new Set(props.rows.map(({ spaceId }) => spaceId))].filter((id) => id !== null && id !== current);
  const verify = useChange('gate.verify', ['gate.list']);
  return (
    <section aria-label={role.id}>
      <div className="space-head">
        <h3>{role.id}</h3>
        <small className="grow">
          {space
            ? t(space.trial ? 'gate.trialLine' : 'gate.spaceLine', {
                space: space.id,
                width: f.number(space.width),
                founder: `${space.founder.nodeName} / ${space.founder.model}`,
              })
            : t('gate.noSpace')}{' '}
          {space && <Moment atMs={space.foundedAtMs} />}
        </small>
        {!role.space && props.rows.length > 0 && <FoundButton role={role} />}
        {props.rows.length > 0 && (
          <button type="button" className="link quiet" disabled={verify.isPending} onClick={() => verify.mutate({})}>
            {t('gate.verifyAll')}
          </button>
        )}
      </div>
      {props.rows.length === 0 ? (
        <div className="empty">
          <span>{t('gate.empty')}</span>
          <a href={placeHash('fleet')}>{t('go.look', { page: t('page.fleet') })}</a>
        </div>
      ) : (
        <DataTable
          label={t('gate.matrix', { role: role.id })}
          className="matrix"
          columns={columnsOf(i18n)}
          rows={rows}
          rowKey={(row) => row.id}
          selected={props.selected}
          onOpen={props.onOpen}
        />
      )}
      {kept.map((id) => (
        <KeptSpace
          key={id}
          id={id ?? ''}
          space={props.spaces.find((one) => one.id === id) ?? null}
          rows={props.rows.filter(({ spaceId }) => spaceId === id)}
          selected={props.selected}
          onOpen={props.onOpen}
        />
      ))}
    </section>
  );
}

/** A space that is kept beside the current one, with who still answers in it. Folded: it is nobody's first question. */
function KeptSpace(props: {
  readonly id: string;
  readonly space: SpaceView | null;
  readonly rows: readonly VerdictView[];
  readonly selected: string | null;
  readonly onOpen: (row: VerdictView) => void;
}): ReactElement {
  const i18n = useI18n();
  const { t, f } = i18n;
  const { id, space, rows } = props;
  return (
    <details className="kept-space" open={rows.some((row) => row.id === props.selected) || undefined}>
      <summary>
        {space
          ? t('gate.keptLine', {
              space: id,
              width: f.number(space.width),
              founder: `${space.founder.nodeName} / ${space.founder.model}`,
              count: rows.length,
            })
          : id}
      </summary>
      <DataTable
        label={t('gate.keptMatrix', { space: id })}
        className="matrix"
        columns={columnsOf(i18n)}
        rows={rows}
        rowKey={(row) => row.id}
        selected={props.selected}
        onOpen={props.onOpen}
      />
    </details>
  );
}

/** A role without a space refuses every text until somebody founds one. */
function FoundButton({ role }: { readonly role: RoleView }): ReactElement {
  const { t } = useI18n();
  const { transport } = useConsole();
  const [preview, setPreview] = useState<Parameters<typeof NewSpaceSheet>[0]['preview'] | null>(null);
  const [failure, setFailure] = useState<unknown>(null);
  const open = async () => {
    try {
      const { founders } = await transport.call('spaces.candidates', { role: role.id });
      setPreview({ effect: 'new-space', reasons: [], founders, leaves: null });
    } catch (error) {
      setFailure(error);
    }
  };
  useAsked(`found ${role.id}`, () => void open());
  return (
    <>
      <button type="button" className="button primary" onClick={() => void open()}>
        {t('gate.found')}
      </button>
      {failure !== null && <Failure error={failure} />}
      {preview && <NewSpaceSheet role={role} patch={{}} preview={preview} onClose={() => setPreview(null)} />}
    </>
  );
}

/** Founds a space from one provider that differs from the present one. */
export function useFoundFrom(role: RoleView | null) {
  const { transport } = useConsole();
  const ui = useUi();
  const [preview, setPreview] = useState<Parameters<typeof NewSpaceSheet>[0]['preview'] | null>(null);
  const open = async (providerId: string) => {
    if (!role) return;
    const { founders } = await transport.call('spaces.candidates', { role: role.id });
    setPreview({
      effect: 'new-space',
      reasons: [],
      founders: founders.filter((one) => one.providerId === providerId),
      leaves: null,
    });
  };
  return { preview, open, close: () => setPreview(null), announce: ui.announce };
}

/** Whose numerics a verdict is about: a machine's engine, or an upstream whichever machine asks it. */
export function subjectOf(row: VerdictView): string {
  return row.kind === 'cloud' ? (row.upstream ?? row.model) : row.nodeName;
}

const CHECK_TONE: Readonly<Record<CheckView['state'], Tone>> = {
  pass: 'ok',
  fail: 'bad',
  reduced: 'warn',
  skipped: 'idle',
  'not-run': 'idle',
  running: 'idle',
};

function columnsOf({ t, f, say }: I18n): readonly Column<VerdictView>[] {
  return [
    {
      id: 'provider',
      head: t('gate.provider'),
      cell: (row) => (
        <>
          <b>
            <Short text={subjectOf(row)} most={18} />
          </b>
          {row.founder && <span className="quiet"> {t('gate.founder')}</span>}
          <small>
            {row.kind === 'cloud' ? (
              <Short text={t('gate.through', { machine: row.nodeName })} most={24} />
            ) : (
              <Short text={`${row.engineKind}, ${row.model}`} most={24} />
            )}
          </small>
        </>
      ),
    },
    {
      id: 'verdict',
      head: t('gate.verdict'),
      cell: (row) => (
        <>
          <Status tone={verdictTone(row.verdict)}>{t(`verdict.${row.verdict}`)}</Status>
          <small>{row.running ? t('gate.checking') : <Moment atMs={row.checkedAtMs} inRow />}</small>
        </>
      ),
    },
    ...CHECK_IDS.map((id) => ({
      id,
      head: t(`check.${id}`),
      cell: (row: VerdictView) => {
        const check = row.checks.find((one) => one.check === id);
        const state = check?.state ?? 'not-run';
        const words = t(`checkState.${state}`);
        const figure = check ? checkFigure(check, f) : null;
        return (
          <span
            className={`cell ${CHECK_TONE[state]}${figure === null ? ' word' : ''}`}
            title={check?.note ? say(check.note) : words}
          >
            <span className="glyph" aria-hidden="true">
              {GLYPHS[CHECK_TONE[state]]}
            </span>
            <span className="visually-hidden">{words} </span>
            <span className="figure">{figure ?? words}</span>
          </span>
        );
      },
    })),
  ];
}

/** Counts are whole, norms have two digits, everything else is a cosine; some checks have a figure worth showing only when they fail. */
function checkFigure(check: CheckView, f: I18n['f']): string | null {
  const onlyWhenItFails = check.check === 'nearest' || check.check === 'limit';
  if (check.figure === null || (onlyWhenItFails && check.state === 'pass')) return null;
  if (check.check === 'width' || check.check === 'nearest') return f.number(check.figure);
  return check.check === 'norm' ? f.number(check.figure, 2) : f.cosine(check.figure);
}
