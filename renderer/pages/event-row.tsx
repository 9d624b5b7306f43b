import { memo, type ReactElement } from 'react';
import type { EventView } from '../../preload/contract.ts';
import { Status, type Tone } from '../components/status.tsx';
import { useI18n } from '../i18n/i18n.tsx';
import { placeHash } from '../state/ui-store.ts';

const SEVERITY_TONE: Readonly<Record<EventView['severity'], Tone>> = { info: 'idle', warn: 'warn', error: 'bad' };

/** One event of the list, `topPx` below its beginning. Of a row that stays in sight nothing is drawn anew while others pass. */
export const EventRow = memo(function EventRow(props: {
  readonly event: EventView;
  /** Of the provider that it speaks of as "it". */
  readonly title: string | null;
  readonly topPx: number;
}): ReactElement {
  const { t, f, sayBeside } = useI18n();
  const { event, title } = props;
  const sentence = sayBeside(event.sentence, event.says);
  return (
    <li className="event" style={{ transform: `translateY(${props.topPx}px)` }}>
      <time className="num" dateTime={new Date(event.atMs).toISOString()} title={f.moment(event.atMs)}>
        {f.clock(event.atMs)}
      </time>
      <Status tone={SEVERITY_TONE[event.severity]}>{t(`severity.${event.severity}`)}</Status>
      <span className="quiet">{event.source}</span>
      <span className="sentence" title={sentence}>
        {title && <b>{title}: </b>}
        {sentence}
      </span>
      {event.requestId ? (
        <a href={placeHash('requests', event.requestId)}>{t('events.trace')}</a>
      ) : (
        <code>{event.code}</code>
      )}
    </li>
  );
});
