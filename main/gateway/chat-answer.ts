import type { SwitchyardError } from '../domain/errors.ts';
import type { ChatSink, Route, RunningChat, WorkUsage } from '../domain/work.ts';
import { errorBody, errorHeaders, streamErrorEvent } from './errors.ts';
import type { Reply } from './http-reply.ts';
import { routeHeaders } from './request-context.ts';

/** A whole answer is held back up to here, so that a late failure can still be told as one. */
const HELD_BYTES = 1024 * 1024;

/** What an agent says of its engine's head is checked: HTTP refuses to send the rest with an exception, which nobody would catch. */
const SENDABLE = /^[\x20-\x7e]+$/;
const EVENTS = 'text/event-stream';
const JSON_TYPE = 'application/json';

/**
 * Passes one chat answer on. A stream goes out as it comes; a whole answer is held until it is complete (or 1 MiB long) and
 * then sent in one write with its length.
 */
export class ChatAnswer implements ChatSink {
  readonly #reply: Reply;
  readonly #stream: boolean;
  readonly #steeringHeaders: readonly string[];
  readonly #settle: (usage: WorkUsage | null) => void;
  #running: RunningChat | null = null;
  #head: { readonly status: number; readonly headers: string[] } | null = null;
  #headSent = false;
  #held: Uint8Array[] = [];
  #heldBytes = 0;
  #over = false;
  #endsEvent = true;

  /** @param settle told the usage once an answer has begun and ended, of what was given where it broke off; null: nobody can say. */
  constructor(
    reply: Reply,
    stream: boolean,
    steeringHeaders: readonly string[],
    settle: (usage: WorkUsage | null) => void,
  ) {
    this.#reply = reply;
    this.#stream = stream;
    this.#steeringHeaders = steeringHeaders;
    this.#settle = settle;
  }

  /** The client's end reaches the work from here on: gone cancels, taking bytes again resumes. */
  attach(running: RunningChat): void {
    this.#running = running;
    if (this.#over) return;
    this.#reply.onDrain(() => running.resume());
    this.#reply.onGone(() => this.#cancel());
  }

  onHead(route: Route, head: { readonly status: number; readonly contentType: string }): void {
    const type = SENDABLE.test(head.contentType) ? head.contentType : this.#stream ? EVENTS : JSON_TYPE;
    const headers = ['content-type', type, ...routeHeaders(route), ...this.#steeringHeaders];
    this.#head = { status: head.status >= 200 && head.status <= 203 ? head.status : 200, headers };
    if (!this.#stream) return;
    headers.push('cache-control', 'no-cache', 'x-accel-buffering', 'no');
    // The first event mostly follows in the same tick and shares the packet. If not, the client learns now that it is served.
    setImmediate(() => {
      if (this.#headSent || this.#over) return;
      this.#sendHead();
      this.#reply.flush();
    });
  }

  onData(chunk: Uint8Array): boolean {
    if (this.#over || chunk.length === 0) return true;
    if (this.#stream) {
      this.#sendHead();
      this.#endsEvent = chunk[chunk.length - 1] === 0x0a;
      return this.#reply.write(chunk);
    }
    if (this.#headSent) return this.#reply.write(chunk);
    this.#held.push(chunk);
    this.#heldBytes += chunk.length;
    if (this.#heldBytes <= HELD_BYTES) return true;
    this.#sendHead();
    let flowing = true;
    for (const held of this.#held.splice(0)) flowing = this.#reply.write(held);
    return flowing;
  }

  onEnd(usage: WorkUsage | null): void {
    if (this.#over) return;
    this.#over = true;
    this.#settle(usage);
    if (this.#stream || this.#headSent) {
      this.#sendHead();
      this.#reply.end();
      return;
    }
    const body = this.#held.length === 1 ? this.#held[0] : Buffer.concat(this.#held, this.#heldBytes);
    this.#head?.headers.push('content-length', String(this.#heldBytes));
    this.#sendHead();
    this.#reply.end(body);
  }

  onFailure(error: SwitchyardError): void {
    if (this.#over) return;
    this.#over = true;
    if (this.#head !== null) this.#settle(this.#running?.usage ?? null);
    if (!this.#headSent) {
      const body = Buffer.from(errorBody(error, 'openai'));
      const headers = [...errorHeaders(error), 'content-length', String(body.length), ...this.#steeringHeaders];
      this.#reply.head(error.status, headers);
      this.#reply.end(body);
    } else if (this.#stream) {
      this.#reply.end(Buffer.from(`${this.#endsEvent ? '' : '\n\n'}${streamErrorEvent(error)}`));
    } else this.#reply.cut();
  }

  #sendHead(): void {
    if (this.#headSent || this.#head === null) return;
    this.#headSent = true;
    this.#reply.head(this.#head.status, this.#head.headers);
  }

  #cancel(): void {
    if (this.#over) return;
    this.#over = true;
    this.#held = [];
    if (this.#head !== null) this.#settle(this.#running?.usage ?? null);
    this.#running?.cancel();
  }
}
