import { Feed, TOPIC_NAMES, type TopicName } from '../../preload/contract.ts';
import { SwitchyardError } from '../domain/errors.ts';
import type { Clock } from '../domain/time.ts';
import type { TopicFeed } from './ports.ts';
import type { Call } from './routes.ts';

export const MAX_EVENT_READERS = 16;
/** Comments on a quiet stream, so that proxies and dead clients show. */
const QUIET_MS = 15_000;
/** Urgent news may pile up this far before a slow reader; then it is cut, as it has missed what mattered. */
const BEHIND_BYTES = 4 * 1024 * 1024;

/** Counts those who listen, over server-sent events and WebSockets together. */
export class EventReaders {
  #open = 0;

  /** @returns its own release, which may be called twice. @throws SwitchyardError too_many_readers */
  enter(): () => void {
    if (this.#open >= MAX_EVENT_READERS) throw new SwitchyardError('too_many_readers');
    this.#open += 1;
    let inside = true;
    return () => {
      if (inside) this.#open -= 1;
      inside = false;
    };
  }
}

export interface EventStreamPorts {
  readonly topics: TopicFeed;
  readonly clock: Clock;
  readonly readers: EventReaders;
  /** Ends each stream that runs; called when the server stops. */
  readonly streams: Set<() => void>;
}

/**
 * Server-sent events: for each topic of `?topics=` (default `events`) a snapshot, then deltas, at most two a second. While the
 * reader is slow what is new is merged and waits in bounded memory; one that takes nothing for a minute is cut.
 */
export function streamEvents(call: Call, ports: EventStreamPorts): void {
  const topics = topicsOf(call.query.get('topics'));
  const { reply } = call;
  const leave = ports.readers.enter();
  let cancelQuiet: () => void = () => undefined;
  const quiet = (): void => {
    cancelQuiet = ports.clock.after(QUIET_MS, () => {
      reply.write(Buffer.from(':\n\n'));
      quiet();
    });
  };
  let behindBytes = 0;
  const feed = new Feed({
    send: (update) => {
      const event = Buffer.from(`event: ${update.topic}\ndata: ${JSON.stringify(update)}\n\n`);
      if (reply.write(event)) return;
      behindBytes += event.length;
      feed.setHidden(true);
      if (behindBytes > BEHIND_BYTES) reply.cut();
    },
    after: (delayMs, callback) => ports.clock.after(delayMs, callback),
  });
  reply.head(200, ['content-type', 'text/event-stream', 'cache-control', 'no-store', 'x-accel-buffering', 'no']);
  reply.flush();
  reply.onDrain(() => {
    behindBytes = 0;
    feed.setHidden(false);
  });
  const unsubscribe = ports.topics.subscribe(topics, (update) => feed.push(update));
  quiet();
  const letGo = (): void => {
    cancelQuiet();
    unsubscribe();
    feed.close();
    ports.streams.delete(end);
    leave();
  };
  const end = (): void => {
    letGo();
    reply.end();
  };
  ports.streams.add(end);
  reply.onGone(letGo);
}

/** @throws SwitchyardError invalid_request */
function topicsOf(text: string | null): readonly TopicName[] {
  if (text === null) return ['events'];
  const wanted = new Set(text.split(','));
  const topics = TOPIC_NAMES.filter((name) => wanted.has(name));
  if (topics.length !== wanted.size) {
    throw new SwitchyardError('invalid_request', `topics takes these, comma-separated: ${TOPIC_NAMES.join(', ')}.`, {
      extra: { param: 'topics' },
    });
  }
  return topics;
}
