import { type ChangeEvent, type ReactElement, useRef, useState } from 'react';
import type { SpaceView } from '../../preload/contract.ts';
import { useUi } from '../app/ui.tsx';
import { saveFile } from '../components/clipboard.ts';
import { Sheet } from '../components/controls.tsx';
import { DataTable } from '../components/data-table.tsx';
import { Moment } from '../components/moment.tsx';
import { Failure, Panel } from '../components/panel.tsx';
import { Status, type Tone } from '../components/status.tsx';
import { useI18n } from '../i18n/i18n.tsx';
import { useChange, useConsole } from '../state/console.tsx';

const SPACE_TONE: Readonly<Record<SpaceView['state'], Tone>> = {
  current: 'ok',
  retained: 'idle',
  retired: 'idle',
  'anchor-lost': 'bad',
};

/** All vector spaces, old ones too: exported for safe keeping, imported when lost, retired when their index is gone. */
export function SpacesPanel(props: {
  readonly spaces: readonly SpaceView[] | null;
  readonly error: unknown;
}): ReactElement {
  const { t, f } = useI18n();
  const { transport } = useConsole();
  const ui = useUi();
  const [retiring, setRetiring] = useState<SpaceView | null>(null);
  const [failure, setFailure] = useState<unknown>(null);
  const file = useRef<HTMLInputElement>(null);
  const bring = useChange('spaces.import', ['spaces.list']);
  const save = async (space: SpaceView) => {
    try {
      saveFile(await transport.call('spaces.export', { id: space.id }));
    } catch (error) {
      setFailure(error);
    }
  };
  const read = async (event: ChangeEvent<HTMLInputElement>) => {
    const chosen = event.target.files?.[0];
    event.target.value = '';
    if (!chosen) return;
    bring.mutate(
      { content: await chosen.text() },
      { onSuccess: (space) => ui.announce(t('space.imported', { space: space.id })) },
    );
  };
  return (
    <Panel
      title={t('space.title')}
      loading={!props.spaces && !props.error}
      error={props.error}
      empty={props.spaces?.length === 0 ? { why: t('space.none') } : null}
      tools={
        <>
          <input ref={file} type="file" accept="application/json,.json" hidden onChange={(event) => void read(event)} />
          <button type="button" className="link quiet" onClick={() => file.current?.click()}>
            {t('space.import')}
          </button>
        </>
      }
    >
      {(failure !== null || bring.isError) && <Failure error={failure ?? bring.error} />}
      <DataTable
        label={t('space.title')}
        className="compact"
        rows={props.spaces ?? []}
        rowKey={(space) => space.id}
        columns={[
          { id: 'id', head: t('space.id'), cell: (space) => <code>{space.id}</code> },
          {
            id: 'state',
            head: t('fleet.state'),
            cell: (space) => (
              <Status tone={SPACE_TONE[space.state]}>
                {t(`spaceState.${space.state}`)}
                {space.trial && ` (${t('role.trial')})`}
              </Status>
            ),
          },
          { id: 'width', head: t('check.width'), align: 'right', cell: (space) => f.number(space.width) },
          {
            id: 'founder',
            head: t('space.founder'),
            cell: (space) => (
              <>
                {space.founder.nodeName} <code>{space.founder.model}</code>
              </>
            ),
          },
          { id: 'limit', head: t('space.limit'), align: 'right', cell: (space) => f.number(space.tokenLimit) },
          { id: 'passing', head: t('space.passing'), align: 'right', cell: (space) => f.number(space.passing) },
          { id: 'founded', head: t('space.foundedAt'), cell: (space) => <Moment atMs={space.foundedAtMs} inRow /> },
          {
            id: 'do',
            head: <span className="visually-hidden">{t('action.actions')}</span>,
            align: 'right',
            cell: (space) => (
              <span className="row end">
                <button type="button" className="link" onClick={() => void save(space)}>
                  {t('space.export')}
                  <span className="visually-hidden"> {space.id}</span>
                </button>
                {space.state === 'retained' && (
                  <button type="button" className="link" onClick={() => setRetiring(space)}>
                    {t('space.retire')}
                    <span className="visually-hidden"> {space.id}</span>
                  </button>
                )}
              </span>
            ),
          },
        ]}
      />
      {retiring && <RetireSheet space={retiring} onClose={() => setRetiring(null)} />}
    </Panel>
  );
}

function RetireSheet({ space, onClose }: { readonly space: SpaceView; readonly onClose: () => void }): ReactElement {
  const { t } = useI18n();
  const retire = useChange('spaces.retire', ['spaces.list']);
  return (
    <Sheet title={t('space.retireTitle', { space: space.id })} onClose={onClose}>
      <p>{t('space.retireMeans')}</p>
      {retire.isError && <Failure error={retire.error} />}
      <div className="row end">
        <button type="button" className="button" onClick={onClose}>
          {t('action.cancel')}
        </button>
        <button
          type="button"
          className="button danger"
          disabled={retire.isPending}
          onClick={() => retire.mutate({ id: space.id, confirm: true }, { onSuccess: onClose })}
        >
          {t('space.retire')}
        </button>
      </div>
    </Sheet>
  );
}
