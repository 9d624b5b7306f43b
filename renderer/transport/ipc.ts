import type {
  Answer,
  CloudView,
  ConsoleBridge,
  Input,
  KeyPush,
  OperationName,
  Output,
  PageId,
  TopicName,
  TopicUpdate,
} from '../../preload/contract.ts';
import { CallError, type Connection, Listeners, type Transport } from './port.ts';

/** The desktop's transport: what the preload script exposed. The main process is there or the window is gone. */
export class IpcTransport implements Transport {
  readonly shell = 'desktop';
  readonly signIn = null;
  readonly #bridge: ConsoleBridge;
  readonly #connection = new Listeners<[Connection]>();

  constructor(bridge: ConsoleBridge) {
    this.#bridge = bridge;
  }

  async start(): Promise<void> {
    this.#connection.tell('live');
  }

  stop(): void {
    this.#bridge.want([]);
  }

  async call<Name extends OperationName>(name: Name, input: Input<Name>): Promise<Output<Name>> {
    return (await this.#settle(this.#bridge.call(name, input))) as Output<Name>;
  }

  async pushCloudKey(bytes: Uint8Array, push: KeyPush): Promise<CloudView> {
    try {
      return (await this.#settle(this.#bridge.pushCloudKey(bytes, push))) as CloudView;
    } finally {
      bytes.fill(0);
    }
  }

  want(topics: readonly TopicName[]): void {
    this.#bridge.want(topics);
  }

  onUpdate(listener: (update: TopicUpdate) => void): () => void {
    return this.#bridge.onUpdate(listener);
  }

  onConnection(listener: (connection: Connection) => void): () => void {
    return this.#connection.add(listener);
  }

  onShow(listener: (page: PageId, target: string | null) => void): () => void {
    return this.#bridge.onShow(listener);
  }

  async #settle(pending: Promise<Answer>): Promise<unknown> {
    let answer: Answer;
    try {
      answer = await pending;
    } catch {
      throw new CallError('console_disconnected');
    }
    if (answer.ok) return answer.value;
    throw new CallError(answer.code, answer.detail, answer.says);
  }
}
