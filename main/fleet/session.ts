import type { TLSSocket } from 'node:tls';
import type { WebSocket } from 'ws';
import { CLOSE } from '../../agent/wire/close.ts';
import type { CloudAsk } from '../../agent/wire/cloud.ts';
import { FromAgent, type FromController, type Welcome, WIRE_VERSION } from '../../agent/wire/control.ts';
import { ControllerMux, closedOpener } from '../../agent/wire/controller-mux.ts';
import { MAX_MESSAGE_BYTES } from '../../agent/wire/frames.ts';
import { type HandshakeMessage, joinDataAsController, resumeAsController } from '../../agent/wire/handshake.ts';
import { LOOK_MS, SilenceWatch } from '../../agent/wire/silence.ts';
import { messageBytes, muxPort } from '../../agent/wire/socket.ts';
import type { CallOpener } from '../../agent/wire/stream.ts';
import { SwitchyardError } from '../domain/errors.ts';
import { type AgentAddress, parseAddress } from './address.ts';
import { type DialOptions, dial } from './dial.ts';
import type { AgentLink, CloudLane, LinkOptions, LostReason } from './link.ts';
import { SecretMessages } from './secret-message.ts';

const PING_MS = 1000;
const NO_PULL_MS = 3000;
const LOST_MS = 15_000;
const WELCOME_MS = 5000;
const FORGET_MS = 3000;
const CLOSING_MS = 1000;
/** A heartbeat of 64 engines with 512 models each stays below. */
const MAX_CONTROL_BYTES = 16 * 1024 * 1024;

type State = 'new' | 'starting' | 'running' | 'dead';

/** The control plane's connection to one agent: control socket with liveness, data socket with calls. See `AgentLink`. */
export class AgentSession implements AgentLink, CloudLane {
  readonly #options: LinkOptions;
  #state: State = 'new';
  #nextUsed = false;
  #control: WebSocket | null = null;
  #secrets: SecretMessages | null = null;
  #data: WebSocket | null = null;
  #mux: ControllerMux | null = null;
  #watch: SilenceWatch | null = null;
  #welcome: { resolve(welcome: Welcome): void; reject(error: Error): void } | null = null;
  #welcomed = false;
  #revoked: (() => void) | null = null;
  #pulls = false;
  #rttMs: number | null = null;
  #heardAtMs: number | null = null;
  #looks = 0;
  #ping = { number: 0, sentAtMs: 0 };

  constructor(options: LinkOptions) {
    this.#options = options;
  }

  readonly opener: CallOpener = {
    open: (head, body, handlers) => (this.#mux ?? closedOpener).open(head, body, handlers),
  };

  get rttMs(): number | null {
    return this.#rttMs;
  }

  get pulls(): boolean {
    return this.#pulls;
  }

  get heardAtMs(): number | null {
    return this.#heardAtMs;
  }

  get openCalls(): number {
    return this.#mux?.openCalls ?? 0;
  }

  async start(): Promise<Welcome> {
    if (this.#state !== 'new') throw new SwitchyardError('node_unreachable', 'This connection is over.');
    this.#state = 'starting';
    try {
      const address = parseAddress(this.#options.address);
      const welcomed = new Promise<Welcome>((resolve, reject) => {
        this.#welcome = { resolve, reject };
      });
      // Whoever waits hears of it below; until then a rejection must not count as unhandled.
      welcomed.catch(() => undefined);
      const sid = await this.#openControl(address);
      await this.#openData(address, sid);
      const stop = this.#options.clock.after(WELCOME_MS, () => this.#end('silent'));
      const welcome = await welcomed.finally(stop);
      this.#requireStarting();
      this.#state = 'running';
      this.#pulls = true;
      return welcome;
    } catch (error) {
      this.#end('closed');
      throw error;
    }
  }

  detect(): void {
    this.#send({ t: 'detect' });
  }

  acknowledge(fingerprint: string): void {
    this.#send({ t: 'identity-known', fingerprint });
  }

  push(frame: Uint8Array): Promise<boolean> {
    const control = this.#control;
    if (this.#state !== 'running' || control?.readyState !== control?.OPEN || this.#secrets === null) {
      frame.fill(0);
      return Promise.resolve(false);
    }
    return this.#secrets.send(frame);
  }

  ask(question: CloudAsk): boolean {
    if (this.#state !== 'running') return false;
    this.#send(question);
    return true;
  }

  async forget(): Promise<boolean> {
    if (this.#state !== 'running') {
      this.close();
      return false;
    }
    const confirmed = await new Promise<boolean>((resolve) => {
      const stop = this.#options.clock.after(FORGET_MS, () => resolve(false));
      this.#revoked = () => {
        stop();
        resolve(true);
      };
      this.#control?.once('close', () => {
        stop();
        resolve(false);
      });
      this.#send({ t: 'forget' });
    });
    this.close();
    return confirmed;
  }

  close(): void {
    if (this.#state === 'dead') return;
    this.#send({ t: 'bye', reason: 'the control plane closes this connection' });
    this.#state = 'dead';
    const control = this.#control;
    control?.close(1000);
    this.#options.clock.after(CLOSING_MS, () => control?.terminate());
    this.#release();
    this.#welcome?.reject(new SwitchyardError('node_unreachable', 'The connection was closed.'));
  }

  async #openControl(address: AgentAddress): Promise<string> {
    return await dial(
      this.#dialOptions(address, MAX_CONTROL_BYTES),
      async ({ ws, tls, socket, binding, fingerprint }) => {
        const { controller, key } = this.#options;
        const { sid } = await resumeAsController(socket, { controller, binding, secret: key });
        this.#requireStarting(ws);
        this.#proved(fingerprint);
        this.#secrets = new SecretMessages(tls, this.#options.clock);
        this.#attachControl(ws, socket.release());
        return sid;
      },
    );
  }

  async #openData(address: AgentAddress, sid: string): Promise<void> {
    await dial(this.#dialOptions(address, MAX_MESSAGE_BYTES), async ({ ws, tls, socket, binding, fingerprint }) => {
      const { controller, key } = this.#options;
      await joinDataAsController(socket, { controller, binding, secret: key }, sid).catch(() => {
        // The node key has just been proved: refused here means that the session ended meanwhile, not the pairing.
        throw new SwitchyardError('node_unreachable');
      });
      this.#requireStarting(ws);
      this.#proved(fingerprint);
      this.#attachData(ws, tls, socket.release());
    });
  }

  #dialOptions(address: AgentAddress, maxMessageBytes: number): DialOptions {
    const { fingerprint, nextFingerprint: next = null, clock } = this.#options;
    const fingerprints = next === null ? [fingerprint] : this.#nextUsed ? [next] : [fingerprint, next];
    return { address, fingerprints, clock, maxMessageBytes };
  }

  #proved(fingerprint: string): void {
    if (this.#nextUsed || fingerprint !== this.#options.nextFingerprint) return;
    this.#nextUsed = true;
    this.#tell(() => this.#options.handlers.onNextUsed?.());
  }

  /** Closed, or lost, while a socket was being made: that socket has no place any more. */
  #requireStarting(ws?: WebSocket): void {
    if (this.#state === 'starting') return;
    ws?.terminate();
    throw new SwitchyardError('node_unreachable', 'The connection was closed.');
  }

  #attachControl(ws: WebSocket, early: readonly HandshakeMessage[]): void {
    this.#control = ws;
    ws.on('message', (data, binary) => this.#takeControl(messageBytes(data), binary));
    ws.on('pong', (payload: Buffer) => this.#takePong(payload));
    ws.on('close', (code) => this.#end(reasonOf(code)));
    if (ws.readyState !== ws.OPEN) this.#end('closed');
    this.#heardAtMs = this.#options.clock.nowMs();
    this.#watch = new SilenceWatch(this.#options.clock, (silentMs) => this.#look(silentMs));
    this.#sendPing();
    for (const { bytes, binary } of early) this.#takeControl(bytes, binary);
  }

  #attachData(ws: WebSocket, tls: TLSSocket, early: readonly HandshakeMessage[]): void {
    this.#data = ws;
    const port = muxPort(ws, tls);
    const mux = new ControllerMux(port, { onFault: (error) => this.#options.handlers.onFault?.(error) });
    this.#mux = mux;
    const take = (bytes: Buffer, binary: boolean): void => {
      if (binary) mux.receive(bytes);
      else mux.violate('text on a data socket');
      if (mux.closed) this.#end('violation');
    };
    ws.on('message', (data, binary) => take(messageBytes(data), binary));
    ws.on('close', (code) => this.#end(reasonOf(code)));
    if (ws.readyState !== ws.OPEN) this.#end('closed');
    for (const { bytes, binary } of early) take(bytes, binary);
  }

  #takeControl(bytes: Buffer, binary: boolean): void {
    if (this.#state === 'dead') return;
    this.#heard();
    const message = binary ? null : parseMessage(bytes);
    // The welcome comes once, and before what only a session says.
    const expected =
      message !== null &&
      (message.t === 'welcome' ? !this.#welcomed : this.#welcomed || message.t === 'bye' || message.t === 'revoked');
    if (message === null || !expected) {
      this.#control?.close(CLOSE.violation);
      this.#end('violation');
      return;
    }
    switch (message.t) {
      case 'welcome':
        this.#takeWelcome(message);
        return;
      case 'heartbeat':
        this.#tell(() => this.#options.handlers.onHeartbeat(message));
        return;
      case 'event':
        this.#tell(() => this.#options.handlers.onEvent?.(message));
        return;
      case 'cloud-status':
      case 'cloud-ack':
      case 'cloud-ended':
      case 'cloud-answer':
        this.#tell(() => this.#options.handlers.onCloud?.(message));
        return;
      case 'bye':
        this.#end('bye');
        return;
      case 'revoked':
        this.#revoked?.();
        if (this.#revoked === null) this.#end('revoked');
    }
  }

  #takeWelcome(welcome: Welcome): void {
    this.#welcomed = true;
    if (welcome.wireVersion !== WIRE_VERSION) {
      this.#welcome?.reject(new SwitchyardError('wire_version'));
      return;
    }
    this.#tell(() => this.#options.handlers.onWelcome(welcome));
    this.#welcome?.resolve(welcome);
  }

  #takePong(payload: Buffer): void {
    if (this.#state === 'dead') return;
    if (payload.length === 4 && payload.readUInt32BE(0) === this.#ping.number) {
      this.#rttMs = this.#options.clock.nowMs() - this.#ping.sentAtMs;
    }
    this.#heard();
  }

  #heard(): void {
    this.#watch?.heard();
    this.#heardAtMs = this.#options.clock.nowMs();
    if (this.#state === 'running' && !this.#pulls) this.#setPulls(true);
  }

  #look(silentMs: number): void {
    if (silentMs >= LOST_MS) {
      this.#end('silent');
      return;
    }
    if (silentMs >= NO_PULL_MS && this.#pulls) this.#setPulls(false);
    this.#looks += 1;
    if (this.#looks % (PING_MS / LOOK_MS) === 0) this.#sendPing();
  }

  #setPulls(pulls: boolean): void {
    this.#pulls = pulls;
    this.#tell(() => this.#options.handlers.onPulls?.(pulls));
  }

  #sendPing(): void {
    const control = this.#control;
    if (control === null || control.readyState !== control.OPEN) return;
    this.#ping = { number: (this.#ping.number + 1) % 2 ** 32, sentAtMs: this.#options.clock.nowMs() };
    const payload = Buffer.alloc(4);
    payload.writeUInt32BE(this.#ping.number);
    control.ping(payload);
  }

  #send(message: FromController): void {
    const control = this.#control;
    if (this.#state !== 'dead' && control?.readyState === control?.OPEN) control?.send(JSON.stringify(message));
  }

  /** The link is over, and not because we wanted it. */
  #end(reason: LostReason): void {
    if (this.#state === 'dead') return;
    const ran = this.#state === 'running';
    this.#state = 'dead';
    const control = this.#control;
    // A socket that just got its close frame may send its own; one that is dead does not notice.
    this.#options.clock.after(CLOSING_MS, () => control?.terminate());
    control?.close();
    this.#release();
    this.#welcome?.reject(new SwitchyardError(reason === 'revoked' ? 'join_refused' : 'node_unreachable'));
    if (ran) this.#tell(() => this.#options.handlers.onLost?.(reason));
  }

  #release(): void {
    this.#pulls = false;
    this.#watch?.stop();
    this.#mux?.close();
    const data = this.#data;
    if (data?.readyState === data?.OPEN) data?.terminate();
  }

  /** Handlers belong to others: what they throw must not end the socket's event, and with it the process. */
  #tell(call: () => void): void {
    try {
      call();
    } catch (error) {
      this.#options.handlers.onFault?.(error);
    }
  }
}

function reasonOf(closeCode: number): LostReason {
  switch (closeCode) {
    case CLOSE.goingAway:
      return 'bye';
    case CLOSE.revoked:
      return 'revoked';
    case CLOSE.superseded:
      return 'superseded';
    case CLOSE.violation:
      return 'violation';
    default:
      return 'closed';
  }
}

function parseMessage(bytes: Buffer): FromAgent | null {
  try {
    const parsed = FromAgent.safeParse(JSON.parse(bytes.toString('utf8')));
    return parsed.success ? parsed.data : null;
  } catch {
    return null;
  }
}
