import type { TLSSocket } from 'node:tls';
import type { WebSocket } from 'ws';
import type { Clock } from '../../main/domain/time.ts';
import { AgentMux } from '../wire/agent-mux.ts';
import { CLOSE } from '../wire/close.ts';
import type { CloudAsk } from '../wire/cloud.ts';
import { FromController } from '../wire/control.ts';
import type { HandshakeMessage } from '../wire/handshake.ts';
import { SilenceWatch } from '../wire/silence.ts';
import { messageBytes, muxPort } from '../wire/socket.ts';
import type { CallServer } from '../wire/stream.ts';

const MAX_DATA_SOCKETS = 4;
const MAX_CONTROL_BYTES = 64 * 1024;
/** A heartbeat replaces the one before: to a peer that does not read, none is sent on top. */
const UNREAD_BYTES = 1024 * 1024;
const SILENT_MS = 5000;
const LOST_MS = 15_000;
/** How long a closing socket may take to say so. */
const CLOSING_MS = 1000;

export interface ControlSessionOptions {
  readonly sid: string;
  readonly controller: string;
  readonly clock: Clock;
  readonly serve: CallServer;
  onDetect(): void;
  onForget(): void;
  /** It has kept the fingerprint that was announced. */
  onKnown(fingerprint: string): void;
  onAsk(ask: CloudAsk): void;
  /** False: nobody here takes pushes. */
  onPush(frame: Uint8Array): boolean;
  onSilence(silent: boolean): void;
  onViolation(): void;
  onFault(error: unknown): void;
  /** `began`: it had taken over its control socket. */
  onEnded(began: boolean): void;
}

/** A control plane that has proved itself: its control socket and the data sockets that name it. They live and die together. */
export class ControlSession {
  readonly sid: string;
  readonly controller: string;
  readonly #options: ControlSessionOptions;
  readonly #data = new Map<WebSocket, AgentMux>();
  #ws: WebSocket | null = null;
  #watch: SilenceWatch | null = null;
  #silent = false;
  #ended = false;
  #callsBefore = 0;

  constructor(options: ControlSessionOptions) {
    this.sid = options.sid;
    this.controller = options.controller;
    this.#options = options;
  }

  get live(): boolean {
    return this.#ws !== null && !this.#ended;
  }

  get openCalls(): number {
    return [...this.#data.values()].reduce((sum, mux) => sum + mux.openCalls, 0);
  }

  get callsTotal(): number {
    return [...this.#data.values()].reduce((sum, mux) => sum + mux.callsTotal, this.#callsBefore);
  }

  /** Takes over the proved control socket and says `first` at once. */
  attach(ws: WebSocket, early: readonly HandshakeMessage[], first: readonly string[]): void {
    this.#ws = ws;
    ws.on('message', (data, binary) => this.#take(messageBytes(data), binary));
    ws.on('ping', () => this.#heard());
    ws.on('close', () => this.end());
    this.#watch = new SilenceWatch(this.#options.clock, (silentMs) => this.#look(silentMs));
    for (const message of first) ws.send(message);
    for (const { bytes, binary } of early) this.#take(bytes, binary);
  }

  /** Takes over a proved data socket. False: the session has enough of them, or is over. */
  attachData(ws: WebSocket, tls: TLSSocket, early: readonly HandshakeMessage[]): boolean {
    if (!this.live || this.#data.size >= MAX_DATA_SOCKETS) return false;
    const port = muxPort(ws, tls);
    const mux = new AgentMux(
      {
        ...port,
        // A spread would read the getter once.
        get bufferedAmount() {
          return port.bufferedAmount;
        },
        close: (reason) => {
          this.#options.onViolation();
          port.close(reason);
          this.#options.clock.after(CLOSING_MS, () => ws.terminate());
        },
      },
      { controller: this.controller, serve: this.#options.serve, onFault: this.#options.onFault },
    );
    this.#data.set(ws, mux);
    const take = (bytes: Buffer, binary: boolean): void => {
      if (binary) mux.receive(bytes);
      else mux.violate('text on a data socket');
    };
    ws.on('message', (data, binary) => take(messageBytes(data), binary));
    ws.on('close', () => {
      mux.close();
      this.#callsBefore += mux.callsTotal;
      this.#data.delete(ws);
    });
    for (const { bytes, binary } of early) take(bytes, binary);
    return true;
  }

  /** Sends a message that must arrive. */
  send(message: string): void {
    if (this.#ws?.readyState === this.#ws?.OPEN) this.#ws?.send(message);
  }

  /** Sends a message that the next one replaces. False: the peer does not read, it was left out. */
  sendLatest(message: string): boolean {
    if (this.#ws === null || this.#ws.bufferedAmount > UNREAD_BYTES) return false;
    this.send(message);
    return true;
  }

  /** Says why and closes; calls are aborted now. Resolves when the socket is gone. */
  close(code: number, lastMessage?: string): Promise<void> {
    const ws = this.#ws;
    if (ws === null || ws.readyState === ws.CLOSED) {
      this.end();
      return Promise.resolve();
    }
    if (lastMessage !== undefined) this.send(lastMessage);
    const closed = new Promise<void>((resolve) => {
      const stop = this.#options.clock.after(CLOSING_MS, () => ws.terminate());
      ws.once('close', () => {
        stop();
        resolve();
      });
    });
    ws.close(code);
    this.end(code);
    return closed;
  }

  /**
   * Aborts every call and closes the data sockets, with the same code as the control socket: whichever arrives first, the
   * control plane hears the true reason. Idempotent.
   */
  end(code: number | null = null): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#watch?.stop();
    for (const [ws, mux] of [...this.#data]) {
      mux.close();
      if (code === null) ws.terminate();
      else ws.close(code);
    }
    if (code !== null) this.#options.clock.after(CLOSING_MS, () => this.#terminateData());
    this.#options.onEnded(this.#ws !== null);
  }

  #terminateData(): void {
    for (const ws of this.#data.keys()) ws.terminate();
  }

  #take(bytes: Buffer, binary: boolean): void {
    if (this.#ended) return;
    this.#heard();
    const fits = bytes.length <= MAX_CONTROL_BYTES;
    if (binary && fits && this.#guard(() => this.#options.onPush(bytes))) return;
    if (binary) bytes.fill(0);
    const message = binary || !fits ? null : parseControl(bytes);
    switch (message?.t) {
      case undefined:
        this.#options.onViolation();
        void this.close(CLOSE.violation);
        return;
      case 'detect':
        this.#guard(() => this.#options.onDetect());
        return;
      case 'cloud-ask':
        this.#guard(() => this.#options.onAsk(message));
        return;
      case 'identity-known':
        this.#guard(() => this.#options.onKnown(message.fingerprint));
        return;
      case 'forget':
        this.#options.onForget();
        return;
      case 'bye':
        void this.close(1000);
    }
  }

  /** Runs a handler of the agent around; what it throws ends nothing. True also then: the message was understood. */
  #guard(run: () => unknown): boolean {
    try {
      return run() !== false;
    } catch (error) {
      this.#options.onFault(error);
      return true;
    }
  }

  #heard(): void {
    this.#watch?.heard();
    if (this.#silent && !this.#ended) {
      this.#silent = false;
      this.#options.onSilence(false);
    }
  }

  #look(silentMs: number): void {
    if (silentMs >= LOST_MS) {
      this.end();
      this.#ws?.terminate();
    } else if (silentMs >= SILENT_MS && !this.#silent) {
      this.#silent = true;
      this.#options.onSilence(true);
    }
  }
}

function parseControl(bytes: Buffer): FromController | null {
  try {
    const parsed = FromController.safeParse(JSON.parse(bytes.toString('utf8')));
    return parsed.success ? parsed.data : null;
  } catch {
    return null;
  }
}
