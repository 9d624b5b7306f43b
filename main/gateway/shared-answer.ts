import type { Reply } from './http-reply.ts';
import type { StoredAnswer } from './ports.ts';

/** Largest answer that is kept for replay, and so the largest that a late client can still join. */
export const KEPT_ANSWER_BYTES = 8 * 1024 * 1024;
/** Unsent bytes of an answer too large to keep, before its source is held back. */
const AHEAD_BYTES = 1024 * 1024;

interface Reader {
  readonly reply: Reply;
  /** Index of the next chunk to send, counted from the first ever. */
  next: number;
  blocked: boolean;
}

/**
 * One answer for several clients. What was made so far is kept, so that each reads at its own pace and late ones from the
 * beginning; past 8 MiB nobody can join any more, and the slowest reader holds the source back.
 */
export class SharedAnswer implements Reply {
  readonly #readers = new Set<Reader>();
  readonly #onGone: (() => void)[] = [];
  readonly #onDrain: (() => void)[] = [];
  #status = 0;
  #headers: readonly string[] = [];
  #chunks: Uint8Array[] = [];
  /** Chunks dropped from the front of `#chunks`: sent to everybody, too many to keep. */
  #dropped = 0;
  #bytes = 0;
  #ended = false;
  #cut = false;
  #abandoned = false;
  #heldBack = false;

  /** Told once: the complete answer, or null when there is none worth keeping. */
  readonly #finished: (answer: StoredAnswer | null) => void;

  constructor(finished: (answer: StoredAnswer | null) => void) {
    this.#finished = finished;
  }

  get gone(): boolean {
    return this.#abandoned;
  }

  get headSent(): boolean {
    return this.#status !== 0;
  }

  /** False: too much has been sent to begin again. */
  get joinable(): boolean {
    return !this.#abandoned && !this.#cut && this.#bytes <= KEPT_ANSWER_BYTES;
  }

  join(reply: Reply): void {
    const reader: Reader = { reply, next: 0, blocked: false };
    this.#readers.add(reader);
    reply.onDrain(() => {
      reader.blocked = false;
      this.#pump(reader);
      this.#trim();
      this.#release();
    });
    reply.onGone(() => this.#leave(reader));
    if (this.#status !== 0) reply.head(this.#status, this.#headers);
    this.#pump(reader);
  }

  head(status: number, headers: readonly string[]): void {
    if (this.#status !== 0) return;
    this.#status = status;
    this.#headers = headers;
    for (const { reply } of this.#readers) reply.head(status, headers);
  }

  flush(): void {
    for (const { reply } of this.#readers) reply.flush();
  }

  write(chunk: Uint8Array): boolean {
    if (this.#abandoned || this.#ended) return true;
    this.#chunks.push(chunk);
    this.#bytes += chunk.length;
    for (const reader of this.#readers) this.#pump(reader);
    if (this.#bytes <= KEPT_ANSWER_BYTES) return true;
    this.#trim();
    this.#heldBack = this.#unsentBytes() > AHEAD_BYTES;
    return !this.#heldBack;
  }

  end(chunk?: Uint8Array): void {
    if (this.#abandoned || this.#ended) return;
    if (chunk !== undefined && chunk.length > 0) {
      this.#chunks.push(chunk);
      this.#bytes += chunk.length;
    }
    this.#ended = true;
    for (const reader of this.#readers) this.#pump(reader);
    const whole = this.#bytes <= KEPT_ANSWER_BYTES;
    this.#finished(
      whole ? { status: this.#status, headers: this.#headers, body: Buffer.concat(this.#chunks, this.#bytes) } : null,
    );
  }

  cut(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#cut = true;
    for (const { reply } of this.#readers) reply.cut();
    this.#finished(null);
  }

  onGone(listener: () => void): void {
    if (this.#abandoned) listener();
    else this.#onGone.push(listener);
  }

  onDrain(listener: () => void): void {
    this.#onDrain.push(listener);
  }

  #pump(reader: Reader): void {
    while (!reader.blocked && reader.next < this.#dropped + this.#chunks.length) {
      const chunk = this.#chunks[reader.next - this.#dropped];
      reader.next += 1;
      if (chunk !== undefined && !reader.reply.write(chunk)) reader.blocked = true;
    }
    if (this.#ended && !this.#cut && reader.next >= this.#dropped + this.#chunks.length) {
      this.#readers.delete(reader);
      reader.reply.end();
    }
  }

  #leave(reader: Reader): void {
    this.#readers.delete(reader);
    if (this.#ended) return;
    if (this.#readers.size > 0) {
      this.#trim();
      this.#release();
      return;
    }
    this.#abandoned = true;
    this.#chunks = [];
    for (const listener of this.#onGone) listener();
    this.#finished(null);
  }

  #slowest(): number {
    let slowest = this.#dropped + this.#chunks.length;
    for (const reader of this.#readers) slowest = Math.min(slowest, reader.next);
    return slowest;
  }

  #trim(): void {
    if (this.#bytes <= KEPT_ANSWER_BYTES || this.#ended) return;
    const sent = this.#slowest() - this.#dropped;
    this.#chunks.splice(0, sent);
    this.#dropped += sent;
  }

  #unsentBytes(): number {
    return this.#chunks.reduce((sum, chunk) => sum + chunk.length, 0);
  }

  #release(): void {
    if (!this.#heldBack || this.#unsentBytes() > AHEAD_BYTES) return;
    this.#heldBack = false;
    for (const listener of this.#onDrain) listener();
  }
}
