import { type ReactElement, useState } from 'react';
import type { EngineView, NodeDetail, NodeView, OperationName, ProviderView } from '../../preload/contract.ts';
import { useUi } from '../app/ui.tsx';
import { Sparkline } from '../charts/parts.tsx';
import { Sheet, Side } from '../components/controls.tsx';
import { Moment } from '../components/moment.tsx';
import { Failure, Panel } from '../components/panel.tsx';
import { Status } from '../components/status.tsx';
import { UNKNOWN } from '../format/format.ts';
import { useI18n } from '../i18n/i18n.tsx';
import { useChange, useRead } from '../state/console.tsx';
import { placeHash } from '../state/ui-store.ts';
import { NODE_TONE, PROVIDER_TONE, verdictTone } from './states.ts';

const RENEWS: readonly OperationName[] = ['nodes.list', 'nodes.detail'];

/** One machine: what runs on it, why it weighs what it weighs, its last hour, and what may be done to it. */
export function NodeSide({ node, onClose }: { readonly node: NodeView; readonly onClose: () => void }): ReactElement {
  const { t, f, say } = useI18n();
  const detail = useRead('nodes.detail', { id: node.id }, { everyMs: 5000 });
  return (
    <Side
      title={node.name}
      head={<Status tone={NODE_TONE[node.state]}>{t(`node.${node.state}`)}</Status>}
      onClose={onClose}
    >
      {node.reason && node.state !== 'ready' && <p>{say(node.reason)}</p>}
      <NodeActions node={node} onGone={onClose} />
      <section>
        <dl className="facts">
          <dt>{t('node.address')}</dt>
          <dd className="mono">{node.address ?? t('fleet.embedded')}</dd>
          <dt>{t('node.system')}</dt>
          <dd>{[node.cpu, node.platform, node.arch].filter(Boolean).join(', ') || UNKNOWN}</dd>
          <dt>{t('node.cpu')}</dt>
          <dd>
            {f.unit(node.cpuPercent, '%')}
            {node.cores !== null && <span className="quiet"> {t('node.ofCores', { cores: node.cores })}</span>}
          </dd>
          <dt>{t('node.heartbeat')}</dt>
          <dd>
            <Moment atMs={node.lastHeartbeatAtMs} />
          </dd>
          {node.foreign !== null && node.foreign > 0 && (
            <>
              <dt>{t('node.foreign')}</dt>
              <dd>{f.number(node.foreign)}</dd>
            </>
          )}
        </dl>
      </section>
      {node.gpus.map((gpu) => (
        <section key={gpu.index}>
          <h4>{gpu.name ?? t('fleet.gpu', { index: gpu.index })}</h4>
          <dl className="facts figures">
            <dt>{t('gpu.load')}</dt>
            <dd>{f.unit(gpu.utilisationPercent, '%')}</dd>
            <dt>{t('gpu.memory')}</dt>
            <dd>
              {f.gigabytes(gpu.memoryUsedBytes)} / {f.gigabytes(gpu.memoryTotalBytes)} {t('unit.gigabytes')}
            </dd>
            <dt>{t('gpu.heat')}</dt>
            <dd>
              {f.unit(gpu.temperatureC, '°C')}
              {gpu.powerW !== null && `, ${f.unit(gpu.powerW, 'W')}`}
            </dd>
          </dl>
        </section>
      ))}
      <Panel
        label={t('node.details')}
        loading={detail.isPending}
        error={detail.data ? null : detail.error}
        onRetry={() => void detail.refetch()}
      >
        {detail.data && <Detail detail={detail.data} />}
      </Panel>
    </Side>
  );
}

function Detail({ detail }: { readonly detail: NodeDetail }): ReactElement {
  const { t, f } = useI18n();
  return (
    <>
      {detail.history.series.map((series) => (
        <section key={series.id}>
          <h4>
            {series.id === 'running' ? t('node.runningHour') : t('node.speedHour')}{' '}
            <span className="quiet num">
              {series.id === 'running' ? f.number(detail.node.running) : f.number(detail.node.tokensPerSecond, 1)}
            </span>
          </h4>
          <Sparkline values={series.values} label={t('node.sparkline')} />
        </section>
      ))}
      {detail.engines.map((engine) => (
        <Engine
          key={engine.id}
          engine={engine}
          providers={detail.providers.filter((provider) => provider.engineId === engine.id)}
        />
      ))}
      {detail.engines.length === 0 && <p className="quiet">{t('node.noEngines')}</p>}
    </>
  );
}

function Engine(props: { readonly engine: EngineView; readonly providers: readonly ProviderView[] }): ReactElement {
  const { t, f, say } = useI18n();
  const { engine } = props;
  const tone =
    engine.state === 'ready' ? 'ok' : engine.state === 'loading' || engine.state === 'no-key' ? 'idle' : 'bad';
  return (
    <section>
      <h4>
        {engine.kind} {engine.version} <Status tone={tone}>{t(`engine.${engine.state}`)}</Status>
      </h4>
      <p className="quiet">
        <small>
          <span className="mono">{engine.address || t('engine.builtin')}</span>,{' '}
          {t(engine.slots === 1 ? 'engine.slot' : 'engine.slots', { slots: engine.slots })}
          {engine.reach === 'public' && `, ${t(engine.kind === 'openrouter' ? 'engine.cloud' : 'engine.public')}`}
          {engine.reason && engine.state !== 'no-key' && `. ${say(engine.reason)}`}
        </small>
      </p>
      {props.providers.map((provider) => (
        <Provider key={provider.id} provider={provider} />
      ))}
      {props.providers.length === 0 && (
        <p className="quiet">
          {engine.models.length > 0
            ? t('engine.unused', { models: engine.models.map((model) => model.model).join(', ') })
            : t('engine.noModels')}
        </p>
      )}
      {engine.errorsTotal > 0 && (
        <p className="quiet">
          <small>{t('engine.errors', { count: f.number(engine.errorsTotal) })}</small>
        </p>
      )}
    </section>
  );
}

function Provider({ provider }: { readonly provider: ProviderView }): ReactElement {
  const { t, f, say } = useI18n();
  const { weight, verdict } = provider;
  return (
    <div className="provider">
      <div className="row">
        <Status tone={PROVIDER_TONE[provider.state]}>{t(`provider.${provider.state}`)}</Status>
        <b>{provider.role}</b>
        <span className="mono">{provider.model}</span>
      </div>
      <dl className="facts">
        <dt>{t('provider.weight')}</dt>
        <dd>
          {weight
            ? `${f.number(weight.total)} = 100 × ${f.number(weight.base, 1)} × ${f.number(weight.load, 2)} × ${f.number(weight.speed, 2)}`
            : UNKNOWN}
          <small className="quiet"> {t('provider.weightParts')}</small>
        </dd>
        {verdict && (
          <>
            <dt>{t('gate.verdict')}</dt>
            <dd>
              <a href={placeHash('gate', provider.id)}>
                <Status tone={verdictTone(verdict.kind)}>{t(`verdict.${verdict.kind}`)}</Status>
              </a>{' '}
              {verdict.minCosine !== null && f.cosine(verdict.minCosine)}
            </dd>
          </>
        )}
        <dt>{t('provider.window')}</dt>
        <dd>
          {provider.contextTokens === null ? UNKNOWN : t('unit.tokens', { count: f.number(provider.contextTokens) })}
        </dd>
        <dt>{t('provider.speed')}</dt>
        <dd>
          {provider.itemsPerSecond !== null
            ? t('unit.itemsPerSecond', { count: f.number(provider.itemsPerSecond, 1) })
            : t('unit.tokensPerSecond', { count: f.number(provider.tokensPerSecond, 1) })}
          {provider.ttftMs !== null && `, ${t('provider.ttft', { time: f.duration(provider.ttftMs) })}`}
        </dd>
      </dl>
      {provider.reasons.map((reason) => (
        <p key={reason.code} className="quiet">
          {say(reason)}
        </p>
      ))}
    </div>
  );
}

function NodeActions({ node, onGone }: { readonly node: NodeView; readonly onGone: () => void }): ReactElement {
  const { t } = useI18n();
  const ui = useUi();
  const drain = useChange('nodes.drain', RENEWS);
  const resume = useChange('nodes.resume', RENEWS);
  const maintenance = useChange('nodes.maintenance', RENEWS);
  const remove = useChange('nodes.remove', RENEWS);
  const [asking, setAsking] = useState(false);
  const resting = node.state === 'draining' || node.state === 'maintenance';
  const failed = [drain, resume, maintenance].find((change) => change.isError);
  const say = (sentence: string) => ({ onSuccess: () => ui.announce(sentence) });
  return (
    <section>
      <div className="row">
        {resting ? (
          <button
            type="button"
            className="button"
            disabled={resume.isPending}
            onClick={() => resume.mutate({ id: node.id }, say(t('node.resumed', { name: node.name })))}
          >
            {t('node.resume')}
          </button>
        ) : (
          <>
            <button
              type="button"
              className="button"
              disabled={drain.isPending}
              title={t('node.drainMeans')}
              onClick={() => drain.mutate({ id: node.id }, say(t('node.drained', { name: node.name })))}
            >
              {t('node.drain')}
            </button>
            <button
              type="button"
              className="button"
              disabled={maintenance.isPending}
              title={t('node.maintenanceMeans')}
              onClick={() => maintenance.mutate({ id: node.id }, say(t('node.rested', { name: node.name })))}
            >
              {t('node.toMaintenance')}
            </button>
          </>
        )}
        {!node.embedded && (
          <button type="button" className="button danger" onClick={() => setAsking(true)}>
            {t('node.remove')}
          </button>
        )}
      </div>
      {failed && <Failure error={failed.error} />}
      {asking && (
        <Sheet title={t('node.removeTitle', { name: node.name })} onClose={() => setAsking(false)}>
          <p>{t('node.removeMeans')}</p>
          {remove.isError && <Failure error={remove.error} />}
          <div className="row end">
            <button type="button" className="button" onClick={() => setAsking(false)}>
              {t('action.cancel')}
            </button>
            <button
              type="button"
              className="button danger"
              disabled={remove.isPending}
              onClick={() =>
                remove.mutate(
                  { id: node.id },
                  {
                    onSuccess: () => {
                      ui.announce(t('node.removed', { name: node.name }));
                      setAsking(false);
                      onGone();
                    },
                  },
                )
              }
            >
              {t('node.remove')}
            </button>
          </div>
        </Sheet>
      )}
    </section>
  );
}
