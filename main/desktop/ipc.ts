import type { IpcMain, IpcMainEvent, IpcMainInvokeEvent, WebContents } from 'electron';
import {
  type Answer,
  CHANNELS,
  Feed,
  KEY_BYTES,
  KeyPush,
  type PageId,
  TOPIC_NAMES,
  type TopicName,
} from '../../preload/contract.ts';
import { ERRORS, SwitchyardError } from '../domain/errors.ts';
import { told } from '../domain/said.ts';
import { APP_ORIGIN } from './policy.ts';
import type { After, DesktopPlane } from './ports.ts';

/** White space around a pasted key is cut in the page; this much is let through to be refused with its own code. */
const MOST_KEY_BYTES = KEY_BYTES.max + 64;

export interface IpcPorts {
  readonly ipcMain: Pick<IpcMain, 'handle' | 'on' | 'removeHandler' | 'removeAllListeners'>;
  /** Resolves when the control plane serves; rejects when it could not start. */
  readonly plane: Promise<DesktopPlane>;
  readonly after: After;
}

interface Reader {
  readonly feed: Feed;
  unsubscribe: () => void;
  /** Newest wish: an older one that still waits for the control plane is dropped. */
  wish: number;
}

/**
 * The one wrapper around IPC. A message counts only from the main frame of a window that was admitted, showing our own page;
 * inputs are checked by the operations' schemas; what goes back is a value of the contract, or a code.
 */
export class ConsoleIpc {
  readonly #ports: IpcPorts;
  readonly #readers = new Map<WebContents, Reader>();

  constructor(ports: IpcPorts) {
    this.#ports = ports;
  }

  start(): void {
    const { ipcMain } = this.#ports;
    ipcMain.handle(CHANNELS.call, (event, name: unknown, input: unknown) =>
      this.#answer(event, async () => {
        if (typeof name !== 'string') throw new SwitchyardError('invalid_request');
        return (await this.#ports.plane).call(name, input);
      }),
    );
    ipcMain.handle(CHANNELS.cloudKey, (event, bytes: unknown, push: unknown) =>
      this.#answer(event, () => this.#pushKey(bytes, push)),
    );
    ipcMain.on(CHANNELS.want, (event, topics: unknown) => {
      if (this.#admits(event)) void this.#want(event.sender, topics).catch(() => undefined);
    });
  }

  stop(): void {
    const { ipcMain } = this.#ports;
    ipcMain.removeHandler(CHANNELS.call);
    ipcMain.removeHandler(CHANNELS.cloudKey);
    ipcMain.removeAllListeners(CHANNELS.want);
    for (const contents of [...this.#readers.keys()]) this.dismiss(contents);
  }

  /** Lets a window in. */
  admit(contents: WebContents): void {
    const feed = new Feed({
      send: (update) => {
        if (!contents.isDestroyed()) contents.send(CHANNELS.update, update);
      },
      after: this.#ports.after,
    });
    this.#readers.set(contents, { feed, unsubscribe: () => undefined, wish: 0 });
    contents.once('destroyed', () => this.dismiss(contents));
  }

  dismiss(contents: WebContents): void {
    const reader = this.#readers.get(contents);
    if (!reader) return;
    this.#readers.delete(contents);
    reader.unsubscribe();
    reader.feed.close();
  }

  /** A hidden window hears only what is urgent. */
  setHidden(contents: WebContents, hidden: boolean): void {
    this.#readers.get(contents)?.feed.setHidden(hidden);
  }

  /** The page is gone (reload, crash): nothing is sent until it asks anew. */
  forget(contents: WebContents): void {
    const reader = this.#readers.get(contents);
    if (!reader) return;
    reader.wish += 1;
    reader.unsubscribe();
    reader.unsubscribe = () => undefined;
    reader.feed.keep(new Set());
  }

  show(contents: WebContents, page: PageId, target: string | null): void {
    if (!contents.isDestroyed()) contents.send(CHANNELS.show, page, target);
  }

  #admits(event: IpcMainInvokeEvent | IpcMainEvent): boolean {
    const frame = event.senderFrame;
    return frame !== null && frame.parent === null && frame.origin === APP_ORIGIN && this.#readers.has(event.sender);
  }

  async #answer(event: IpcMainInvokeEvent, work: () => Promise<unknown>): Promise<Answer> {
    if (!this.#admits(event)) return { ok: false, code: 'forbidden_origin', detail: null };
    try {
      return { ok: true, value: await work() };
    } catch (error) {
      return refusal(error);
    }
  }

  async #pushKey(bytes: unknown, push: unknown): Promise<unknown> {
    if (!(bytes instanceof Uint8Array)) throw new SwitchyardError('invalid_cloud_key');
    // A buffer of its own: never of the pool, whose memory others share.
    const key = Buffer.allocUnsafeSlow(Math.min(bytes.byteLength, MOST_KEY_BYTES + 1));
    key.set(bytes.subarray(0, key.byteLength));
    bytes.fill(0);
    try {
      const parsed = KeyPush.safeParse(push);
      if (!parsed.success) throw new SwitchyardError('invalid_request');
      if (key.byteLength > MOST_KEY_BYTES) throw new SwitchyardError('invalid_cloud_key');
      const plane = await this.#ports.plane;
      await plane.pushCloudKey(key, parsed.data);
      return await plane.call('cloud.status', {});
    } finally {
      key.fill(0);
    }
  }

  async #want(contents: WebContents, topics: unknown): Promise<void> {
    const reader = this.#readers.get(contents);
    if (!reader || !Array.isArray(topics)) return;
    const wanted = TOPIC_NAMES.filter((name) => topics.includes(name));
    reader.wish += 1;
    const wish = reader.wish;
    const plane = await this.#ports.plane;
    if (reader.wish !== wish || !this.#readers.has(contents)) return;
    reader.unsubscribe();
    reader.feed.keep(new Set<TopicName>(wanted));
    reader.unsubscribe = plane.topics.subscribe(wanted, (update) => reader.feed.push(update));
  }
}

/** Our code, and our sentence where it says more than the code's own. Foreign errors become `internal_error`. */
function refusal(error: unknown): Answer {
  if (!(error instanceof SwitchyardError)) return { ok: false, code: 'internal_error', detail: null };
  const usual = ERRORS[error.code].sentence;
  const { says } = error;
  return {
    ok: false,
    code: error.code,
    detail: error.message === usual ? null : error.message,
    ...(says ? { says: told(says).says } : {}),
  };
}
