import { EventEmitter } from 'node:events';
import { Protocol } from './scheme-server.ts';

interface RequestDetails {
  readonly url: string;
  readonly method: string;
  readonly resourceType: string;
}
type AskPermission = (contents: unknown, permission: string, answer: (granted: boolean) => void) => void;
type BeforeRequest = (details: RequestDetails, answer: (response: { cancel?: boolean }) => void) => void;

export class Session extends EventEmitter {
  readonly protocol = new Protocol();
  #beforeRequest: BeforeRequest | null = null;
  #permissions: AskPermission | null = null;
  readonly webRequest = {
    onBeforeRequest: (listener: BeforeRequest | null) => {
      this.#beforeRequest = listener;
    },
  };

  setPermissionRequestHandler(handler: AskPermission | null): void {
    this.#permissions = handler;
  }

  setPermissionCheckHandler(_handler: unknown): void {}

  setDevicePermissionHandler(_handler: unknown): void {}

  setDisplayMediaRequestHandler(_handler: unknown): void {}

  /** May a request of a page go out? */
  async _admits(details: RequestDetails): Promise<boolean> {
    const listener = this.#beforeRequest;
    if (!listener) return true;
    return new Promise((resolve) => listener(details, ({ cancel }) => resolve(cancel !== true)));
  }

  /** Chromium grants nothing by itself when headless; a test asks the handler directly. */
  async _grants(permission: string): Promise<boolean> {
    const handler = this.#permissions;
    if (!handler) return true;
    return new Promise((resolve) => handler(null, permission, resolve));
  }
}

const partitions = new Map<string, Session>();
const standard = new Session();
export const session = {
  defaultSession: standard,
  fromPartition: (partition: string): Session => {
    let found = partitions.get(partition);
    if (!found) {
      found = new Session();
      partitions.set(partition, found);
    }
    return found;
  },
};
