import { Connection, type SocketWatch } from './connection.ts';

export type { Connection, SocketWatch } from './connection.ts';

/** As many as calls come back at once in a burst: to open a socket anew is dearer than to keep it until the engine closes it. */
const IDLE_KEPT = 256;

/** Connections of one engine: as many as requests run at once; idle ones are used again, the latest first. */
export class Connections {
  readonly #origin: string;
  readonly #watch: SocketWatch;
  readonly #idle: Connection[] = [];
  readonly #all = new Set<Connection>();
  /** Idle ones beyond this are closed. */
  readonly #keep: number;
  #closed = false;

  constructor(origin: string, watch: SocketWatch, keep = IDLE_KEPT) {
    this.#origin = origin;
    this.#watch = watch;
    this.#keep = keep;
  }

  take(): Connection {
    const idle = this.#idle.pop();
    if (idle !== undefined) return idle;
    const connection = new Connection(this.#origin, this.#watch);
    this.#all.add(connection);
    return connection;
  }

  /** Back after its exchange has settled. */
  give(connection: Connection): void {
    const usable = !this.#closed && !connection.destroyed && this.#idle.length < this.#keep;
    if (usable) this.#idle.push(connection);
    else this.drop(connection);
  }

  drop(connection: Connection): void {
    this.#all.delete(connection);
    connection.destroy();
  }

  get size(): number {
    return this.#all.size;
  }

  close(): void {
    this.#closed = true;
    for (const connection of this.#all) connection.destroy();
    this.#all.clear();
    this.#idle.length = 0;
  }
}
