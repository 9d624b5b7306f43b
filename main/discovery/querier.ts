import { createSocket, type Socket } from 'node:dgram';
import type { Link } from '../../agent/wire/discovery/interfaces.ts';
import { type Answer, encodeQuery, parseAnswer, QUERY_PORT } from '../../agent/wire/discovery/messages.ts';

export interface QuerierOptions {
  readonly randomBytes: (count: number) => Uint8Array;
  /** UDP port that agents answer on; 7412 but in tests. */
  readonly port?: number;
  /** An answer to one of the last queries, with the address it came from (zone kept). */
  onAnswer(answer: Answer, from: string): void;
}

/**
 * Asks every machine of a link by broadcast (IPv6: all-nodes), from the link's own address. It works where multicast is dropped
 * and without a default route. Answers carry the number of the query, so that nobody off the link can make them up.
 */
export class Querier {
  readonly #options: QuerierOptions;
  readonly #sockets = new Map<string, { readonly socket: Socket; ready: boolean }>();
  #links: readonly Link[] = [];
  #nonces: readonly string[] = [];

  constructor(options: QuerierOptions) {
    this.#options = options;
  }

  setLinks(links: readonly Link[]): void {
    this.#links = links;
    const wanted = new Set(links.map(({ address }) => address));
    for (const [address, { socket }] of this.#sockets) if (!wanted.has(address)) this.#drop(address, socket);
  }

  /** Sends one query per link. A link that cannot be asked now is asked the next time. */
  ask(): void {
    const nonce = Buffer.from(this.#options.randomBytes(8)).toString('hex');
    // Answers to the query before may still be under way.
    this.#nonces = [nonce, ...this.#nonces.slice(0, 1)];
    const query = encodeQuery(nonce);
    for (const link of this.#links) if (link.everybody !== null) this.#send(link, link.everybody, query);
  }

  stop(): void {
    for (const [address, { socket }] of this.#sockets) this.#drop(address, socket);
    this.#links = [];
    this.#nonces = [];
  }

  #send(link: Link, everybody: string, query: Buffer): void {
    const { port = QUERY_PORT } = this.#options;
    const send = (socket: Socket) => socket.send(query, port, everybody, () => {}); // a lost query is sent again
    const open = this.#sockets.get(link.address);
    if (open !== undefined) {
      if (open.ready) send(open.socket);
      return;
    }
    const socket = createSocket({ type: `udp${link.family}`, ipv6Only: link.family === 6 });
    const entry = { socket, ready: false };
    this.#sockets.set(link.address, entry);
    socket.on('error', () => this.#drop(link.address, socket)); // the address went, or is not settled yet
    socket.on('message', (datagram, { address: from }) => {
      const answer = parseAnswer(datagram);
      if (answer !== null && this.#nonces.includes(answer.nonce)) this.#options.onAnswer(answer, from);
    });
    socket.bind({ address: link.address, port: 0 }, () => {
      if (this.#sockets.get(link.address) !== entry) return;
      entry.ready = true;
      if (link.family === 4) socket.setBroadcast(true);
      send(socket);
    });
  }

  #drop(address: string, socket: Socket): void {
    if (this.#sockets.get(address)?.socket !== socket) return;
    this.#sockets.delete(address);
    socket.close();
  }
}
