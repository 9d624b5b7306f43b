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

/** `connecting` before the first answer, `lost` while it is tried again, `ended` until somebody signs in. */
export type Connection = 'connecting' | 'live' | 'lost' | 'ended';

/** The console's way to the control plane. Two make it: the preload bridge of the desktop, and HTTP with one WebSocket. */
export interface Transport {
  readonly shell: 'desktop' | 'browser';
  /** Rejects with `CallError` and nothing else. */
  call<Name extends OperationName>(name: Name, input: Input<Name>): Promise<Output<Name>>;
  /** Takes over the bytes and zeroes them before it resolves or rejects. */
  pushCloudKey(bytes: Uint8Array, push: KeyPush): Promise<CloudView>;
  /** The topics wanted from now on, all of them; each begins with a snapshot. */
  want(topics: readonly TopicName[]): void;
  onUpdate(listener: (update: TopicUpdate) => void): () => void;
  onConnection(listener: (connection: Connection) => void): () => void;
  /** Opens a new session with the admin token, which is kept nowhere; null where nobody signs in. */
  readonly signIn: ((adminToken: string) => Promise<void>) | null;
  onShow(listener: (page: PageId, target: string | null) => void): () => void;
  start(): Promise<void>;
  stop(): void;
}

/** A refused or failed operation: a stable code, and our own sentence where there is one, in English and as code and figures. */
export class CallError extends Error {
  readonly code: string;
  readonly detail: string | null;
  readonly says: Says | null;

  constructor(code: string, detail: string | null = null, says: Says | null | undefined = null) {
    super(code);
    this.name = 'CallError';
    this.code = code;
    this.detail = detail;
    this.says = says ?? null;
  }
}

/** A small set of listeners; `add` returns its own removal. */
export class Listeners<Args extends readonly unknown[]> {
  readonly #all = new Set<(...args: Args) => void>();

  add(listener: (...args: Args) => void): () => void {
    this.#all.add(listener);
    return () => {
      this.#all.delete(listener);
    };
  }

  tell(...args: Args): void {
    for (const listener of this.#all) listener(...args);
  }
}
