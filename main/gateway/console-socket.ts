import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { type WebSocket, WebSocketServer } from 'ws';
import { BROWSER, Feed, FromBrowser, TOPIC_NAMES, type TopicName } from '../../preload/contract.ts';
import { SwitchyardError } from '../domain/errors.ts';
import type { Clock } from '../domain/time.ts';
import type { ConsoleSessions } from './console-sessions.ts';
import type { EventReaders } from './event-readers.ts';
import type { TopicFeed } from './ports.ts';

const MAX_MESSAGE_BYTES = 16 * 1024;
/** Bytes that wait for a slow reader before what is new is merged instead of sent. */
const AHEAD_BYTES = 256 * 1024;
/** Urgent news may pile up this far; then the reader is cut. */
const MOST_AHEAD_BYTES = 4 * 1024 * 1024;
/** A socket is pinged this often; one that has not answered by the next ping, or takes nothing that long, is cut. */
const PING_MS = 30_000;
/** A reader that does not answer the farewell is cut. */
const CLOSING_MS = 500;

export interface ConsoleSocketPorts {
  readonly sessions: ConsoleSessions;
  readonly readers: EventReaders;
  readonly topics: TopicFeed;
  readonly clock: Clock;
}

/** The console's WebSocket: topics flow out, the only words in are which topics and whether anybody looks. */
export class ConsoleSockets {
  readonly #ports: ConsoleSocketPorts;
  readonly #server = new WebSocketServer({
    noServer: true,
    maxPayload: MAX_MESSAGE_BYTES,
    perMessageDeflate: false,
    handleProtocols: () => BROWSER.protocol,
  });

  constructor(ports: ConsoleSocketPorts) {
    this.#ports = ports;
  }

  /**
   * Takes over a connection whose request has passed the guard.
   * @throws SwitchyardError invalid_ticket, too_many_readers; the connection is then still the caller's
   */
  accept(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    const offered = (request.headers['sec-websocket-protocol'] ?? '').split(',').map((protocol) => protocol.trim());
    const prefix = BROWSER.ticketProtocolPrefix;
    const ticket = offered.find((protocol) => protocol.startsWith(prefix))?.slice(prefix.length);
    if (ticket === undefined || !offered.includes(BROWSER.protocol)) throw new SwitchyardError('invalid_ticket');
    this.#ports.sessions.redeemSocketTicket(ticket);
    const leave = this.#ports.readers.enter();
    socket.once('close', leave);
    this.#server.handleUpgrade(request, socket, head, (webSocket) => this.#serve(webSocket));
  }

  close(): void {
    for (const socket of this.#server.clients) {
      socket.send(JSON.stringify({ type: 'closing', code: 'shutting_down' }));
      socket.close(1001);
      this.#ports.clock.after(CLOSING_MS, () => socket.terminate());
    }
  }

  #serve(socket: WebSocket): void {
    const { clock } = this.#ports;
    let unsubscribe: () => void = () => undefined;
    let visible = true;
    let behind = false;
    let alive = true;
    let cancelPing: () => void = () => undefined;
    const feed = new Feed({
      send: (update) => {
        socket.send(JSON.stringify(update), () => {
          if (!behind || socket.bufferedAmount > 0) return;
          behind = false;
          feed.setHidden(!visible);
        });
        if (socket.bufferedAmount <= AHEAD_BYTES) return;
        behind = true;
        feed.setHidden(true);
        if (socket.bufferedAmount > MOST_AHEAD_BYTES) socket.terminate();
      },
      after: (delayMs, callback) => clock.after(delayMs, callback),
    });
    const ping = (): void => {
      cancelPing = clock.after(PING_MS, () => {
        if (!alive) {
          socket.terminate();
          return;
        }
        alive = false;
        socket.ping();
        ping();
      });
    };
    socket.on('pong', () => {
      alive = true;
    });
    socket.on('error', () => socket.terminate());
    socket.on('close', () => {
      cancelPing();
      unsubscribe();
      feed.close();
    });
    socket.on('message', (data, isBinary) => {
      const message = isBinary ? null : parseMessage(data.toString());
      if (message === null) {
        socket.close(1008);
        return;
      }
      if (message.type === 'visible') {
        visible = message.visible;
        feed.setHidden(!visible || behind);
        return;
      }
      const wanted = new Set(message.topics);
      const topics: TopicName[] = TOPIC_NAMES.filter((name) => wanted.has(name));
      unsubscribe();
      feed.keep(new Set(topics));
      unsubscribe = this.#ports.topics.subscribe(topics, (update) => feed.push(update));
    });
    ping();
  }
}

function parseMessage(text: string): FromBrowser | null {
  try {
    const parsed = FromBrowser.safeParse(JSON.parse(text));
    return parsed.success ? parsed.data : null;
  } catch {
    return null;
  }
}
