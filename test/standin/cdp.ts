import { type ChildProcess, spawn } from 'node:child_process';
import { EventEmitter } from 'node:events';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

type Json = Record<string, unknown>;
interface Message {
  readonly id?: number;
  readonly method?: string;
  readonly params?: Json;
  readonly result?: Json;
  readonly error?: { readonly message: string };
  readonly sessionId?: string;
}
type Send = (method: string, params: Json, sessionId: string | undefined) => Promise<Json>;

/** One target of Chromium's debugging protocol: commands out, events in by their method name. */
export class CdpSession extends EventEmitter {
  readonly #send: Send;
  readonly #id: string | undefined;

  constructor(send: Send, id: string | undefined) {
    super();
    this.setMaxListeners(0);
    this.#send = send;
    this.#id = id;
  }

  send(method: string, params: Json = {}): Promise<Json> {
    return this.#send(method, params, this.#id);
  }
}

/** The browser's own target, and the sessions below it on the same socket. */
export class Cdp extends CdpSession {
  readonly #sessions = new Map<string, CdpSession>();
  readonly #sendTo: Send;

  static async connect(url: string): Promise<Cdp> {
    const socket = new WebSocket(url);
    await new Promise<void>((resolve, reject) => {
      socket.onopen = () => resolve();
      socket.onerror = () => reject(new Error('cannot reach the browser'));
    });
    const waiting = new Map<
      number,
      { resolve: (value: Json) => void; reject: (error: Error) => void; method: string }
    >();
    let lastId = 0;
    const send: Send = (method, params, sessionId) =>
      new Promise((resolve, reject) => {
        if (socket.readyState !== WebSocket.OPEN) return reject(new Error(`the browser is gone (${method})`));
        lastId += 1;
        waiting.set(lastId, { resolve, reject, method });
        socket.send(JSON.stringify({ id: lastId, method, params, ...(sessionId ? { sessionId } : {}) }));
      });
    const cdp = new Cdp(send);
    socket.onmessage = (event) => {
      const message = JSON.parse(String(event.data)) as Message;
      if (message.id === undefined) return cdp.#deliver(message);
      const call = waiting.get(message.id);
      waiting.delete(message.id);
      if (message.error) call?.reject(new Error(`${call.method}: ${message.error.message}`));
      else call?.resolve(message.result ?? {});
    };
    socket.onclose = () => {
      for (const { reject, method } of waiting.values()) reject(new Error(`the browser is gone (${method})`));
      waiting.clear();
      cdp.emit('disconnected');
    };
    return cdp;
  }

  private constructor(send: Send) {
    super(send, undefined);
    this.#sendTo = send;
  }

  session(id: string): CdpSession {
    const session = new CdpSession(this.#sendTo, id);
    this.#sessions.set(id, session);
    return session;
  }

  #deliver({ method, params, sessionId }: Message): void {
    const to = sessionId === undefined ? this : this.#sessions.get(sessionId);
    if (method) to?.emit(method, params);
  }
}

export interface Chromium {
  readonly child: ChildProcess;
  readonly endpoint: string;
  readonly cdp: Cdp;
}

const BINARIES = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];

export async function launchChromium(switches: readonly string[]): Promise<Chromium> {
  const binary = process.env.STANDIN_CHROMIUM ?? BINARIES.find((file) => existsSync(file));
  if (!binary) throw new Error('the Electron stand-in needs Chromium; set STANDIN_CHROMIUM');
  const profile = mkdtempSync(path.join(tmpdir(), 'standin-chromium-'));
  const child = spawn(
    binary,
    [
      '--headless',
      '--remote-debugging-port=0',
      `--user-data-dir=${profile}`,
      '--no-first-run',
      '--no-default-browser-check',
      '--disable-gpu',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-extensions',
      '--disable-dev-shm-usage',
      '--disable-background-timer-throttling',
      '--disable-renderer-backgrounding',
      '--disable-backgrounding-occluded-windows',
      '--disable-popup-blocking',
      '--password-store=basic',
      '--force-color-profile=srgb',
      ...(process.getuid?.() === 0 ? ['--no-sandbox'] : []),
      ...switches,
      'about:blank',
    ],
    { stdio: ['ignore', 'ignore', 'pipe'] },
  );
  process.on('exit', () => {
    child.kill('SIGKILL');
    rmSync(profile, { recursive: true, force: true, maxRetries: 3 });
  });
  const endpoint = await new Promise<string>((resolve, reject) => {
    let said = '';
    child.stderr.on('data', (chunk: Buffer) => {
      said = (said + chunk.toString()).slice(-65_536);
      const found = /DevTools listening on (ws:\/\/\S+)/.exec(said)?.[1];
      if (found) resolve(found);
    });
    child.once('exit', (code) => reject(new Error(`Chromium ended with ${code}: ${said.slice(-500)}`)));
    child.once('error', reject);
  });
  return { child, endpoint, cdp: await Cdp.connect(endpoint) };
}
