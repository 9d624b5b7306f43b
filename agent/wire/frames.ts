/**
 * Binary codec of the data socket. One WebSocket message holds any number of whole frames; a frame never spans messages:
 *
 *     0        type
 *     1..3     payload length, big-endian
 *     4..9     stream id, big-endian; counts up from 1 and never comes again (48 bits: 900 years at 10,000 calls/s)
 *     10..     payload
 */
export const FRAME = {
  /** Controller: u32 body length, u16 head length, CallHead as JSON, then the beginning of the body. */
  open: 1,
  /** Agent: ResponseHead as JSON. */
  head: 2,
  /** Both: 1 to 65,536 bytes of the body. */
  data: 3,
  /** Both: u32, bytes more that the other side may send on this stream. */
  window: 4,
  /** Controller: the call is not wanted any more. Agent: echo, its last frame of that stream. Empty. */
  cancel: 5,
  /** Agent: Trailers as JSON; its last frame of that stream. */
  end: 6,
  /** Agent: CallFailure as JSON; its last frame of that stream. */
  failure: 7,
} as const;
export type FrameType = (typeof FRAME)[keyof typeof FRAME];

export const FRAME_HEADER_BYTES = 10;
export const OPEN_HEADER_BYTES = 6;
/** Largest WebSocket message on a data socket, and the size of the blocks that frames are written into. */
export const MAX_MESSAGE_BYTES = 128 * 1024;
export const MAX_DATA_BYTES = 64 * 1024;
/** Six texts of 512 characters fit, however they are escaped. */
export const MAX_HEAD_BYTES = 32 * 1024;
/** 2,048 failing inputs with their token counts fit. */
export const MAX_FAILURE_BYTES = 112 * 1024;
/** Largest request body. */
export const MAX_BODY_BYTES = 32 * 1024 * 1024;
/** What a side may send on a fresh stream, in each direction, before it is granted more. */
export const INITIAL_WINDOW_BYTES = 256 * 1024;

/**
 * Free bytes in front of every message that a `FrameWriter` sends: what carries messages may write its own header there (14 bytes
 * of a WebSocket's, masked) and hand over both in one piece.
 */
export const HEADROOM_BYTES = 14;

const HIGH = 2 ** 32;
const MAX_STREAM_ID = 2 ** 48 - 1;

const MAX_PAYLOAD: readonly (number | undefined)[] = [
  undefined,
  OPEN_HEADER_BYTES + MAX_HEAD_BYTES + MAX_DATA_BYTES,
  MAX_HEAD_BYTES,
  MAX_DATA_BYTES,
  4,
  0,
  MAX_HEAD_BYTES,
  MAX_FAILURE_BYTES,
];
const MIN_PAYLOAD: readonly number[] = [0, OPEN_HEADER_BYTES, 2, 1, 4, 0, 2, 2];

/** Gets each frame of a message in turn; the payload is `message[start, end)`. Returns why it cannot be, or null. */
export type FrameVisitor = (type: FrameType, id: number, message: Buffer, start: number, end: number) => string | null;

/** Walks the frames of one message. Returns null, or a reason of ours: then the socket is to be closed. Never throws. */
export function readFrames(message: Buffer, visit: FrameVisitor): string | null {
  if (message.length === 0) return 'empty message';
  if (message.length > MAX_MESSAGE_BYTES) return 'message too large';
  let at = 0;
  while (at < message.length) {
    const start = at + FRAME_HEADER_BYTES;
    if (start > message.length) return 'frame cut short';
    const word = message.readUInt32BE(at);
    const type = word >>> 24;
    const length = word & 0xffffff;
    const limit = MAX_PAYLOAD[type];
    if (limit === undefined) return 'unknown frame';
    if (length > limit) return 'frame too large';
    if (length < (MIN_PAYLOAD[type] ?? 0)) return 'frame too small';
    const end = start + length;
    if (end > message.length) return 'frame cut short';
    const id = message.readUInt16BE(at + 4) * HIGH + message.readUInt32BE(at + 6);
    if (id === 0) return 'no stream';
    const reason = visit(type as FrameType, id, message, start, end);
    if (reason !== null) return reason;
    at = end;
  }
  return null;
}

/**
 * Writes frames next to each other into blocks and sends what has gathered as one message when flushed (or when a block is
 * full): no object, no buffer and no copy per frame beyond the payload's own. A sent part of a block is never written again, and
 * `HEADROOM_BYTES` in front of a message belong to whoever it is sent by.
 */
export class FrameWriter {
  readonly #send: (message: Buffer) => void;
  #block: Buffer = Buffer.alloc(0);
  #start = 0;
  #end = 0;
  /** The data frame that was written last, while nothing has been written behind it. */
  #data: { readonly id: number; readonly at: number; length: number } | null = null;

  constructor(send: (message: Buffer) => void) {
    this.#send = send;
  }

  /** Bytes written and not flushed. */
  get pending(): number {
    return this.#end - this.#start;
  }

  flush(): void {
    if (this.#end === this.#start) return;
    const message = this.#block.subarray(this.#start, this.#end);
    this.#end += HEADROOM_BYTES;
    this.#start = this.#end;
    this.#data = null;
    this.#send(message);
  }

  /** `head` is JSON of at most MAX_HEAD_BYTES; `prefix` is the beginning of a body of `bodyLength` bytes. */
  open(id: number, head: string, bodyLength: number, prefix: Uint8Array): void {
    const headLength = Buffer.byteLength(head);
    const at = this.#header(FRAME.open, id, OPEN_HEADER_BYTES + headLength + prefix.length);
    this.#block.writeUInt32BE(bodyLength, at);
    this.#block.writeUInt16BE(headLength, at + 4);
    this.#block.write(head, at + OPEN_HEADER_BYTES);
    this.#block.set(prefix, at + OPEN_HEADER_BYTES + headLength);
  }

  json(type: typeof FRAME.head | typeof FRAME.end | typeof FRAME.failure, id: number, text: string): void {
    const at = this.#header(type, id, Buffer.byteLength(text));
    this.#block.write(text, at);
  }

  /**
   * At most MAX_DATA_BYTES. What follows bytes of the same stream that still wait here becomes part of their frame: the tokens of
   * one turn reach the other side, and its client, as one piece.
   */
  data(id: number, payload: Uint8Array): void {
    const { length } = payload;
    const open = this.#data;
    if (open !== null && open.id === id && open.length + length <= MAX_DATA_BYTES && this.#fits(length)) {
      this.#block.set(payload, this.#end);
      this.#end += length;
      open.length += length;
      this.#block.writeUInt32BE(((FRAME.data << 24) | open.length) >>> 0, open.at);
      return;
    }
    const at = this.#header(FRAME.data, id, length);
    this.#block.set(payload, at);
    this.#data = { id, at: at - FRAME_HEADER_BYTES, length };
  }

  #fits(bytes: number): boolean {
    return this.#block.length - this.#end >= bytes;
  }

  window(id: number, bytes: number): void {
    const at = this.#header(FRAME.window, id, 4);
    this.#block.writeUInt32BE(bytes, at);
  }

  cancel(id: number): void {
    this.#header(FRAME.cancel, id, 0);
  }

  /** Writes the header with room for `length` bytes after it and returns where they begin. */
  #header(type: FrameType, id: number, length: number): number {
    if (id > MAX_STREAM_ID) throw new RangeError('Stream ids are 48 bits.');
    const total = FRAME_HEADER_BYTES + length;
    this.#data = null;
    if (!this.#fits(total)) {
      this.flush();
      this.#block = Buffer.allocUnsafeSlow(HEADROOM_BYTES + MAX_MESSAGE_BYTES);
      this.#start = HEADROOM_BYTES;
      this.#end = HEADROOM_BYTES;
    }
    const at = this.#end;
    this.#end = at + total;
    this.#block.writeUInt32BE(((type << 24) | length) >>> 0, at);
    this.#block.writeUInt16BE(Math.floor(id / HIGH), at + 4);
    this.#block.writeUInt32BE(id % HIGH, at + 6);
    return at + FRAME_HEADER_BYTES;
  }
}
