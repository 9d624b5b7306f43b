import type { IncomingHttpHeaders } from 'node:http';

/** Hears of one answer: `onHead` once, `onBody` any number, then `onEnd`. */
export interface ResponseSink {
  onHead(status: number, headers: IncomingHttpHeaders): void;
  /** Part of the buffer that was pushed, lent for the call. */
  onBody(chunk: Buffer): void;
  /** `reusable`: the server will take another request on this connection. `keepMs`: how long it says it keeps it idle; null: it does not say. */
  onEnd(reusable: boolean, keepMs: number | null): void;
}

/** What a head says, read. */
interface Head {
  /** As it came, without the blank line. */
  readonly text: string;
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** The real one follows. */
  readonly isInterim: boolean;
  readonly length: number | null;
  readonly isChunked: boolean;
  readonly isEmpty: boolean;
  readonly isReusable: boolean;
  readonly keepMs: number | null;
}

/** The head that was read last on a connection. */
export interface KnownHead {
  head: Head | null;
}

const HEAD = 0;
const LENGTH = 1;
const CHUNK_SIZE = 2;
const CHUNK = 3;
const CHUNK_END = 4;
const TRAILERS = 5;
const UNTIL_CLOSE = 6;
const ENDED = 7;

const MAX_HEAD_BYTES = 32 * 1024;
const MAX_SIZE_LINE_BYTES = 1024;
const CR = 0x0d;
const LF = 0x0a;
const EMPTY = Buffer.alloc(0);
const HEAD_END = Buffer.from('\r\n\r\n');

const STATUS_LINE = /^HTTP\/1\.([01]) ([1-9]\d\d)(?: |$)/;
const NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
/** A line end inside a value would be a header that somebody else reads. */
const PLAIN = /^[\t\x20-\x7e\x80-\xff]*$/;
const DIGITS = /^\d{1,15}$/;
const CHUNK_SIZE_LINE = /^([0-9a-fA-F]{1,8})(?:[\t ]*;[\t\x20-\x7e]+)?$/;

/**
 * Reads one HTTP/1.1 answer as its bytes come, in any pieces (RFC 9112). Lines end in CR LF; lengths that contradict each other,
 * unknown codings and folded lines are refused, since another reader might see another answer in them.
 */
export class ResponseReader {
  readonly #sink: ResponseSink;
  readonly #known: KnownHead;
  #state = HEAD;
  /** Beginning of a head, a size line or trailers, until the rest has come. */
  #pending: Buffer = EMPTY;
  #left = 0;
  #of: Head | null = null;

  /** @param known of the connection: an engine begins its answers alike, and a head that is known is not read again */
  constructor(sink: ResponseSink, known: KnownHead = { head: null }) {
    this.#sink = sink;
    this.#known = known;
  }

  get ended(): boolean {
    return this.#state === ENDED;
  }

  /**
   * Takes bytes from `from` on, as long as `goOn` says so between two pieces of the body.
   * @returns how far it got: all of it unless the answer ended or was held before; -1 when this is no HTTP
   */
  push(bytes: Buffer, from: number, goOn: () => boolean): number {
    let at = from;
    while (at < bytes.length && this.#state !== ENDED) {
      const next = this.#step(bytes, at);
      if (next < 0) return -1;
      at = next;
      if (!goOn()) break;
    }
    return at;
  }

  /** Nobody wants the rest: nothing is told any more. */
  cancel(): void {
    this.#state = ENDED;
  }

  /** The connection ended. @returns false when the answer is cut off by that */
  close(): boolean {
    if (this.#state === UNTIL_CLOSE) this.#end();
    return this.#state === ENDED;
  }

  #step(bytes: Buffer, at: number): number {
    switch (this.#state) {
      case LENGTH:
      case CHUNK: {
        const end = Math.min(bytes.length, at + this.#left);
        this.#left -= end - at;
        const isLast = this.#left === 0;
        const isWhole = isLast && this.#state === LENGTH;
        if (isLast && !isWhole) this.#state = CHUNK_END;
        this.#sink.onBody(at === 0 && end === bytes.length ? bytes : bytes.subarray(at, end));
        if (isWhole && !this.ended) this.#end();
        return end;
      }
      case UNTIL_CLOSE:
        this.#sink.onBody(at === 0 ? bytes : bytes.subarray(at));
        return bytes.length;
      case CHUNK_END:
        return this.#chunkEnd(bytes, at);
      case CHUNK_SIZE:
        return (
          this.#plainSize(bytes, at) ?? this.#line(bytes, at, MAX_SIZE_LINE_BYTES, (line) => this.#chunkSize(line))
        );
      case TRAILERS:
        // Nothing in them is of use here; only their end is.
        return this.#line(bytes, at, MAX_HEAD_BYTES, (line) => {
          if (line === '') this.#end();
          return line === '' || isHeader(line);
        });
      default:
        return this.#head(bytes, at);
    }
  }

  /** CR LF behind the bytes of a chunk. */
  #chunkEnd(bytes: Buffer, at: number): number {
    const wanted = this.#pending.length === 0 ? CR : LF;
    if (bytes[at] !== wanted) return -1;
    if (wanted === CR) this.#pending = Buffer.of(CR);
    else {
      this.#pending = EMPTY;
      this.#state = CHUNK_SIZE;
    }
    return at + 1;
  }

  #line(bytes: Buffer, at: number, most: number, take: (line: string) => boolean): number {
    const lf = bytes.indexOf(LF, at);
    const end = lf < 0 ? bytes.length : lf + 1;
    if (this.#pending.length + end - at > most) return -1;
    if (lf < 0) {
      this.#pending = Buffer.concat([this.#pending, bytes.subarray(at)]);
      return end;
    }
    const before = this.#pending.length === 0 ? '' : this.#pending.toString('latin1');
    const line = before + bytes.toString('latin1', at, end);
    this.#pending = EMPTY;
    if (!line.endsWith('\r\n')) return -1;
    return take(line.slice(0, -2)) ? end : -1;
  }

  /** A size and nothing else, whole in this buffer, as all but a few are; null: it takes a closer look. */
  #plainSize(bytes: Buffer, at: number): number | null {
    if (this.#pending.length > 0) return null;
    let size = 0;
    let end = at;
    for (; end - at < 8; end += 1) {
      const digit = hexDigit(bytes[end] ?? 0);
      if (digit < 0) break;
      size = size * 16 + digit;
    }
    if (end === at || bytes[end] !== CR || bytes[end + 1] !== LF) return null;
    this.#sized(size);
    return end + 2;
  }

  #chunkSize(line: string): boolean {
    const size = CHUNK_SIZE_LINE.exec(line)?.[1];
    if (size === undefined) return false;
    this.#sized(Number.parseInt(size, 16));
    return true;
  }

  #sized(size: number): void {
    this.#left = size;
    this.#state = size === 0 ? TRAILERS : CHUNK;
  }

  #head(bytes: Buffer, at: number): number {
    const had = this.#pending.length;
    // Empty lines before a head: some servers end an answer with one too many.
    if (had === 0 && (bytes[at] === CR || bytes[at] === LF)) return at + 1;
    const fresh = at === 0 ? bytes : bytes.subarray(at);
    const head = had === 0 ? fresh : Buffer.concat([this.#pending, fresh]);
    const end = head.indexOf(HEAD_END, Math.max(0, had - HEAD_END.length));
    if ((end < 0 ? head.length : end) > MAX_HEAD_BYTES) return -1;
    if (end < 0) {
      // Lines that end otherwise would be waited for until the time is up.
      for (let lf = head.indexOf(LF, had); lf >= 0; lf = head.indexOf(LF, lf + 1)) if (head[lf - 1] !== CR) return -1;
      // What waits must not keep alive the buffer that it came in.
      this.#pending = had === 0 ? Buffer.from(head) : head;
      return bytes.length;
    }
    this.#pending = EMPTY;
    if (!this.#readHead(head.toString('latin1', 0, end))) return -1;
    return at + end + HEAD_END.length - had;
  }

  #readHead(text: string): boolean {
    const known = this.#known;
    const head = known.head?.text === text ? known.head : parseHead(text);
    if (head === null) return false;
    known.head = head;
    if (head.isInterim) return true;
    this.#of = head;
    this.#left = head.length ?? 0;
    this.#state = head.isChunked ? CHUNK_SIZE : head.length === null ? UNTIL_CLOSE : LENGTH;
    this.#sink.onHead(head.status, head.headers);
    if (head.isEmpty && !this.ended) this.#end();
    return true;
  }

  #end(): void {
    const closes = this.#state === UNTIL_CLOSE && this.#of?.isEmpty !== true;
    this.#state = ENDED;
    this.#sink.onEnd(this.#of?.isReusable === true && !closes, this.#of?.keepMs ?? null);
  }
}

function isHeader(line: string): boolean {
  return NAME.test(line.slice(0, Math.max(0, line.indexOf(':')))) && PLAIN.test(line);
}

/** Null: no head of HTTP/1.1, or one that two readers could read in two ways. */
function parseHead(text: string): Head | null {
  const [statusLine = '', ...lines] = text.split('\r\n');
  const [, minor, digits] = STATUS_LINE.exec(statusLine) ?? [];
  if (digits === undefined || !PLAIN.test(statusLine)) return null;
  const headers: IncomingHttpHeaders = {};
  for (const line of lines) {
    const colon = line.indexOf(':');
    const name = line.slice(0, colon).toLowerCase();
    if (!isHeader(line)) return null;
    if (name === '__proto__') continue;
    const value = line.slice(colon + 1).trim();
    const before = headers[name];
    // A length that is said twice is a list, and no number.
    headers[name] = before === undefined ? value : `${before}, ${value}`;
  }
  const status = Number(digits);
  // An interim answer: the real one follows. HTTP/1.0 has none, and nobody asked for another protocol.
  if (status < 200 && (minor !== '1' || status === 101)) return null;
  const length = headers['content-length'];
  const coding = headers['transfer-encoding'];
  if (length !== undefined && (coding !== undefined || !DIGITS.test(length))) return null;
  if (coding !== undefined && coding.toLowerCase() !== 'chunked') return null;
  const options = (headers.connection ?? '').toLowerCase();
  return {
    text,
    status,
    headers,
    isInterim: status < 200,
    length: length === undefined ? null : Number(length),
    isChunked: coding !== undefined,
    isEmpty: status === 204 || status === 304 || Number(length ?? 1) === 0,
    isReusable: minor === '1' ? !options.includes('close') : options.includes('keep-alive'),
    keepMs: keptMs(headers['keep-alive']),
  };
}

function hexDigit(byte: number): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30;
  const lower = byte | 0x20;
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1;
}

function keptMs(header: string | string[] | undefined): number | null {
  const seconds = /timeout=(\d{1,6})/i.exec(String(header ?? ''))?.[1];
  return seconds === undefined ? null : Number(seconds) * 1000;
}
