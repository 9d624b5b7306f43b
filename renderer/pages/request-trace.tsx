import type { ReactElement, ReactNode } from 'react';
import type { TraceStep } from '../../preload/contract.ts';
import { CopyButton, Side } from '../components/controls.tsx';
import { Panel } from '../components/panel.tsx';
import { Status } from '../components/status.tsx';
import { UNKNOWN } from '../format/format.ts';
import { useI18n } from '../i18n/i18n.tsx';
import { useRead } from '../state/console.tsx';
import { OUTCOME_TONE } from './requests.tsx';

/** One request as a story in time order: who could serve it, who not and why, what was chosen and how it went. */
export function TraceSide({ id, onClose }: { readonly id: string; readonly onClose: () => void }): ReactElement {
  const { t, f } = useI18n();
  const trace = useRead('requests.get', { id });
  const request = trace.data?.request;
  return (
    <Side
      title={request ? `${request.role}, ${f.clock(request.atMs)}` : t('trace.title')}
      head={request && <Status tone={OUTCOME_TONE[request.outcome]}>{t(`outcome.${request.outcome}`)}</Status>}
      onClose={onClose}
    >
      <p className="row">
        <code>{id}</code>
        <CopyButton text={id} label={t('trace.copyId')} />
      </p>
      <Panel
        label={t('trace.title')}
        loading={trace.isPending}
        error={trace.data ? null : trace.error}
        onRetry={() => void trace.refetch()}
      >
        <ol className="story">
          {(trace.data?.steps ?? []).map((step, at) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: steps have no id and never change places
            <li key={at}>
              <span className="at">+{f.duration(step.offsetMs)}</span>
              <span className={`dot ${dotTone(step)}`} />
              <div className="what">
                <Step step={step} />
              </div>
            </li>
          ))}
        </ol>
        <small>{t('trace.noPrompts')}</small>
      </Panel>
    </Side>
  );
}

function dotTone(step: TraceStep): string {
  if (step.step === 'ended') return step.outcome === 'ok' ? 'ok' : step.outcome === 'failed' ? 'bad' : '';
  if (step.step === 'attempt') return step.result === 'success' ? 'ok' : step.result === 'failed' ? 'bad' : '';
  return '';
}

/** A request also leaves when it has waited as long as the threshold, however short the rest of its way was. */
function estimateWords({ overflows, waitMs, thresholdMs }: Extract<TraceStep, { step: 'estimated' }>) {
  if (!overflows) return 'trace.stays';
  return waitMs !== null && waitMs <= thresholdMs ? 'trace.waitedOut' : 'trace.overflows';
}

function Step({ step }: { readonly step: TraceStep }): ReactNode {
  const { t, f, say, named } = useI18n();
  switch (step.step) {
    case 'arrived':
      return (
        <>
          <b>{t('trace.arrived')}</b> <code>{step.path}</code>
          <p className="quiet">
            {[
              f.bytes(step.bytes),
              step.inputs === null ? null : t('trace.inputs', { count: f.number(step.inputs) }),
              step.promptTokens === null ? null : t('trace.promptTokens', { count: f.number(step.promptTokens) }),
              step.maxOutputTokens === null ? null : t('trace.maxTokens', { count: f.number(step.maxOutputTokens) }),
            ]
              .filter((part) => part !== null)
              .join(', ')}
          </p>
          {step.notes.map((note) => (
            <p key={note.sentence} className="quiet">
              {say(note)}
            </p>
          ))}
        </>
      );
    case 'considered':
      return (
        <>
          <b>{t('trace.considered', { count: f.number(step.eligible.length) })}</b>
          {step.eligible.map((one) => (
            <p key={one.providerId}>
              <Status tone="ok">{named(one.name)}</Status> <span className="quiet">{t(`kind.${one.kind}`)}</span>
            </p>
          ))}
          {step.refused.map((one) => (
            <p key={one.providerId}>
              <Status tone="idle">{named(one.name)}</Status> <span className="quiet">{say(one.reason)}</span>
            </p>
          ))}
        </>
      );
    case 'estimated':
      return (
        <>
          <b>{t(estimateWords(step))}</b>
          <p className="num">
            W = {f.duration(step.waitMs)}, {t('trace.threshold', { time: f.duration(step.thresholdMs) })}
          </p>
          <p className="quiet num">
            {t('trace.estimate', {
              busy: f.number(step.busy),
              slots: f.number(step.slots),
              ahead: f.number(step.ahead),
            })}
          </p>
          {step.parts.map((part) => (
            <p key={part.providerId} className="quiet num">
              {named(part.name)}:{' '}
              {t(part.slots === 1 ? 'trace.serviceTimeOne' : 'trace.serviceTime', {
                slots: f.number(part.slots),
                time: f.duration(part.serviceMs),
              })}
            </p>
          ))}
        </>
      );
    case 'chosen':
      return (
        <>
          <b>{t('trace.chosen', { name: named(step.name) })}</b> <span className="quiet">{say(step.why)}</span>
          {step.weights.map((one) => (
            <p key={one.providerId} className="quiet num">
              {named(one.name)}: {f.number(one.total)} = 100 × {f.number(one.base, 1)} × {f.number(one.load, 2)} ×{' '}
              {f.number(one.speed, 2)}
            </p>
          ))}
        </>
      );
    case 'permit':
      return (
        <>
          <b>{t('trace.permit')}</b>
          <p className="quiet num">
            {t('trace.permitFigures', {
              inFlight: f.number(step.inFlight),
              usable: f.number(step.usable),
              waited: f.duration(step.waitedMs),
            })}
          </p>
        </>
      );
    case 'attempt':
      return (
        <>
          <b>{t('trace.attempt', { number: step.number, name: named(step.name) })}</b> {t(`attempt.${step.result}`)}
          <p className="quiet num">
            {step.range && `${t('trace.range', { from: f.number(step.range.from), to: f.number(step.range.to) })}, `}
            {step.lastedMs === null ? UNKNOWN : f.duration(step.lastedMs)}
          </p>
          {step.reason && <p className="quiet">{say(step.reason)}</p>}
        </>
      );
    case 'first-byte':
      return <b>{t('trace.firstByte')}</b>;
    case 'ended':
      return (
        <>
          <b>{t(`outcome.${step.outcome}`)}</b>
          {step.error && (
            <p>
              {say(step.error)} <code>{step.error.code}</code>
            </p>
          )}
          <p className="quiet num">
            {t(step.tokensExact ? 'trace.tokens' : 'trace.tokensEstimated', {
              prompt: f.number(step.promptTokens),
              completion: f.number(step.completionTokens),
            })}
            {step.costUsd !== null && `, ${f.usd(step.costUsd)}`}
            {step.spaceId && (
              <>
                , <code>{step.spaceId}</code>
              </>
            )}
          </p>
        </>
      );
  }
}
