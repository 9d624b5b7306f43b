import { createSocket, type RemoteInfo, type Socket } from 'node:dgram';
import type { Clock } from '../../main/domain/time.ts';
import { type Link, linkTo } from '../wire/discovery/interfaces.ts';
import { encodeAnswer, type NodeHint, parseQuery, QUERY_PORT } from '../wire/discovery/messages.ts';
import type { OnNote } from './notes.ts';

export interface ResponderOptions {
  readonly clock: Clock;
  readonly hint: NodeHint;
  readonly name: string;
  /** TCP port of the agent. */
  readonly agentPort: number;
  /** IPv6 too: only when the agent listens there. */
  readonly families: readonly (4 | 6)[];
  /** UDP port to listen on; 7412 but in tests. */
  readonly port?: number;
  readonly onNote: OnNote;
}

/** Answers in one second, over all who ask. */
const ANSWERS_PER_S = 32;
const REOPEN_MS = 15_000;

/**
 * Answers the queries that control planes broadcast where mDNS does not pass. It answers only its own links, never with more
 * bytes than were asked with, and no faster than 32 times a second: there is nothing to be gained from it from afar.
 */
export class BroadcastResponder {
  readonly #options: ResponderOptions;
  readonly #sockets = new Map<4 | 6, Socket>();
  #links: readonly Link[] = [];
  #stopped = true;
  #second = 0;
  #answered = 0;
  readonly #retries = new Map<4 | 6, () => void>();

  constructor(options: ResponderOptions) {
    this.#options = options;
  }

  start(): void {
    this.#stopped = false;
    for (const family of this.#options.families) this.#open(family);
  }

  /** On which links queries are answered. */
  setLinks(links: readonly Link[]): void {
    this.#links = links;
  }

  stop(): void {
    this.#stopped = true;
    for (const cancel of this.#retries.values()) cancel();
    for (const socket of this.#sockets.values()) socket.close();
    this.#sockets.clear();
  }

  #open(family: 4 | 6): void {
    if (this.#stopped) return;
    const { clock, port = QUERY_PORT, onNote } = this.#options;
    // Several agents of one machine share the port: each hears every broadcast.
    const socket = createSocket({ type: `udp${family}`, reuseAddr: true, ipv6Only: family === 6 });
    this.#sockets.set(family, socket);
    socket.on('error', () => {
      if (this.#sockets.get(family) !== socket) return;
      this.#sockets.delete(family);
      socket.close();
      onNote('discovery_query_port_held', true);
      this.#retries.set(
        family,
        clock.after(REOPEN_MS, () => this.#open(family)),
      );
    });
    socket.on('listening', () => onNote('discovery_query_port_held', false));
    socket.on('message', (datagram, from) => this.#answer(socket, datagram, from));
    socket.bind({ port, address: family === 4 ? '0.0.0.0' : '::' });
  }

  #answer(socket: Socket, datagram: Uint8Array, from: RemoteInfo): void {
    const { hint, name, agentPort } = this.#options;
    const nonce = parseQuery(datagram);
    if (nonce === null || linkTo(from.address, this.#links) === null || !this.#mayAnswer()) return;
    const answer = encodeAnswer({ ...hint, nonce, name, port: agentPort });
    socket.send(answer, from.port, from.address, () => {}); // lost answers are asked for again
  }

  #mayAnswer(): boolean {
    const second = Math.floor(this.#options.clock.nowMs() / 1000);
    if (second !== this.#second) {
      this.#second = second;
      this.#answered = 0;
    }
    this.#answered += 1;
    return this.#answered <= ANSWERS_PER_S;
  }
}
