import { type ReactElement, useState } from 'react';
import { Panel, type PanelState } from '../components/panel.tsx';
import { useI18n } from '../i18n/i18n.tsx';
import { TimeSeries, type TimeSeriesProps } from './time-series.tsx';

interface ChartPanelProps extends Omit<TimeSeriesProps, 'asTable' | 'label'>, Omit<PanelState, 'live'> {
  readonly title: string;
  readonly sub?: string;
  readonly tools?: ReactElement;
  /** Its newest values are broadcast: dimmed while the control plane is silent. */
  readonly broadcast?: boolean;
}

/** A chart with its title, its state, and the choice to read it as a table. */
export function ChartPanel(props: ChartPanelProps): ReactElement {
  const { t } = useI18n();
  const [asTable, setAsTable] = useState(false);
  const { title, sub, tools, loading, error, onRetry, empty, broadcast, ...chart } = props;
  return (
    <Panel
      framed
      live={broadcast ?? false}
      title={title}
      sub={sub}
      minHeight={props.height + 24}
      loading={loading ?? false}
      error={error}
      empty={empty ?? null}
      {...(onRetry ? { onRetry } : {})}
      tools={
        <>
          {tools}
          <button type="button" className="link quiet" aria-pressed={asTable} onClick={() => setAsTable(!asTable)}>
            {asTable ? t('chart.chart') : t('chart.table')}
            <span className="visually-hidden"> {title}</span>
          </button>
        </>
      }
    >
      <TimeSeries {...chart} label={title} asTable={asTable} />
    </Panel>
  );
}
