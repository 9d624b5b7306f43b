import { randomBytes } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { type WebSocket, WebSocketServer } from 'ws';
import { CLOSE } from '../wire/close.ts';
import type { CloudFromAgent } from '../wire/cloud.ts';
import type { AgentEvent, Heartbeat } from '../wire/control.ts';
import { MAX_MESSAGE_BYTES } from '../wire/frames.ts';
import { type AgentOutcome, HandshakeRefused, type Hello, handshakeAsAgent } from '../wire/handshake.ts';
import { formatJoinCode } from '../wire/joincode.ts';
import { channelBinding, closeCodeOf, HandshakeSocket } from '../wire/socket.ts';
import { Admission, UNPROVED_MS } from './admission.ts';
import { ControlSession } from './control-session.ts';
import { certificateFingerprint, type KeyPair } from './identity.ts';
import { type AgentListener, type AgentServerCounters, type AgentServerOptions, DEFAULT_PORT } from './ports.ts';

/** Wrong codes, from anywhere, that close a join code. */
const WRONG_CODES_IN_ALL = 100;
const PATH = '/v1';

/** A socket that has not proved itself yet. */
interface Unproved {
  readonly address: string;
  /** The proof was right: it no longer counts against the limits. */
  proved(): void;
  /** The handshake is over: its time limit ends. */
  done(): void;
}

/** TLS listener of the agent: admits, proves, and keeps the sessions. See `AgentListener`. */
export class AgentServer implements AgentListener {
  readonly #options: AgentServerOptions;
  readonly #admission: Admission;
  readonly #sessions = new Map<string, ControlSession>();
  readonly #sockets = new Set<Socket>();
  readonly #unproved = new Map<string, Unproved>();
  readonly #upgrades = new WebSocketServer({
    noServer: true,
    perMessageDeflate: false,
    clientTracking: false,
    maxPayload: MAX_MESSAGE_BYTES,
  });
  #server: Server | null = null;
  #stopping: Promise<void> | null = null;
  #heartbeat: ((controller: string) => string) | null = null;
  #codeTries = 0;
  #callsOfEnded = 0;
  readonly #counts = { refused: 0, wrongCodes: 0, violations: 0, heartbeatsSkipped: 0 };

  constructor(options: AgentServerOptions) {
    this.#options = options;
    this.#admission = new Admission(options.clock);
  }

  async start(): Promise<{ readonly host: string; readonly port: number }> {
    const { identity, controllers, host, port = DEFAULT_PORT } = this.#options;
    if (controllers.count === 0 && controllers.code() === null) await this.newJoinCode();
    const server = createServer(
      {
        cert: identity.certificatePem,
        key: identity.keyPem,
        minVersion: 'TLSv1.3',
        maxHeaderSize: 4096,
        // The admission's own limit covers every step before the proof, with the product's clock.
        headersTimeout: 0,
        requestTimeout: 0,
      },
      (_request, response) => {
        this.#counts.refused += 1;
        response.writeHead(426, { connection: 'close', upgrade: 'websocket' }).end();
      },
    );
    this.#server = server;
    server.on('connection', (socket: Socket) => this.#admit(socket));
    server.on('tlsClientError', (_error, socket) => socket.destroy());
    server.on('clientError', (_error, socket) => socket.destroy());
    server.on('upgrade', (request: IncomingMessage, socket, head) => this.#upgrade(request, socket as TLSSocket, head));
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen({ port, ...(host === undefined ? {} : { host }) }, () => {
        server.off('error', reject);
        // Running out of file descriptors arrives here; the listener goes on.
        server.on('error', (error) => this.#options.onFault?.(error));
        resolve();
      });
    });
    const bound = server.address();
    if (bound === null || typeof bound === 'string') throw new Error('The listener has no port.');
    return { host: bound.address, port: bound.port };
  }

  stop(): Promise<void> {
    this.#stopping ??= this.#stop();
    return this.#stopping;
  }

  broadcast(heartbeat: Heartbeat, seenBy: (controller: string) => Heartbeat = () => heartbeat): void {
    this.#heartbeat = (controller) => JSON.stringify(seenBy(controller));
    for (const session of this.#sessions.values()) {
      if (!session.live) continue;
      if (!session.sendLatest(this.#heartbeat(session.controller))) this.#counts.heartbeatsSkipped += 1;
    }
  }

  event(event: AgentEvent): void {
    const message = JSON.stringify(event);
    for (const session of this.#sessions.values()) if (session.live) session.sendLatest(message);
  }

  send(controller: string, message: CloudFromAgent | AgentEvent): boolean {
    for (const session of this.#sessions.values()) {
      if (!session.live || session.controller !== controller) continue;
      session.send(JSON.stringify(message));
      return true;
    }
    return false;
  }

  joinCode(): string | null {
    const code = this.#options.controllers.code();
    return code === null ? null : formatJoinCode(code);
  }

  async newJoinCode(): Promise<string> {
    this.#codeTries = 0;
    return await this.#options.controllers.newCode();
  }

  async revoke(controller: string): Promise<boolean> {
    // Memory first, then the sessions, then the disk: a full disk must not keep anybody in.
    const stored = this.#options.controllers.revoke(controller);
    this.#cut(controller);
    try {
      return await stored;
    } finally {
      this.#options.onControllers?.(this.#options.controllers.count);
    }
  }

  async reload(): Promise<void> {
    const before = this.joinCode();
    for (const controller of await this.#options.controllers.reload()) this.#cut(controller);
    if (this.joinCode() !== before) this.#codeTries = 0;
    this.#options.onControllers?.(this.#options.controllers.count);
  }

  showKey({ certificatePem: cert, keyPem: key }: KeyPair): void {
    this.#server?.setSecureContext({ cert, key, minVersion: 'TLSv1.3' });
  }

  counters(): AgentServerCounters {
    const live = [...this.#sessions.values()].filter((session) => session.live);
    return {
      ...this.#counts,
      sessions: live.length,
      unproved: this.#admission.unproved,
      calls: live.reduce((sum, session) => sum + session.openCalls, 0),
      callsTotal: live.reduce((sum, session) => sum + session.callsTotal, this.#callsOfEnded),
    };
  }

  async #stop(): Promise<void> {
    const server = this.#server;
    if (server === null) return;
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    const bye = JSON.stringify({ t: 'bye', reason: 'the agent stops' });
    await Promise.all([...this.#sessions.values()].map((session) => session.close(CLOSE.goingAway, bye)));
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  /** A TCP connection, before any byte of it is read. */
  #admit(socket: Socket): void {
    const address = socket.remoteAddress;
    const release = address === undefined ? null : this.#admission.admit(address);
    if (address === undefined || release === null || this.#stopping !== null) {
      release?.();
      this.#counts.refused += 1;
      socket.destroy();
      return;
    }
    const peer = peerName(socket);
    this.#sockets.add(socket);
    const stop = this.#options.clock.after(UNPROVED_MS, () => {
      this.#counts.refused += 1;
      socket.destroy();
    });
    this.#unproved.set(peer, { address, proved: release, done: stop });
    socket.setNoDelay(true);
    socket.on('error', () => socket.destroy());
    socket.on('close', () => {
      stop();
      release();
      this.#sockets.delete(socket);
      this.#unproved.delete(peer);
    });
  }

  #upgrade(request: IncomingMessage, tls: TLSSocket, head: Buffer): void {
    const peer = this.#unproved.get(peerName(tls));
    tls.on('error', () => tls.destroy());
    const status =
      request.headers.origin !== undefined ? '403 Forbidden' : request.url !== PATH ? '404 Not Found' : null;
    if (peer === undefined || status !== null) {
      this.#counts.refused += 1;
      tls.end(`HTTP/1.1 ${status ?? '400 Bad Request'}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
      return;
    }
    this.#upgrades.handleUpgrade(request, tls, head, (ws) => void this.#prove(ws, tls, peer));
  }

  async #prove(ws: WebSocket, tls: TLSSocket, peer: Unproved): Promise<void> {
    const socket = new HandshakeSocket(ws, tls);
    try {
      const outcome = await handshakeAsAgent(socket, {
        node: this.#options.identity.node,
        binding: channelBinding(tls, shownFingerprint(tls)),
        secret: (hello) => this.#secret(hello, peer.address),
        proved: (hello, right) => this.#proved(hello, right, peer),
        store: (controller, key, code) => this.#store(controller, key, code),
        openSession: (controller) => this.#openSession(controller),
      });
      peer.done();
      this.#attach(outcome, ws, tls, socket);
    } catch (error) {
      if (error instanceof HandshakeRefused) {
        this.#counts.refused += 1;
        ws.close(closeCodeOf(error.code));
      } else {
        ws.terminate();
      }
      // The time limit of the handshake still runs and ends a peer that keeps the socket open.
    }
  }

  #secret(hello: Hello, address: string): Uint8Array | null {
    const { controllers } = this.#options;
    if (hello.mode === 'pair') return this.#admission.isShutOut(address) ? null : controllers.code();
    if (hello.mode === 'data') {
      const session = this.#sessions.get(hello.sid);
      if (session === undefined || !session.live || session.controller !== hello.cp) return null;
    }
    return controllers.key(hello.cp);
  }

  #proved(hello: Hello, right: boolean, peer: Unproved): void {
    if (right) {
      peer.proved();
      if (hello.mode === 'pair') this.#admission.rightCode(peer.address);
      return;
    }
    // A shut-out address is not counted on: it would close the code for everybody.
    if (hello.mode !== 'pair' || this.#admission.isShutOut(peer.address)) return;
    this.#counts.wrongCodes += 1;
    this.#codeTries += 1;
    this.#admission.wrongCode(peer.address);
    if (this.#codeTries >= WRONG_CODES_IN_ALL && this.#options.controllers.code() !== null) {
      this.#options.controllers.closeCode().catch((error: unknown) => this.#options.onFault?.(error));
    }
  }

  async #store(controller: string, key: Uint8Array, code: Uint8Array): Promise<void> {
    let outcome: Awaited<ReturnType<AgentServerOptions['controllers']['pair']>>;
    try {
      outcome = await this.#options.controllers.pair(controller, key, code);
    } catch (error) {
      this.#options.onFault?.(error);
      throw new HandshakeRefused('not-stored');
    }
    if (outcome === 'full') throw new HandshakeRefused('too-many-controllers');
    if (outcome === 'code-gone') throw new HandshakeRefused('proof');
    // Paired anew: who holds the key it had before is out.
    for (const session of [...this.#sessions.values()]) {
      if (session.controller === controller) void session.close(CLOSE.superseded);
    }
    this.#options.onControllers?.(this.#options.controllers.count);
  }

  #openSession(controller: string): string {
    const sid = randomBytes(16).toString('base64url');
    const { clock, serve } = this.#options;
    const session: ControlSession = new ControlSession({
      sid,
      controller,
      clock,
      serve,
      onDetect: () => this.#options.onDetect?.(controller),
      onAsk: (ask) => this.#options.onAsk?.(controller, ask),
      onPush: (frame) => {
        this.#options.onPush?.(controller, frame);
        return this.#options.onPush !== undefined;
      },
      onKnown: (fingerprint) => this.#options.onKnown?.(controller, fingerprint),
      onForget: () => {
        this.revoke(controller).catch((error: unknown) => this.#options.onFault?.(error));
      },
      onSilence: (silent) => this.#options.onSession?.(controller, silent ? 'silent' : 'back'),
      onViolation: () => {
        this.#counts.violations += 1;
      },
      onFault: (error) => this.#options.onFault?.(error),
      onEnded: (began) => {
        this.#callsOfEnded += session.callsTotal;
        this.#sessions.delete(sid);
        if (began) this.#options.onSession?.(controller, 'ended');
      },
    });
    this.#sessions.set(sid, session);
    return sid;
  }

  /** The handshake is over, both sides are proved. */
  #attach(outcome: AgentOutcome, ws: WebSocket, tls: TLSSocket, socket: HandshakeSocket): void {
    const early = socket.release();
    if (outcome.mode === 'pair') {
      ws.close(1000);
      this.#options.clock.after(UNPROVED_MS, () => ws.terminate());
      return;
    }
    const session = this.#sessions.get(outcome.sid);
    const known = this.#options.controllers.key(outcome.controller) !== null;
    if (session === undefined || !known || ws.readyState !== ws.OPEN || this.#stopping !== null) {
      if (outcome.mode === 'resume') this.#sessions.delete(outcome.sid);
      ws.terminate();
      return;
    }
    if (outcome.mode === 'data') {
      if (!session.attachData(ws, tls, early)) ws.close(CLOSE.refused);
      return;
    }
    for (const other of [...this.#sessions.values()]) {
      if (other !== session && other.live && other.controller === session.controller) {
        void other.close(CLOSE.superseded);
      }
    }
    this.#options.onSession?.(session.controller, 'began');
    const first = [
      JSON.stringify(this.#options.welcome()),
      ...(this.#heartbeat === null ? [] : [this.#heartbeat(session.controller)]),
    ];
    session.attach(ws, early, first);
  }

  /** Ends every session of a control plane that is no longer known. */
  #cut(controller: string): void {
    this.#options.onRevoked?.(controller);
    const last = JSON.stringify({ t: 'revoked' });
    for (const session of [...this.#sessions.values()]) {
      if (session.controller === controller) void session.close(CLOSE.revoked, last);
    }
  }
}

/** Of the key that this very connection was opened with: the agent's own may be another by now. */
function shownFingerprint(tls: TLSSocket): string {
  const certificate = tls.getX509Certificate();
  if (certificate === undefined) throw new HandshakeRefused('malformed');
  return certificateFingerprint(certificate);
}

/** Names a connection alike on its TCP and its TLS socket, which Node does not link in public. */
function peerName(socket: Socket): string {
  return `${socket.remoteAddress} ${socket.remotePort}`;
}
