import { randomUUID } from 'node:crypto';
import { EventEmitter } from 'node:events';
import { readFileSync } from 'node:fs';
import type { CdpSession } from '../cdp.ts';
import { makeCodec } from '../codec.ts';
import { FROM_NODE, pageWorldSource, preloadWorldSource, TO_NODE, WORLD } from '../page-side.ts';
import { allowed, PreventableEvent } from './events.ts';
import { ipcMain } from './ipc-main.ts';
import { fromReal, toReal } from './scheme-server.ts';
import { type Session, session } from './session.ts';
import { chromium, state } from './state.ts';

export interface Preferences {
  readonly preload?: string;
  readonly partition?: string;
  readonly sandbox?: boolean;
  readonly contextIsolation?: boolean;
  readonly nodeIntegration?: boolean;
  readonly webviewTag?: boolean;
}
interface PausedRequest {
  readonly requestId: string;
  readonly frameId: string;
  readonly resourceType: string;
  readonly request: { readonly url: string; readonly method: string };
}
type OpenHandler = (details: { url: string }) => { action: 'allow' | 'deny' };

const codec = makeCodec();

export const contentsOfTarget = (targetId: string): WebContents | undefined =>
  [...state.contents.values()].find((contents) => contents._targetId === targetId);

/** Downloads are told to the session of the page that began them, and cancelled when it says so. */
export async function watchDownloads(): Promise<void> {
  const { cdp } = chromium();
  await cdp.send('Browser.setDownloadBehavior', { behavior: 'allow', downloadPath: '/tmp', eventsEnabled: true });
  cdp.on(
    'Browser.downloadWillBegin',
    (begun: { frameId: string; guid: string; url: string; suggestedFilename: string }) => {
      const contents = contentsOfTarget(begun.frameId);
      const item = { getURL: () => fromReal(begun.url), getFilename: () => begun.suggestedFilename };
      if (contents && allowed(contents.session, 'will-download', {}, item, contents)) return;
      void cdp.send('Browser.cancelDownload', { guid: begun.guid }).catch(() => undefined);
    },
  );
}

export class WebContents extends EventEmitter {
  readonly id = state.nextId++;
  readonly session: Session;
  _targetId: string | null = null;
  readonly #preferences: Preferences;
  readonly #onGone: () => void;
  readonly #opened: Promise<void>;
  #page: CdpSession | null = null;
  #context: number | null = null;
  #queue: string[] = [];
  #flushing = false;
  #gone = false;
  #url = '';
  #own: string | null = null;
  #openHandler: OpenHandler | null = null;
  #opening = '';

  static getAllWebContents(): WebContents[] {
    return [...state.contents.values()];
  }

  static fromId(id: number): WebContents | undefined {
    return state.contents.get(id);
  }

  constructor(preferences: Preferences, size: { width: number; height: number }, onGone: () => void) {
    super();
    if (
      preferences.sandbox === false ||
      preferences.contextIsolation === false ||
      preferences.nodeIntegration ||
      preferences.webviewTag
    ) {
      throw new Error('the Electron stand-in knows only sandboxed, isolated pages');
    }
    this.#preferences = preferences;
    this.#onGone = onGone;
    this.session = preferences.partition ? session.fromPartition(preferences.partition) : session.defaultSession;
    state.contents.set(this.id, this);
    this.#opened = this.#open(size);
    this.#opened.catch(() => this._gone());
  }

  get mainFrame() {
    const url = this.getURL();
    const origin = /^[a-z][a-z0-9+.-]*:\/\/[^/]*/i.exec(url)?.[0] ?? 'null';
    return { url, origin, parent: null, frameTreeNodeId: 1, processId: 1, routingId: 1 };
  }

  getURL(): string {
    return fromReal(this.#url);
  }

  isDestroyed(): boolean {
    return this.#gone;
  }

  setWindowOpenHandler(handler: OpenHandler): void {
    this.#openHandler = handler;
  }

  send(channel: string, ...args: unknown[]): void {
    this.#push(codec.encode({ do: 'event', channel, args }));
  }

  async loadURL(url: string): Promise<void> {
    await this.#opened;
    const loaded = new Promise<void>((resolve) => this.once('did-finish-load', () => resolve()));
    this.#own = toReal(url);
    const { errorText } = (await this.#page?.send('Page.navigate', { url: this.#own })) ?? {};
    if (errorText) throw new Error(String(errorText));
    await loaded;
  }

  reload(): void {
    void this.#page?.send('Page.reload').catch(() => undefined);
  }

  async executeJavaScript(code: string): Promise<unknown> {
    const answer = await this.#page?.send('Runtime.evaluate', {
      expression: code,
      awaitPromise: true,
      returnByValue: true,
    });
    return (answer?.result as { value?: unknown } | undefined)?.value;
  }

  forcefullyCrashRenderer(): void {
    void this.#page?.send('Page.crash').catch(() => undefined);
  }

  _close(): void {
    if (this.#gone) return;
    const target = this._targetId;
    this._gone();
    if (target && !state.exiting)
      void chromium()
        .cdp.send('Target.closeTarget', { targetId: target })
        .catch(() => undefined);
  }

  _gone(): void {
    if (this.#gone) return;
    this.#gone = true;
    state.contents.delete(this.id);
    this.emit('destroyed');
    this.#onGone();
  }

  _crashed(status: string): void {
    this.#context = null;
    this.#queue = [];
    this.emit('render-process-gone', new PreventableEvent(), {
      reason: status === 'killed' ? 'killed' : 'crashed',
      exitCode: 1,
    });
  }

  /** A page of Chromium's that this page opened: the handler decides, and no window of its own ever comes. */
  _opened(target: { targetId: string }): void {
    this.#openHandler?.({ url: fromReal(this.#opening) });
    void chromium()
      .cdp.send('Target.closeTarget', { targetId: target.targetId })
      .catch(() => undefined);
  }

  async #open({ width, height }: { width: number; height: number }): Promise<void> {
    const { cdp } = chromium();
    const first = state.firstTarget;
    state.firstTarget = null;
    const targetId =
      first ??
      String((await cdp.send('Target.createTarget', { url: 'about:blank', newWindow: true, width, height })).targetId);
    this._targetId = targetId;
    const { sessionId } = await cdp.send('Target.attachToTarget', { targetId, flatten: true });
    const page = cdp.session(String(sessionId));
    this.#page = page;
    this.#listen(page, targetId);
    const preload = this.#preferences.preload ? readFileSync(this.#preferences.preload, 'utf8') : '';
    const token = randomUUID();
    await Promise.all([
      page.send('Page.enable'),
      page.send('Runtime.addBinding', { name: TO_NODE, executionContextName: WORLD }),
      page.send('Runtime.enable'),
      page.send('Page.addScriptToEvaluateOnNewDocument', { source: pageWorldSource(token) }),
      page.send('Page.addScriptToEvaluateOnNewDocument', {
        source: preloadWorldSource(token, preload),
        worldName: WORLD,
      }),
      page.send('Fetch.enable', { patterns: [{ urlPattern: '*' }] }),
      page.send('Emulation.setDeviceMetricsOverride', { width, height, deviceScaleFactor: 1, mobile: false }),
    ]);
  }

  #listen(page: CdpSession, targetId: string): void {
    page.on('Runtime.executionContextCreated', ({ context }) => {
      if (context.name !== WORLD || context.auxData?.frameId !== targetId) return;
      this.#context = context.id;
      void this.#flush();
    });
    page.on('Runtime.executionContextDestroyed', ({ executionContextId }) => {
      if (executionContextId === this.#context) this.#context = null;
    });
    page.on('Runtime.executionContextsCleared', () => {
      this.#context = null;
    });
    page.on('Runtime.bindingCalled', ({ name, payload, executionContextId }) => {
      if (name === TO_NODE) void this.#hear(payload, executionContextId);
    });
    page.on('Page.frameNavigated', ({ frame }) => {
      if (frame.parentId) return;
      this.#url = frame.url;
      this.emit('did-navigate', new PreventableEvent(), this.getURL(), 200, 'OK');
    });
    page.on('Page.navigatedWithinDocument', ({ frameId, url }) => {
      if (frameId === targetId) this.#url = url;
    });
    page.on('Page.domContentEventFired', () => {
      if (this.#url === 'about:blank') return;
      this.emit('dom-ready', new PreventableEvent());
    });
    page.on('Page.loadEventFired', () => {
      if (this.#url !== 'about:blank') this.emit('did-finish-load', new PreventableEvent());
    });
    page.on('Page.windowOpen', ({ url }) => {
      this.#opening = url;
    });
    page.on('Fetch.requestPaused', (paused: PausedRequest) => void this.#decide(page, paused, targetId));
  }

  async #decide(page: CdpSession, paused: PausedRequest, targetId: string): Promise<void> {
    const url = fromReal(paused.request.url);
    const isDocument = paused.resourceType === 'Document';
    const isMainFrame = paused.frameId === targetId;
    if (isDocument && isMainFrame) {
      const byApp = paused.request.url === this.#own;
      const details = { url, isMainFrame, isSameDocument: false };
      if (!byApp && !allowed(this, 'will-navigate', details, url)) return this.#refuse(page, paused);
      this.emit('did-start-navigation', new PreventableEvent(details));
    } else if (isDocument && !allowed(this, 'will-frame-navigate', { url, isMainFrame }))
      return this.#refuse(page, paused);
    const admitted = await this.session._admits({
      url,
      method: paused.request.method,
      resourceType: paused.resourceType,
    });
    if (!admitted) return this.#refuse(page, paused);
    await page.send('Fetch.continueRequest', { requestId: paused.requestId }).catch(() => undefined);
  }

  /** An aborted document leaves the page as it is; anything else would put an error page in its place. */
  async #refuse(page: CdpSession, { requestId, resourceType }: PausedRequest): Promise<void> {
    const errorReason = resourceType === 'Document' ? 'Aborted' : 'BlockedByClient';
    await page.send('Fetch.failRequest', { requestId, errorReason }).catch(() => undefined);
  }

  async #hear(payload: string, contextId: number): Promise<void> {
    const message = codec.decode(payload) as {
      do: string;
      call?: number;
      channel: string;
      args: unknown[];
      error?: unknown;
    };
    const event = new PreventableEvent({ sender: this, senderFrame: this.mainFrame, processId: 1, frameId: 1 });
    if (message.do === 'open') {
      this.#openHandler?.({ url: fromReal(String(message.args[0])) });
      return;
    }
    if (message.do === 'preload-error') {
      this.emit('preload-error', event, this.#preferences.preload, message.error);
      return;
    }
    if (message.do === 'send') {
      ipcMain.emit(message.channel, event, ...message.args);
      return;
    }
    let answer: string;
    try {
      const value = await ipcMain._handler(message.channel)(event, ...message.args);
      answer = codec.encode({ do: 'answer', call: message.call, ok: true, value });
    } catch (error) {
      answer = codec.encode({ do: 'answer', call: message.call, ok: false, error: String(error) });
    }
    if (contextId === this.#context) this.#push(answer);
  }

  #push(text: string): void {
    if (this.#gone) return;
    this.#queue.push(text);
    void this.#flush();
  }

  /** What waits goes over in one evaluation; more is gathered while that runs. */
  async #flush(): Promise<void> {
    if (this.#flushing) return;
    this.#flushing = true;
    while (this.#queue.length > 0 && this.#context !== null) {
      const batch = this.#queue.splice(0);
      await this.#page
        ?.send('Runtime.evaluate', {
          expression: `globalThis.${FROM_NODE}?.(${JSON.stringify(batch)})`,
          contextId: this.#context,
          silent: true,
        })
        .catch(() => undefined);
    }
    this.#flushing = false;
  }
}
