import type { ServerResponse } from 'node:http';

/**
 * Where an answer goes: a client's connection, or several clients that share one answer. `head` once, `write` any number,
 * then `end` or `cut`. Nothing happens after the client has gone.
 */
export interface Reply {
  /** @param headers flat name, value; ids, rates and security headers are added by the connection. */
  head(status: number, headers: readonly string[]): void;
  /** Sends the head now, when the first bytes of the body may take long. */
  flush(): void;
  /** @returns false when the reader is slow: wait for `onDrain`. */
  write(chunk: Uint8Array): boolean;
  end(chunk?: Uint8Array): void;
  /** Breaks the connection, so that what arrived cannot be taken for a whole answer. */
  cut(): void;
  readonly gone: boolean;
  readonly headSent: boolean;
  /** Not called after `end`; at once when the client has gone already. */
  onGone(listener: () => void): void;
  onDrain(listener: () => void): void;
}

/** A client that takes nothing for this long while bytes wait for it is cut. */
export const SLOW_READER_MS = 60_000;

/** Node joins head and body to one write where the body is a string; bytes as latin1 stay what they are. */
const JOINED_BYTES = 16 * 1024;

function latin1(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1');
}

/** One client's connection. */
export class HttpReply implements Reply {
  readonly #response: ServerResponse;
  readonly #common: readonly string[];
  readonly #slowReaderMs: number;
  #gone = false;
  #ended = false;
  #blocked = false;
  readonly #onGone: (() => void)[] = [];
  readonly #onDrain: (() => void)[] = [];
  status = 0;
  bytes = 0;

  /** @param common flat headers of every answer on this connection: ids, rates, security. May grow until `head`. */
  constructor(response: ServerResponse, common: readonly string[], slowReaderMs: number) {
    this.#response = response;
    this.#common = common;
    this.#slowReaderMs = slowReaderMs;
    response.on('close', () => {
      this.#gone = true;
      if (!this.#ended) for (const listener of this.#onGone) listener();
    });
    response.on('drain', () => {
      this.#unblock();
      for (const listener of this.#onDrain) listener();
    });
    // A connection that breaks while an answer is written is a client that left; 'close' tells.
    response.on('error', () => undefined);
  }

  get gone(): boolean {
    return this.#gone;
  }

  get headSent(): boolean {
    return this.status !== 0;
  }

  head(status: number, headers: readonly string[]): void {
    if (this.headSent || this.#gone) return;
    this.status = status;
    this.#response.writeHead(status, [...this.#common, ...headers]);
  }

  flush(): void {
    if (!this.#gone && !this.#ended) this.#response.flushHeaders();
  }

  write(chunk: Uint8Array): boolean {
    if (this.#gone || this.#ended) return true;
    this.bytes += chunk.length;
    const flowing = this.#response.write(chunk);
    if (!flowing) this.#block();
    return flowing;
  }

  end(chunk?: Uint8Array): void {
    if (this.#gone || this.#ended) return;
    this.#ended = true;
    const first = this.bytes === 0;
    this.bytes += chunk?.length ?? 0;
    if (chunk === undefined) this.#response.end();
    else if (first && chunk.length <= JOINED_BYTES) this.#response.end(latin1(chunk), 'latin1');
    else this.#response.end(chunk);
    // What the socket still holds may wait for a reader that never comes.
    if (!this.#response.writableFinished && this.#response.writableLength > 0) this.#block();
  }

  cut(): void {
    this.#response.destroy();
  }

  onGone(listener: () => void): void {
    if (this.#gone) listener();
    else this.#onGone.push(listener);
  }

  onDrain(listener: () => void): void {
    this.#onDrain.push(listener);
  }

  /** Node's socket timer counts from the last byte that the kernel took, which is what "takes nothing" means. */
  #block(): void {
    const socket = this.#response.socket;
    if (this.#blocked || socket === null) return;
    this.#blocked = true;
    // Nobody listens for the time-out, so the server destroys the socket.
    socket.setTimeout(this.#slowReaderMs);
  }

  #unblock(): void {
    if (!this.#blocked) return;
    this.#blocked = false;
    this.#response.socket?.setTimeout(0);
  }
}
