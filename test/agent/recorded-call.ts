import type { CallFailure, CallHead, ResponseHead, Trailers } from '../../agent/wire/calls.ts';
import type { IncomingCall } from '../../agent/wire/stream.ts';

/** A call as the session would hand it to the engines, whose outcome a test can wait for. */
export class RecordedCall implements IncomingCall {
  readonly controller = 'test';
  readonly head: CallHead;
  readonly body: Uint8Array;
  readonly controls = new AbortController();
  readonly chunks: Uint8Array[] = [];
  /** Resolves at the end, with a failure or without. */
  readonly over: Promise<void>;
  response: ResponseHead | null = null;
  trailers: Trailers | null = null;
  failure: CallFailure | null = null;
  /** False: `write` asks for a pause, and `drained` waits for `open()`. */
  wide = true;
  #settle: () => void = () => undefined;
  #drain: (() => void)[] = [];

  constructor(head: CallHead, body: unknown) {
    this.head = head;
    this.body = Buffer.from(typeof body === 'string' ? body : JSON.stringify(body));
    this.over = new Promise((resolve) => {
      this.#settle = resolve;
    });
  }

  get signal(): AbortSignal {
    return this.controls.signal;
  }

  respond(head: ResponseHead): void {
    if (this.response !== null) throw new Error('answered twice');
    this.response = head;
  }

  write(chunk: Uint8Array): boolean {
    if (this.response === null) throw new Error('bytes before the head');
    if (this.trailers !== null || this.failure !== null) throw new Error('bytes after the end');
    this.chunks.push(Uint8Array.from(chunk));
    return this.wide;
  }

  drained(): Promise<void> {
    if (this.wide || this.signal.aborted) return Promise.resolve();
    return new Promise((resolve) => this.#drain.push(resolve));
  }

  open(): void {
    this.wide = true;
    for (const resolve of this.#drain.splice(0)) resolve();
  }

  end(trailers: Trailers): void {
    if (this.trailers !== null || this.failure !== null) throw new Error('ended twice');
    this.trailers = trailers;
    this.#settle();
  }

  fail(failure: CallFailure): void {
    if (this.trailers !== null || this.failure !== null) throw new Error('ended twice');
    this.failure = failure;
    this.#settle();
  }

  get bytes(): Buffer {
    return Buffer.concat(this.chunks);
  }

  get text(): string {
    return this.bytes.toString();
  }

  get json(): unknown {
    return JSON.parse(this.text);
  }

  /** Rows of an embed answer. */
  get vectors(): Float32Array[] {
    const width = this.response?.width ?? 0;
    const all = new Float32Array(Uint8Array.from(this.bytes).buffer);
    return Array.from({ length: this.response?.count ?? 0 }, (_, i) => all.subarray(i * width, (i + 1) * width));
  }
}

interface Place {
  readonly engine: string;
  readonly model: string;
}

export function embedCall(place: Place, texts: readonly string[], more: Partial<CallHead & { op: 'embed' }> = {}) {
  const head = { count: texts.length, width: null, cut: null, normalise: true, processMark: null, timeoutMs: 20_000 };
  return new RecordedCall({ op: 'embed', ...place, ...head, ...more }, texts);
}

export function chatCall(place: Place, body: object, more: Partial<CallHead & { op: 'chat' }> = {}) {
  const stream = (body as { stream?: boolean }).stream === true;
  const path = '/v1/chat/completions' as const;
  const head = {
    op: 'chat' as const,
    ...place,
    stream,
    wantsUsage: false,
    path,
    firstByteMs: 20_000,
    betweenTokensMs: 20_000,
  };
  return new RecordedCall({ ...head, ...more }, body);
}

export function rerankCall(place: Place, query: string, documents: readonly string[]) {
  return new RecordedCall({ op: 'rerank', ...place, count: documents.length, timeoutMs: 20_000 }, { query, documents });
}

export function tokenizeCall(place: Place, texts: readonly string[]) {
  return new RecordedCall({ op: 'tokenize', ...place, count: texts.length, timeoutMs: 20_000 }, texts);
}
