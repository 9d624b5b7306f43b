import type { IncomingHttpHeaders } from 'node:http';
import { ChoiceEnds } from '../engines/choice-ends.ts';
import { EngineFailure } from '../engines/failure.ts';
import { isRecord } from '../engines/sse.ts';
import type { CallHead, Trailers, Usage } from '../wire/calls.ts';
import { Assembler } from './assemble.ts';
import { chatBody } from './body.ts';
import { EventReader, type StreamEvent } from './events.ts';
import { type CloudResponse, parseJson, readAll, transportFailure } from './http.ts';
import { CallCancelled, type CloudJob, cloudUsage, Patience } from './job.ts';
import { failedCall, isTooLong, readRefusal, refusedCall } from './refusal.ts';
import { goesOnAfterAbort, isPinned, upstreamName } from './upstreams.ts';

const MAX_ERROR_BYTES = 1024 * 1024;

type ChatHead = CallHead & { readonly op: 'chat' };

/**
 * One chat call, always a stream towards OpenRouter. A client that asked for a whole answer gets it put together here. Throws
 * CloudCallFailed, EngineFailure or CallCancelled.
 */
export async function serveChat(job: CloudJob, head: ChatHead): Promise<Trailers> {
  const maxTokens = head.cloud?.maxTokens ?? null;
  const body = chatBody(job.call.body, job.model, job.pin, maxTokens);
  return await new ChatRelay(job, head, body).run();
}

class ChatRelay {
  readonly #job: CloudJob;
  readonly #head: ChatHead;
  readonly #body: string;
  readonly #abort = new AbortController();
  readonly #assembler: Assembler | null;
  readonly #patience: Patience;
  readonly #startedMs: number;
  /** Events kept back until one says something: an error before that may still be tried elsewhere. */
  #held: Buffer[] = [];
  #responded = false;
  #cancelled = false;
  /** Nobody listens any more, but the upstream goes on: read to the end. */
  #discarding = false;
  #timedOut = false;
  #upstream: string | null;
  #usage: Usage | null = null;
  readonly #ends = new ChoiceEnds();
  /** `[DONE]` was seen: nothing behind it is read. */
  #done = false;
  #firstMs: number | null = null;
  #pieces = 0;

  constructor(job: CloudJob, head: ChatHead, body: string) {
    this.#job = job;
    this.#head = head;
    this.#body = body;
    this.#assembler = head.stream ? null : new Assembler();
    this.#upstream = job.pin.upstreams.length === 1 ? (job.pin.upstreams[0] ?? null) : null;
    this.#startedMs = job.clock.nowMs();
    this.#patience = new Patience(job.clock, head.betweenTokensMs, () => {
      this.#timedOut = true;
      this.#abort.abort();
    });
  }

  async run(): Promise<Trailers> {
    const { signal } = this.#job.call;
    if (signal.aborted) throw new CallCancelled(false, 0);
    const onAbort = () => this.#cancel();
    signal.addEventListener('abort', onAbort, { once: true });
    try {
      const response = await this.#open();
      return await this.#relay(response);
    } catch (error) {
      if (!this.#cancelled) throw error;
      if (error instanceof CallCancelled) throw error;
      throw new CallCancelled(!this.#discarding, this.#usage?.costUsd ?? this.#estimateUsd());
    } finally {
      this.#patience.stop();
      signal.removeEventListener('abort', onAbort);
    }
  }

  #cancel(): void {
    this.#cancelled = true;
    if (this.#upstream !== null && goesOnAfterAbort(this.#upstream)) this.#discarding = true;
    else this.#abort.abort();
  }

  async #open(): Promise<CloudResponse> {
    const { http, baseUrl, authorization } = this.#job;
    return await http.open({
      baseUrl,
      path: '/chat/completions',
      authorization,
      body: this.#body,
      firstByteMs: this.#head.firstByteMs,
      signal: this.#abort.signal,
    });
  }

  async #relay({ status, headers, body }: CloudResponse): Promise<Trailers> {
    const isStream = status < 300 && String(headers['content-type'] ?? '').startsWith('text/event-stream');
    // Also for an error that stands still behind its head.
    this.#patience.start();
    if (!isStream) throw this.#refused(status, parseJson(await readAll(body, MAX_ERROR_BYTES)), headers);
    const reader = new EventReader();
    try {
      for await (const chunk of body) for (const event of this.#cut(reader, chunk)) await this.#take(event, headers);
    } catch (error) {
      this.#abort.abort();
      throw this.#broken(error);
    }
    const rest = reader.flush();
    if (rest !== null) await this.#take(rest, headers);
    if (this.#cancelled) throw new CallCancelled(false, this.#usage?.costUsd ?? null);
    if (!this.#ends.all) throw this.#interrupted();
    await this.#answer();
    return this.#trailers();
  }

  #cut(reader: EventReader, chunk: Buffer): readonly StreamEvent[] {
    try {
      return reader.push(chunk);
    } catch {
      throw new EngineFailure('engine_invalid_response', { afterFirstByte: this.#responded });
    }
  }

  async #take(event: StreamEvent, headers: IncomingHttpHeaders): Promise<void> {
    if (this.#done) return;
    if (event.malformed) throw new EngineFailure('engine_invalid_response', { afterFirstByte: this.#responded });
    if (event.data === null) {
      if (event.isError) throw this.#failed();
      // A comment keeps a waiting client's connection warm; before the head there is nobody to warm.
      if (this.#responded) await this.#pass(event.raw);
      return;
    }
    if (event.data.trim() === '[DONE]') {
      this.#done = true;
      if (this.#ends.all) await this.#pass(event.raw);
      return;
    }
    const chunk = parseJson(Buffer.from(event.data));
    if (!isRecord(chunk)) throw new EngineFailure('engine_invalid_response', { afterFirstByte: this.#responded });
    this.#patience.progress();
    this.#checkUpstream(chunk);
    if (isRecord(chunk.error) || hasFailed(chunk)) throw this.#refused(200, chunk, headers);
    if (event.isError || (chunk.error !== undefined && chunk.error !== null)) throw this.#failed();
    this.#usage = cloudUsage(chunk) ?? this.#usage;
    if (!Array.isArray(chunk.choices) && !isRecord(chunk.usage)) return; // no piece of an answer
    const wasFinished = this.#ends.all;
    for (const choice of choicesOf(chunk)) {
      if (typeof choice.finish_reason === 'string') this.#ends.end(choice.index);
      else this.#ends.see(choice.index);
    }
    const says = saysSomething(chunk);
    if (says) {
      this.#pieces++;
      this.#firstMs ??= this.#job.clock.nowMs();
    }
    if (this.#assembler !== null) {
      this.#assembler.add(chunk);
      return;
    }
    const onlyUsage = isRecord(chunk.usage) && !says && (wasFinished || choicesOf(chunk).length === 0);
    if (onlyUsage && !this.#head.wantsUsage) return;
    if (this.#responded || says || this.#ends.all) await this.#pass(event.raw);
    else this.#held.push(event.raw);
  }

  #checkUpstream(chunk: Readonly<Record<string, unknown>>): void {
    const named = upstreamName(chunk.provider);
    if (named === null) return;
    this.#upstream = named;
    const { upstreams } = this.#job.pin;
    if (upstreams.length === 0 || isPinned(named, upstreams, this.#job.names)) return;
    this.#abort.abort();
    const { failure } = new EngineFailure(
      'fingerprint_changed',
      { afterFirstByte: this.#responded },
      'Another upstream than the pinned one has answered.',
    );
    throw failedCall(failure, { wrongUpstream: true });
  }

  /** Hands bytes on in order, with the head before the first. */
  async #pass(raw: Buffer): Promise<void> {
    if (this.#cancelled || this.#assembler !== null) return;
    const { call } = this.#job;
    if (!this.#responded) {
      this.#responded = true;
      call.respond({ status: 200, contentType: 'text/event-stream; charset=utf-8', count: null, width: null });
    }
    const bytes = this.#held.length === 0 ? Buffer.from(raw) : Buffer.concat([...this.#held, raw]);
    this.#held = [];
    await this.#write(bytes);
  }

  async #answer(): Promise<void> {
    if (this.#assembler === null) return;
    this.#responded = true;
    this.#job.call.respond({ status: 200, contentType: 'application/json', count: null, width: null });
    await this.#write(Buffer.from(this.#assembler.toJson()));
  }

  async #write(bytes: Buffer): Promise<void> {
    const { call } = this.#job;
    this.#job.blank(bytes);
    if (call.write(bytes)) return;
    this.#patience.pause();
    await call.drained();
    this.#patience.resume();
  }

  #trailers(): Trailers {
    const nowMs = this.#job.clock.nowMs();
    const tokens = (this.#usage?.completionTokens ?? this.#pieces) - 1;
    const sinceMs = this.#firstMs ?? nowMs;
    return {
      usage: this.#usage ?? { promptTokens: 0, completionTokens: this.#pieces, exact: false, costUsd: null },
      fingerprint: this.#job.fingerprint(this.#upstream),
      engineMs: nowMs - this.#startedMs,
      firstByteMs: this.#firstMs === null ? null : this.#firstMs - this.#startedMs,
      tokensPerSecond: tokens > 0 && nowMs > sinceMs ? (tokens / (nowMs - sinceMs)) * 1000 : null,
      finished: true,
    };
  }

  #refused(status: number, answer: unknown, headers: IncomingHttpHeaders): Error {
    const said = isRecord(answer) ? answer : {};
    if (status < 300 && !isRecord(said.error) && !hasFailed(said)) return new EngineFailure('engine_invalid_response');
    const refusal = readRefusal(status, errorOf(said), headers, this.#job.clock.wallMs());
    // An error inside a stream is that of the upstream which was answering, unless it names a limit of OpenRouter's.
    const byUpstream = refusal.limitSource === null && upstreamName(said.provider) !== null;
    const fromProvider = refusal.fromProvider || byUpstream;
    const costUsd = this.#usage?.costUsd ?? (this.#pieces === 0 ? 0 : this.#estimateUsd());
    return refusedCall(
      { ...refusal, fromProvider, costUsd },
      { tooLong: isTooLong(answer), chat: true, afterFirstByte: this.#responded },
    );
  }

  /** An error without anything to learn from it. */
  #failed(): Error {
    const { failure } = new EngineFailure('engine_error', { afterFirstByte: this.#responded });
    return failedCall(failure, { costUsd: this.#usage?.costUsd ?? (this.#pieces === 0 ? 0 : this.#estimateUsd()) });
  }

  #interrupted(): Error {
    const { failure } = new EngineFailure('stream_interrupted', { afterFirstByte: this.#responded });
    return failedCall(failure, { costUsd: this.#usage?.costUsd ?? this.#estimateUsd() });
  }

  #broken(error: unknown): unknown {
    if (this.#timedOut) {
      const { failure } = new EngineFailure('engine_timeout', { afterFirstByte: this.#responded });
      return failedCall(failure, { costUsd: this.#estimateUsd() });
    }
    if (error instanceof Error && 'failure' in error) return error;
    const { failure } = transportFailure(error);
    return failedCall(
      { ...failure, code: 'stream_interrupted', afterFirstByte: this.#responded },
      { costUsd: this.#estimateUsd() },
    );
  }

  /** What an answer cost that ended without saying so: a token for each piece, and three bytes a token for the prompt. */
  #estimateUsd(): number | null {
    const { price } = this.#job;
    if (price === null) return null;
    return Math.ceil(this.#body.length / 3) * price.promptUsd + this.#pieces * price.completionUsd;
  }
}

function choicesOf(chunk: Readonly<Record<string, unknown>>): readonly Readonly<Record<string, unknown>>[] {
  return Array.isArray(chunk.choices) ? chunk.choices.filter(isRecord) : [];
}

function hasFailed(chunk: Readonly<Record<string, unknown>>): boolean {
  return choicesOf(chunk).some((choice) => choice.finish_reason === 'error' || isRecord(choice.error));
}

/** The error object wherever the chunk has it. */
function errorOf(chunk: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  if (isRecord(chunk.error)) return chunk;
  const failed = choicesOf(chunk).find((choice) => isRecord(choice.error));
  return failed === undefined ? {} : { error: failed.error };
}

/** Content, reasoning, a tool call or a refusal: something of the answer itself. */
function saysSomething(chunk: Readonly<Record<string, unknown>>): boolean {
  return choicesOf(chunk).some(({ delta }) => {
    if (!isRecord(delta)) return false;
    const texts = [delta.content, delta.reasoning, delta.refusal];
    return texts.some((text) => typeof text === 'string' && text !== '') || Array.isArray(delta.tool_calls);
  });
}
