import { BROWSER } from '../../preload/contract/browser-names.ts';
import { TOPIC_KINDS } from '../../preload/contract/names.ts';
import type {
  CloudView,
  Input,
  KeyPush,
  OperationName,
  Output,
  PageId,
  Says,
  TopicName,
  TopicUpdate,
} from '../../preload/contract.ts';
import { CallError, type Connection, Listeners, type Transport } from './port.ts';

const TOKEN = 'switchyard.session';
/** The token is no longer good: somebody has to sign in, or bring a new address. */
const ENDS_SESSION: ReadonlySet<string> = new Set(['invalid_admin_token', 'invalid_ticket', 'tls_required']);
/** What can stand in a header at all; anything else is no token, and `fetch` would quote it in its error. */
const TOKEN_CHARACTERS = /^[\x21-\x7e]{1,512}$/;
const FIRST_RETRY_MS = 500;
const LONGEST_RETRY_MS = 10_000;

/** What the browser gives; handed in so that a test can script it. */
export interface BrowserPorts {
  readonly location: { readonly origin: string; readonly hash: string };
  readonly replaceHash: (hash: string) => void;
  readonly storage: Pick<Storage, 'getItem' | 'setItem' | 'removeItem'>;
  readonly fetch: typeof fetch;
  readonly openSocket: (url: string, protocols: string[]) => WebSocket;
  readonly after: (delayMs: number, callback: () => void) => () => void;
  /** Calls back when the tab is hidden or shown. */
  readonly onVisible: (listener: (visible: boolean) => void) => () => void;
  /** Calls back when another fragment stands in the address of the same page. */
  readonly onHash: (listener: () => void) => () => void;
}

interface RequestOptions {
  readonly method: string;
  readonly json?: unknown;
  readonly bytes?: Uint8Array;
}

/**
 * The browser's transport. The single-use ticket of the address, or the admin token that somebody enters, becomes a session token in
 * sessionStorage (one tab, gone with it); nothing is kept in cookies, which would be shared over all ports of the host.
 */
export class BrowserTransport implements Transport {
  readonly shell = 'browser';
  readonly #ports: BrowserPorts;
  readonly #updates = new Listeners<[TopicUpdate]>();
  readonly #connection = new Listeners<[Connection]>();
  #topics: readonly TopicName[] = [];
  #socket: WebSocket | null = null;
  #cancelRetry: (() => void) | null = null;
  #forgetPage: (() => void)[] = [];
  #retryMs = FIRST_RETRY_MS;
  #running = false;

  constructor(ports: BrowserPorts) {
    this.#ports = ports;
  }

  async start(): Promise<void> {
    this.#running = true;
    this.#forgetPage = [
      this.#ports.onVisible((visible) => this.#send({ type: 'visible', visible })),
      // A new address in the same tab changes only the fragment: the page is not loaded again.
      this.#ports.onHash(() => void this.#enterByTicket()),
    ];
    if (!(await this.#enterByTicket())) await this.#connect();
  }

  stop(): void {
    this.#running = false;
    this.#cancelRetry?.();
    for (const forget of this.#forgetPage.splice(0)) forget();
    this.#socket?.close();
    this.#socket = null;
  }

  async call<Name extends OperationName>(name: Name, input: Input<Name>): Promise<Output<Name>> {
    const options = { method: 'POST', json: input } as const;
    return (await this.#asSession(`${BROWSER.call}/${name}`, options)) as Output<Name>;
  }

  readonly signIn = async (adminToken: string): Promise<void> => {
    const typed = adminToken.trim();
    if (!TOKEN_CHARACTERS.test(typed)) throw new CallError('invalid_admin_token');
    this.#keep(await this.#request(BROWSER.signIn, { method: 'POST' }, typed));
    await this.#connect();
  };

  async pushCloudKey(bytes: Uint8Array, push: KeyPush): Promise<CloudView> {
    const query = new URLSearchParams();
    if (push.nodeIds) query.set('nodes', push.nodeIds.join(','));
    if (push.remember) query.set('remember', '1');
    const path = query.size > 0 ? `${BROWSER.cloudKey}?${query}` : BROWSER.cloudKey;
    try {
      return (await this.#asSession(path, { method: 'PUT', bytes })) as CloudView;
    } finally {
      bytes.fill(0);
    }
  }

  want(topics: readonly TopicName[]): void {
    this.#topics = topics;
    this.#send({ type: 'want', topics });
  }

  onUpdate(listener: (update: TopicUpdate) => void): () => void {
    return this.#updates.add(listener);
  }

  onConnection(listener: (connection: Connection) => void): () => void {
    return this.#connection.add(listener);
  }

  onShow(_listener: (page: PageId, target: string | null) => void): () => void {
    return () => undefined; // nothing outside a tab asks it to show a page
  }

  #token(): string | null {
    return this.#ports.storage.getItem(TOKEN);
  }

  #keep(answer: unknown): void {
    const { token } = (answer ?? {}) as { token?: unknown };
    if (typeof token === 'string') this.#ports.storage.setItem(TOKEN, token);
  }

  /**
   * A ticket that was used or is too old leaves the token there is; without one the next request says that all is over.
   *
   * @returns false when the address carries no ticket.
   */
  async #enterByTicket(): Promise<boolean> {
    const ticket = new URLSearchParams(this.#ports.location.hash.slice(1)).get('ticket');
    if (!ticket) return false;
    // Out of the address bar and the history before anything else happens.
    this.#ports.replaceHash('');
    try {
      this.#keep(await this.#request(BROWSER.session, { method: 'POST', json: { ticket } }, null));
    } catch (error) {
      if (!(error instanceof CallError)) throw error;
    }
    await this.#connect();
    return true;
  }

  #end(): void {
    this.#ports.storage.removeItem(TOKEN);
    this.#cancelRetry?.();
    const socket = this.#socket;
    this.#socket = null;
    socket?.close();
    this.#connection.tell('ended');
  }

  async #connect(): Promise<void> {
    if (!this.#running) return;
    this.#cancelRetry?.();
    try {
      const answer = await this.#request(BROWSER.socketTicket, { method: 'POST', json: {} }, this.#token());
      const { ticket } = (answer ?? {}) as { ticket?: unknown };
      if (typeof ticket !== 'string') throw new CallError('console_disconnected');
      this.#open(ticket);
    } catch (error) {
      if (error instanceof CallError && ENDS_SESSION.has(error.code)) {
        this.#end();
      } else {
        this.#retry();
      }
    }
  }

  /** A request of the session; a session that is over ends the connection too. */
  async #asSession(path: string, options: RequestOptions): Promise<unknown> {
    try {
      return await this.#request(path, options, this.#token());
    } catch (error) {
      if (error instanceof CallError && ENDS_SESSION.has(error.code)) this.#end();
      throw error;
    }
  }

  #open(ticket: string): void {
    const before = this.#socket;
    this.#socket = null;
    before?.close();
    const url = `${this.#ports.location.origin.replace(/^http/, 'ws')}${BROWSER.socket}`;
    const socket = this.#ports.openSocket(url, [BROWSER.protocol, BROWSER.ticketProtocolPrefix + ticket]);
    this.#socket = socket;
    socket.onopen = () => {
      this.#retryMs = FIRST_RETRY_MS;
      this.#connection.tell('live');
      this.#send({ type: 'want', topics: this.#topics });
    };
    socket.onmessage = (event) => {
      const update = parseUpdate(event.data);
      if (update) this.#updates.tell(update);
    };
    socket.onclose = () => {
      if (this.#socket !== socket) return;
      this.#socket = null;
      this.#retry();
    };
  }

  #retry(): void {
    if (!this.#running) return;
    this.#connection.tell('lost');
    this.#cancelRetry = this.#ports.after(this.#retryMs, () => void this.#connect());
    this.#retryMs = Math.min(this.#retryMs * 2, LONGEST_RETRY_MS);
  }

  #send(message: unknown): void {
    if (this.#socket?.readyState === 1) this.#socket.send(JSON.stringify(message));
  }

  async #request(path: string, options: RequestOptions, token: string | null): Promise<unknown> {
    const headers: Record<string, string> = {
      'content-type': options.bytes ? 'application/octet-stream' : 'application/json',
    };
    if (token) headers.authorization = `Bearer ${token}`;
    let response: Response;
    let body: unknown;
    try {
      response = await this.#ports.fetch(this.#ports.location.origin + path, {
        method: options.method,
        headers,
        body: options.bytes ? new Blob([options.bytes as Uint8Array<ArrayBuffer>]) : JSON.stringify(options.json ?? {}),
        cache: 'no-store',
        redirect: 'error',
      });
      body = response.status === 204 ? null : await response.json();
    } catch {
      throw new CallError('console_disconnected');
    }
    if (response.ok) return body;
    const { error } = (body ?? {}) as { error?: { code?: unknown; message?: unknown; says?: Says } };
    throw new CallError(
      typeof error?.code === 'string' ? error.code : 'internal_error',
      typeof error?.message === 'string' ? error.message : null,
      error?.says,
    );
  }
}

/** Messages of other kinds (a newer server's) are left out. */
function parseUpdate(data: unknown): TopicUpdate | null {
  if (typeof data !== 'string') return null;
  try {
    const message = JSON.parse(data) as { topic?: unknown };
    const known = typeof message.topic === 'string' && Object.hasOwn(TOPIC_KINDS, message.topic);
    return known ? (message as TopicUpdate) : null;
  } catch {
    return null;
  }
}
