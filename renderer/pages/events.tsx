import { useVirtualizer } from '@tanstack/react-virtual';
import { type ReactElement, useDeferredValue, useEffect, useLayoutEffect, useMemo, useRef, useState } from 'react';
import type { EventView } from '../../preload/contract.ts';
import { copyText, saveFile } from '../components/clipboard.ts';
import { Segments } from '../components/controls.tsx';
import { Panel } from '../components/panel.tsx';
import { useI18n } from '../i18n/i18n.tsx';
import { useConsole, useTopic } from '../state/console.tsx';
import { countAfter, filterEvents, type Least, MOST_EVENTS, mergeEvents, placeOf } from '../state/event-log.ts';
import { useWindowHeight } from '../state/window-size.ts';
import { EventRow } from './event-row.tsx';

const ROW_HEIGHT = 30;
/** Older events are fetched this many at a time. */
const PAGE_SIZE = 1000;

/** What happened, oldest above, newest below. Following stops when one scrolls up, and says how much is new. */
export function EventsPage(): ReactElement {
  const i18n = useI18n();
  const { t, f } = i18n;
  const { transport } = useConsole();
  const live = useTopic('events');
  const verdicts = useTopic('gate');
  const nodes = useTopic('nodes');
  const titles = useSteadyNames(
    useMemo(() => (verdicts ?? []).map((row) => [row.providerId, i18n.named(row.title)] as const), [verdicts, i18n]),
  );
  const machines = useSteadyNames(useMemo(() => (nodes ?? []).map((node) => [node.id, node.name] as const), [nodes]));
  // What the live log has forgotten meanwhile stays here, so that the list has no hole.
  const held = useRef<readonly EventView[]>([]);
  const [loaded, setLoaded] = useState<readonly EventView[]>([]);
  // Null until it was asked whether anything is older than what is live.
  const [more, setMore] = useState<boolean | null>(null);
  const [least, setLeast] = useState<Least>('info');
  const [search, setSearch] = useState('');
  const [failure, setFailure] = useState<unknown>(null);
  const all = useMemo(() => {
    held.current = mergeEvents(mergeEvents(loaded, held.current), live ?? []);
    return held.current;
  }, [loaded, live]);
  // Typing goes on while a long log is searched.
  const searched = useDeferredValue(search);
  const shown = useMemo(
    () => filterEvents(all, least, searched, i18n, { providers: titles, machines }),
    [all, least, searched, i18n, titles, machines],
  );
  const hasLive = live !== undefined;
  // biome-ignore lint/correctness/useExhaustiveDependencies: asked once, of what was there first
  useEffect(() => {
    if (!hasLive) return;
    const oldest = all[0];
    transport.call('events.list', { limit: 1, ...(oldest ? { before: oldest.id } : {}) }).then(
      (page) => setMore((known) => known ?? page.events.length > 0),
      () => setMore((known) => known ?? true),
    );
  }, [hasLive, transport]);
  const loadOlder = async () => {
    const oldest = all[0];
    try {
      const page = await transport.call('events.list', { limit: PAGE_SIZE, ...(oldest ? { before: oldest.id } : {}) });
      setLoaded(page.events);
      setMore(page.more && all.length + page.events.length < MOST_EVENTS);
      setFailure(null);
    } catch (error) {
      setFailure(error);
    }
  };
  const lines = () => shown.map((event) => JSON.stringify(event)).join('\n');
  return (
    <div className="stack">
      <div className="row">
        <input
          className="field grow"
          data-filter
          type="search"
          aria-label={t('events.search')}
          placeholder={`${t('events.search')}   /`}
          value={search}
          onChange={(event) => setSearch(event.target.value)}
          onKeyDown={(event) => {
            if (event.key !== 'Escape') return;
            setSearch('');
            event.currentTarget.blur();
          }}
        />
        <Segments<Least>
          label={t('events.least')}
          value={least}
          options={[
            { value: 'info', label: t('severity.all') },
            { value: 'warn', label: t('severity.warnUp') },
            { value: 'error', label: t('severity.errorsOnly') },
          ]}
          onChange={setLeast}
        />
        <button type="button" className="button" onClick={() => copyText(lines())}>
          {t('action.copy')}
        </button>
        <button
          type="button"
          className="button"
          onClick={() =>
            saveFile({ fileName: 'events.jsonl', mediaType: 'application/jsonl', content: `${lines()}\n` })
          }
        >
          JSONL
        </button>
      </div>
      <Panel
        live
        label={t('page.events')}
        loading={!live}
        error={failure}
        onRetry={() => void loadOlder()}
        minHeight={300}
        empty={live && all.length === 0 && more === false ? { why: t('events.empty') } : null}
        noMatch={
          all.length > 0 && shown.length === 0
            ? () => {
                setLeast('info');
                setSearch('');
              }
            : null
        }
      >
        <EventList events={shown} titles={titles} onOlder={more ? () => void loadOlder() : null} />
      </Panel>
      <p className="quiet">
        <small>{t('events.count', { shown: f.number(shown.length), all: f.number(all.length) })}</small>
      </p>
    </div>
  );
}

/** Names by id. It stays the same while they do, however often their rows come: a long log is searched with it. */
function useSteadyNames(names: readonly (readonly [string, string])[]): ReadonlyMap<string, string> {
  const content = JSON.stringify(names);
  // biome-ignore lint/correctness/useExhaustiveDependencies: by what they say, not by which array says it
  return useMemo(() => new Map(names), [content]);
}

function EventList(props: {
  readonly events: readonly EventView[];
  /** Of providers: their events speak of "it". */
  readonly titles: ReadonlyMap<string, string>;
  readonly onOlder: (() => void) | null;
}): ReactElement {
  const { t, f } = useI18n();
  const list = useRef<HTMLDivElement>(null);
  const [following, setFollowing] = useState(true);
  /** The newest event when following stopped. */
  const [seen, setSeen] = useState<EventView | null>(null);
  const { events } = props;
  const count = events.length;
  const rows = useVirtualizer({
    count,
    getScrollElement: () => list.current,
    estimateSize: () => ROW_HEIGHT,
    overscan: 8,
  });
  const windowHeight = useWindowHeight();
  // biome-ignore lint/correctness/useExhaustiveDependencies: a list that became lower would hide its newest rows
  useEffect(() => {
    if (!following || count === 0) return;
    rows.scrollToIndex(count - 1, { align: 'end' });
  }, [following, count, rows, windowHeight]);
  const shown = useRef(events);
  useLayoutEffect(() => {
    const before = shown.current;
    shown.current = events;
    const element = list.current;
    if (following || !element || before === events) return;
    // Rows came before the one that is read, or the oldest were given up: it stays where it is.
    const top = Math.floor(element.scrollTop / ROW_HEIGHT);
    const reading = before[top];
    const place = reading ? placeOf(events, reading) : null;
    if (place !== null && place !== top) element.scrollTop += (place - top) * ROW_HEIGHT;
  }, [events, following]);
  const fresh = following || seen === null ? 0 : countAfter(events, seen);
  return (
    <>
      <div className="row">
        {props.onOlder && (
          <button type="button" className="link" onClick={props.onOlder}>
            {t('events.older')}
          </button>
        )}
        {!following && (
          <button type="button" className="link" onClick={() => setFollowing(true)}>
            {fresh > 0 ? t('events.fresh', { count: f.number(fresh) }) : t('events.follow')}
          </button>
        )}
      </div>
      <section
        ref={list}
        className="event-list"
        aria-label={t('page.events')}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard
        tabIndex={0}
        onScroll={(event) => {
          const element = event.currentTarget;
          const atEnd = element.scrollHeight - element.scrollTop - element.clientHeight < ROW_HEIGHT;
          if (atEnd === following) return;
          setFollowing(atEnd);
          if (!atEnd) setSeen(events.at(-1) ?? null);
        }}
      >
        <ul className="inner" style={{ height: rows.getTotalSize() }}>
          {rows.getVirtualItems().map((item) => {
            const event = events[item.index];
            return (
              event && (
                <EventRow
                  key={event.id}
                  event={event}
                  title={props.titles.get(event.providerId ?? '') ?? null}
                  topPx={item.start}
                />
              )
            );
          })}
        </ul>
      </section>
    </>
  );
}
