import type { ReactElement, ReactNode } from 'react';
import { useI18n } from '../i18n/i18n.tsx';
import { useConnection, useHeardAtMs } from '../state/console.tsx';
import { useNow } from '../state/ticker.tsx';
import { CallError } from '../transport/port.ts';

/** Live data older than this is said to be stale. */
export const STALE_AFTER_MS = 10_000;

export interface PanelState {
  /** Nothing has arrived yet. */
  readonly loading?: boolean;
  readonly error?: unknown;
  readonly onRetry?: () => void;
  /** Why there is nothing, and the one thing to do about it. */
  readonly empty?: { readonly why: string; readonly action?: ReactNode } | null;
  /** A filter leaves nothing over. */
  readonly noMatch?: (() => void) | null;
  /** Fed by broadcasts: dimmed while the control plane is silent. */
  readonly live?: boolean;
}

interface PanelProps extends PanelState {
  readonly title?: string;
  readonly sub?: ReactNode;
  readonly tools?: ReactNode;
  /** A line around it; pages made of one table go without. */
  readonly framed?: boolean;
  readonly minHeight?: number;
  readonly label?: string;
  readonly children: ReactNode;
}

/** The frame of everything that shows data: one of loading, error, empty, no match, stale, ready. */
export function Panel(props: PanelProps): ReactElement {
  const stale = useStaleAge(props.live ?? false);
  const { t, f } = useI18n();
  return (
    <section className={props.framed ? 'panel' : 'plain'} aria-label={props.label ?? props.title}>
      {(props.title || props.tools || stale !== null) && (
        <header>
          {props.title && <h3>{props.title}</h3>}
          {props.sub && <span className="sub">{props.sub}</span>}
          {stale !== null && <span className="stale-line">{t('panel.stale', { age: f.duration(stale) })}</span>}
          {props.tools && <div className="tools">{props.tools}</div>}
        </header>
      )}
      <div
        className={stale !== null ? 'stale-body' : undefined}
        style={props.framed ? { minHeight: props.minHeight } : undefined}
        data-stale={stale !== null ? '' : undefined}
      >
        <PanelBody {...props} />
      </div>
    </section>
  );
}

function PanelBody(props: PanelProps): ReactNode {
  const { t } = useI18n();
  if (props.error) {
    return <Failure error={props.error} {...(props.onRetry ? { onRetry: props.onRetry } : {})} />;
  }
  if (props.loading) return <Skeleton height={props.minHeight ?? 120} />;
  if (props.empty) {
    return (
      <div className="empty">
        <span>{props.empty.why}</span>
        {props.empty.action}
      </div>
    );
  }
  if (props.noMatch) {
    return (
      <div className="empty">
        <span>{t('panel.noMatch')}</span>
        <button type="button" className="button" onClick={props.noMatch}>
          {t('panel.clearFilter')}
        </button>
      </div>
    );
  }
  return props.children;
}

function Skeleton({ height }: { readonly height: number }): ReactElement {
  const { t } = useI18n();
  return (
    <div className="skeleton" style={{ minHeight: height }} aria-busy="true">
      <span className="visually-hidden">{t('panel.loading')}</span>
      <i />
      <i />
      <i />
    </div>
  );
}

/** The cause in words, the code, and another try. */
export function Failure(props: { readonly error: unknown; readonly onRetry?: () => void }): ReactElement {
  const { t, sayError } = useI18n();
  const code = props.error instanceof CallError ? props.error.code : 'internal_error';
  return (
    <div className="empty" role="alert">
      <span className="bad">
        <b aria-hidden="true">✕ </b>
        {sayError(props.error)}
      </span>
      <span className="row">
        {props.onRetry && (
          <button type="button" className="button" onClick={props.onRetry}>
            {t('panel.retry')}
          </button>
        )}
        <code>{code}</code>
      </span>
    </div>
  );
}

/** How old the last sample is, when that is too old or the connection is lost; null while all is well. */
export function useStaleAge(live: boolean): number | null {
  const connection = useConnection();
  const heardAtMs = useHeardAtMs();
  const now = useNow();
  if (!live || heardAtMs === null) return null;
  const age = Math.max(0, now - heardAtMs);
  return (connection === 'lost' || connection === 'ended') && age >= 1000 ? age : age > STALE_AFTER_MS ? age : null;
}
