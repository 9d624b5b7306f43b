import { createServer, type IncomingMessage, type Server, type ServerOptions, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { Duplex } from 'node:stream';
import { BROWSER } from '../../preload/contract.ts';
import { type ErrorCode, SwitchyardError } from '../domain/errors.ts';

import { adminRoutes } from './admin.ts';
import { peerOf } from './auth.ts';
import { consoleRoutes } from './console-routes.ts';
import { ConsoleSessions } from './console-sessions.ts';
import { ConsoleSockets } from './console-socket.ts';
import { asSwitchyardError } from './errors.ts';
import { EventReaders, streamEvents } from './event-readers.ts';
import { type ExchangeLimits, Exchanges } from './exchanges.ts';
import { admit, type GuardRules, LOOPBACK_HOSTS } from './guard.ts';
import { healthRoutes } from './health.ts';
import { DEFAULT_ADDRESSES, listenOnAll, type Misplaced } from './listen.ts';
import { modelRoutes } from './models-list.ts';
import { chatRoutes } from './openai-chat.ts';
import { embeddingRoutes } from './openai-embeddings.ts';
import { openApiRoute } from './openapi.ts';
import type { GatewayPorts, GatewaySettings } from './ports.ts';
import { hasUnreadBody, refuseSocket } from './refusals.ts';
import { RequestIds } from './request-ids.ts';
import { rerankRoutes } from './rerank.ts';
import { type Route, RouteTable } from './routes.ts';

/** Time limits of connections, in ms; tests shorten them. */
export interface ConnectionLimits {
  readonly headersMs: number;
  readonly keepAliveMs: number;
  readonly checkMs: number;
}

export interface GatewayOptions {
  readonly connections?: Partial<ConnectionLimits>;
  readonly exchanges?: Partial<ExchangeLimits>;
}

const CONNECTIONS: ConnectionLimits = { headersMs: 10_000, keepAliveMs: 65_000, checkMs: 1000 };
const HEADER_BYTES = 16 * 1024;
/** The body has its own clock of 60 s; this only ends what slips through it. */
const WHOLE_REQUEST_MS = 90_000;

/**
 * The local HTTP endpoint. One guard stands before every way in; then come the route, its access rule, and only then a byte of
 * the body.
 */
export class Gateway {
  readonly #settings: GatewaySettings;
  readonly #options: GatewayOptions;
  readonly #sessions: ConsoleSessions;
  readonly #sockets: ConsoleSockets;
  readonly #ids: RequestIds;
  readonly #exchanges: Exchanges;
  readonly #routes: readonly Route[];
  readonly #streams = new Set<() => void>();
  /** Connections on which an answer is being given: garbage behind it must not be answered in the middle of it. */
  readonly #answering = new Map<Duplex, number>();
  #servers: readonly Server[] = [];
  #addresses: readonly string[];
  #misplaced: Misplaced | null = null;
  #rules: GuardRules | null = null;

  constructor(ports: GatewayPorts, settings: GatewaySettings, options: GatewayOptions = {}) {
    this.#settings = settings;
    this.#addresses = settings.addresses;
    this.#options = options;
    this.#ids = new RequestIds(ports.randomBytes, ports.clock);
    this.#sessions = new ConsoleSessions(ports.clock, ports.randomBytes);
    const readers = new EventReaders();
    this.#sockets = new ConsoleSockets({ ...ports, sessions: this.#sessions, readers });
    const table: RouteTable = new RouteTable([
      ...chatRoutes(ports),
      ...embeddingRoutes(ports),
      ...rerankRoutes(ports),
      ...modelRoutes(ports.catalogue),
      ...healthRoutes(ports, () => this.#exchanges.draining),
      openApiRoute(() => table.routes, settings.version),
      ...adminRoutes(ports, (call) => streamEvents(call, { ...ports, readers, streams: this.#streams })),
      ...consoleRoutes({
        clock: ports.clock,
        sessions: this.#sessions,
        files: settings.consoleFiles,
        adminTokenSha256: settings.adminTokenSha256,
      }),
    ]);
    this.#routes = table.routes;
    this.#exchanges = new Exchanges(ports, settings, table, this.#sessions, options.exchanges ?? {});
  }

  /**
   * @returns where it listens: the address to show to people
   * An address that cannot be had (a cable that is out, a name that nobody knows any more) must not end the whole house: then it
   * listens for this machine alone, and `misplaced` says so.
   * @throws SwitchyardError address_in_use
   */
  async start(): Promise<{ readonly url: string; readonly port: number }> {
    const { port, hostNames, origins, tls } = this.#settings;
    const make = () => this.#createServer();
    const listening = await listenOnAll(this.#addresses, port, make).catch((error: unknown) => {
      const code = error instanceof SwitchyardError ? error.code : null;
      if (code !== 'address_absent' && code !== 'address_unknown') throw error;
      this.#misplaced = { address: this.#addresses.join(', '), code };
      this.#addresses = DEFAULT_ADDRESSES;
      return listenOnAll(DEFAULT_ADDRESSES, port, make);
    });
    this.#servers = listening.servers as readonly Server[];
    this.#rules = {
      scheme: tls === null ? 'http' : 'https',
      port: listening.port,
      // An address is no name that a page could rebind, so one that was chosen to listen on may stand in Host too.
      hosts: new Set([
        ...LOOPBACK_HOSTS,
        ...[...hostNames, ...this.#addresses.map(authority)].map((name) => name.toLowerCase()),
      ]),
      origins: new Set(origins),
    };
    return { url: this.#url(), port: listening.port };
  }

  /** Everything that is served, as /openapi.json describes it. */
  get routes(): readonly Route[] {
    return this.#routes;
  }

  /** An address that opens the console in a browser: good for one use within 10 min. */
  consoleUrl(): string {
    return `${this.#url()}/console/#ticket=${this.#sessions.issueConsoleTicket()}`;
  }

  /** Where it listens, without the port. */
  get addresses(): readonly string[] {
    return this.#addresses;
  }

  /** The address that it was to listen on and could not; null: it listens where it should. */
  get misplaced(): Misplaced | null {
    return this.#misplaced;
  }

  /** True when work or administration could be overheard: reachable from elsewhere, and without TLS. */
  get exposedInClear(): boolean {
    const loopback = this.#addresses.every((address) => address === '::1' || address.startsWith('127.'));
    return !loopback && this.#settings.tls === null;
  }

  /** Takes no new work (503 `shutting_down`) and waits until what runs has ended, or `timeoutMs` have passed. */
  drain(timeoutMs: number): Promise<void> {
    return this.#exchanges.drain(timeoutMs);
  }

  /** Ends everything at once: streams that still run are cut. Idempotent. */
  async stop(): Promise<void> {
    this.#exchanges.beginDraining();
    this.#sockets.close();
    for (const end of [...this.#streams]) end();
    const servers = this.#servers;
    this.#servers = [];
    await Promise.all(
      servers.map((server) => {
        const closed = new Promise((resolve) => server.close(resolve));
        server.closeAllConnections();
        return closed;
      }),
    );
    for (const socket of [...this.#answering.keys()]) socket.destroy();
  }

  #url(): string {
    const addresses = this.#addresses;
    const everywhere = addresses.some((address) => ['127.0.0.1', '0.0.0.0', '::'].includes(address));
    const host = everywhere ? '127.0.0.1' : authority(addresses[0] ?? '127.0.0.1');
    return `${this.#rules?.scheme ?? 'http'}://${host}:${this.#rules?.port ?? 0}`;
  }

  #createServer(): Server {
    const limits = { ...CONNECTIONS, ...this.#options.connections };
    const options: ServerOptions = {
      maxHeaderSize: HEADER_BYTES,
      headersTimeout: limits.headersMs,
      requestTimeout: WHOLE_REQUEST_MS,
      keepAliveTimeout: limits.keepAliveMs,
      connectionsCheckingInterval: limits.checkMs,
      noDelay: true,
      // The guard says it better, and in the same form as every other refusal.
      requireHostHeader: false,
      // Clients that offer h2c go on with HTTP/1.1.
      shouldUpgradeCallback: (request) => request.headers.upgrade?.toLowerCase() === 'websocket',
    };
    const { tls } = this.#settings;
    const server = tls === null ? createServer(options) : createTlsServer({ ...options, ...tls });
    server.on('request', (request, response) => this.#serve(request, response));
    server.on('checkContinue', (request, response) => this.#serve(request, response));
    server.on('checkExpectation', (request, response) => this.#serve(request, response));
    server.on('upgrade', (request, socket, head) => this.#upgrade(request, socket, head));
    server.on('connect', (_request, socket, head) => {
      head.fill(0);
      refuseSocket(socket, 'bad_request_line', this.#ids.next());
    });
    server.on('clientError', (error: Garbage, socket) => this.#refuseGarbage(error, socket));
    return server;
  }

  #serve(request: IncomingMessage, response: ServerResponse): void {
    const { socket } = request;
    this.#answering.set(socket, (this.#answering.get(socket) ?? 0) + 1);
    response.on('close', () => {
      const left = (this.#answering.get(socket) ?? 1) - 1;
      if (left > 0) this.#answering.set(socket, left);
      else this.#answering.delete(socket);
    });
    this.#exchanges.serve(request, response, this.#ids.next(), this.#admit(request));
  }

  #admit(request: IncomingMessage): ReturnType<typeof admit> {
    // Between listening and knowing the port nobody is let in.
    if (this.#rules === null) return { admitted: false, code: 'not_ready' };
    return admit(
      {
        method: request.method ?? '',
        target: request.url ?? '',
        httpVersion: request.httpVersion,
        rawHeaders: request.rawHeaders,
      },
      this.#rules,
    );
  }

  #upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    socket.on('error', () => socket.destroy());
    let refusal = this.#upgradeRefusal(request);
    if (refusal === null) {
      try {
        this.#sockets.accept(request, socket, head);
        return;
      } catch (error) {
        refusal = asSwitchyardError(error).code;
      }
    }
    head.fill(0);
    refuseSocket(socket, refusal, this.#ids.next());
  }

  #upgradeRefusal(request: IncomingMessage): ErrorCode | null {
    const verdict = this.#admit(request);
    if (!verdict.admitted) return verdict.code;
    // The socket is the console's own; listed origins may use the API, not this.
    if (verdict.origin !== null) return 'forbidden_origin';
    if (request.url !== BROWSER.socket || hasUnreadBody(request)) return 'not_found';
    const peer = peerOf(request, this.#settings.trustProxy);
    if (!peer.loopback && !peer.tls) return 'tls_required';
    return this.#exchanges.draining ? 'shutting_down' : null;
  }

  /** What the parser could not read as a request. */
  #refuseGarbage(error: Garbage, socket: Duplex): void {
    error.rawPacket?.fill(0);
    if (error.code === 'ECONNRESET' || !socket.writable || this.#answering.has(socket)) {
      socket.destroy();
      return;
    }
    const code =
      error.code === 'HPE_HEADER_OVERFLOW'
        ? 'headers_too_large'
        : error.code === 'ERR_HTTP_REQUEST_TIMEOUT'
          ? 'request_timeout'
          : 'bad_request_line';
    refuseSocket(socket, code, this.#ids.next());
  }
}

/** Node hands over what it could not parse. */
interface Garbage extends NodeJS.ErrnoException {
  readonly rawPacket?: Buffer;
}

/** An address as URLs and Host headers write it. */
function authority(address: string): string {
  return address.includes(':') ? `[${address}]` : address;
}
