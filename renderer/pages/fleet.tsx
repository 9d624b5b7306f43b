import { type ReactElement, useMemo, useState } from 'react';
import type { GpuView, NodeView } from '../../preload/contract.ts';
import { useNavigation } from '../app/place.tsx';
import { useAsked } from '../app/ui.tsx';
import { type Column, DataTable } from '../components/data-table.tsx';
import { Panel } from '../components/panel.tsx';
import { Status } from '../components/status.tsx';
import { UNKNOWN } from '../format/format.ts';
import { type I18n, useI18n } from '../i18n/i18n.tsx';
import { useTopic } from '../state/console.tsx';
import { useNow } from '../state/ticker.tsx';
import { AddMachine } from './fleet-add.tsx';
import { NodeSide } from './fleet-node.tsx';
import { byName, NODE_TONE } from './states.ts';

export function FleetPage(): ReactElement {
  const i18n = useI18n();
  const { t } = i18n;
  const { place, go } = useNavigation();
  const nodes = useTopic('nodes');
  const [filter, setFilter] = useState('');
  const [adding, setAdding] = useState(false);
  useAsked('add-machine', () => setAdding(true));
  const now = useNow();
  const sorted = useMemo(() => [...(nodes ?? [])].sort(byName), [nodes]);
  const shown = useMemo(() => sorted.filter((node) => matches(node, filter)), [sorted, filter]);
  const columns = useMemo(() => columnsOf(i18n), [i18n]);
  const selected = shown.find((node) => node.id === place.target) ?? null;
  const addButton = (
    <button type="button" className="button primary" onClick={() => setAdding(true)}>
      {t('fleet.add')}
    </button>
  );
  return (
    <div className={selected ? 'with-side' : 'stack'}>
      <div className="stack">
        <div className="row">
          <input
            className="field grow"
            data-filter
            type="search"
            aria-label={t('fleet.filter')}
            placeholder={`${t('fleet.filter')}   /`}
            value={filter}
            onChange={(event) => setFilter(event.target.value)}
            onKeyDown={(event) => {
              if (event.key !== 'Escape') return;
              setFilter('');
              event.currentTarget.blur();
            }}
          />
          {addButton}
        </div>
        <Panel
          live
          label={t('page.fleet')}
          minHeight={240}
          loading={!nodes}
          empty={nodes?.length === 0 ? { why: t('fleet.empty'), action: addButton } : null}
          noMatch={nodes && nodes.length > 0 && shown.length === 0 ? () => setFilter('') : null}
        >
          <DataTable
            label={t('page.fleet')}
            columns={columns(now)}
            rows={shown}
            rowKey={(node) => node.id}
            selected={place.target}
            onOpen={(node) => go('fleet', node.id)}
          />
          <p className="quiet">
            <small>{t('fleet.legend')}</small>
          </p>
        </Panel>
      </div>
      {selected && <NodeSide key={selected.id} node={selected} onClose={() => go('fleet')} />}
      {adding && <AddMachine onClose={() => setAdding(false)} />}
    </div>
  );
}

/** Every word of the filter must be found in the state, name, address, a role or a GPU's name. */
function matches(node: NodeView, filter: string): boolean {
  const hay = [
    node.state,
    node.name,
    node.address ?? '',
    ...node.roles.map((role) => role.role),
    ...node.gpus.map((gpu) => gpu.name ?? ''),
  ]
    .join(' ')
    .toLowerCase();
  return filter
    .toLowerCase()
    .split(/\s+/)
    .every((word) => hay.includes(word));
}

const columnsOf =
  ({ t, f, say }: I18n) =>
  (nowMs: number): readonly Column<NodeView>[] => [
    {
      id: 'state',
      head: t('fleet.state'),
      cell: (node) => (
        <>
          <Status tone={NODE_TONE[node.state]}>
            {t(`node.${node.state}`)}
            {node.state === 'unreachable' && node.stateSinceMs !== null && (
              <span className="num">{f.duration(nowMs - node.stateSinceMs)}</span>
            )}
          </Status>
          {node.reason && node.state !== 'ready' && <small>{say(node.reason)}</small>}
        </>
      ),
    },
    {
      id: 'machine',
      head: t('fleet.machine'),
      cell: (node) => (
        <>
          <b>{node.name}</b>
          {!(node.address && node.name.endsWith(`(${node.address})`)) && (
            <small className="mono">{node.address ?? t('fleet.embedded')}</small>
          )}
        </>
      ),
    },
    { id: 'roles', head: t('page.roles'), cell: (node) => <NodeRoles node={node} none={t('fleet.noRoles')} /> },
    { id: 'gpu', head: 'GPU', cell: (node) => <Gpus gpus={node.gpus} /> },
    {
      id: 'memory',
      head: t('fleet.memory'),
      align: 'right',
      cell: (node) => memory(node, f.gigabytes),
    },
    {
      id: 'running',
      head: t('fleet.running'),
      align: 'right',
      cell: (node) => (node.slots === null ? UNKNOWN : `${f.number(node.running)} / ${f.number(node.slots)}`),
    },
    { id: 'waiting', head: t('fleet.waiting'), align: 'right', cell: (node) => f.number(node.queued) },
    { id: 'speed', head: 'tok/s', align: 'right', cell: (node) => f.number(node.tokensPerSecond, 1) },
    { id: 'ttft', head: t('fleet.firstByte'), align: 'right', cell: (node) => f.number(node.ttftP50Ms) },
    {
      id: 'agent',
      head: t('fleet.agent'),
      cell: (node) => (
        <span className="num" title={node.upgradeTo ? t('fleet.upgrade', { version: node.upgradeTo }) : undefined}>
          {node.agentVersion ?? UNKNOWN}
          {node.upgradeTo && (
            <>
              {' ↑'}
              <span className="visually-hidden">{t('fleet.upgrade', { version: node.upgradeTo })}</span>
            </>
          )}
        </span>
      ),
    },
  ];

function NodeRoles({ node, none }: { readonly node: NodeView; readonly none: string }): ReactElement {
  const { t, say } = useI18n();
  if (node.roles.length === 0) return <span className="quiet">{none}</span>;
  return (
    <>
      {node.roles.map((role, at) => (
        <span key={role.role}>
          <span className={role.serving ? 'whole' : 'whole quiet'} title={role.reason ? say(role.reason) : undefined}>
            {role.serving ? role.role : t('fleet.notServing', { role: role.role })}
            {at < node.roles.length - 1 && ','}
          </span>{' '}
        </span>
      ))}
    </>
  );
}

/** GPU memory where there are GPUs that tell it, else the machine's. */
function memory(node: NodeView, gigabytes: (bytes: number | null) => string): string {
  const sum = (of: (gpu: GpuView) => number | null) =>
    node.gpus.length > 0 && node.gpus.every((gpu) => of(gpu) !== null)
      ? node.gpus.reduce((total, gpu) => total + (of(gpu) ?? 0), 0)
      : null;
  const total = sum((gpu) => gpu.memoryTotalBytes) ?? node.memoryTotalBytes;
  const used = sum((gpu) => gpu.memoryTotalBytes) === null ? node.memoryUsedBytes : sum((gpu) => gpu.memoryUsedBytes);
  return total === null ? UNKNOWN : `${gigabytes(used)} / ${gigabytes(total)}`;
}

/** A small bar per GPU with its number; an idle GPU reads 0 %, an unknown one a dash. */
export function Gpus({ gpus }: { readonly gpus: readonly GpuView[] }): ReactElement {
  const { t, f } = useI18n();
  if (gpus.length === 0) return <span>{UNKNOWN}</span>;
  return (
    <span className="gpus">
      {gpus.map((gpu) => {
        const percent = gpu.utilisationPercent;
        const words = f.unit(percent, '%');
        return (
          <span key={gpu.index} className="gpu" title={gpu.name ?? t('fleet.gpu', { index: gpu.index })}>
            <svg width="62" height="18" aria-hidden="true">
              <rect width={(62 * Math.min(100, percent ?? 0)) / 100} height="18" />
            </svg>
            <b>{words}</b>
          </span>
        );
      })}
    </span>
  );
}
