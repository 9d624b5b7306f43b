import { EngineFailure } from '../engines/failure.ts';
import { readScores } from '../engines/scores.ts';
import { isRecord } from '../engines/sse.ts';
import { readVectors, vectorBytes } from '../engines/vectors.ts';
import type { CallHead, Trailers } from '../wire/calls.ts';
import { providerPreferences, rerankOf, textsOf } from './body.ts';
import { CallCancelled, type CloudJob, cloudUsage } from './job.ts';
import { failedCall, isTooLong, readRefusal, refusedCall } from './refusal.ts';
import { isPinned, upstreamName } from './upstreams.ts';

/** 2,048 vectors of 8,192 floats in base64, and room to spare. */
const MAX_ANSWER_BYTES = 128 * 1024 * 1024;

interface Answer {
  readonly json: Readonly<Record<string, unknown>>;
  readonly upstream: string | null;
  readonly elapsedMs: number;
}

/** Embeddings, from the pinned upstream alone. Throws CloudCallFailed, EngineFailure or CallCancelled. */
export async function serveEmbed(job: CloudJob, head: CallHead & { readonly op: 'embed' }): Promise<Trailers> {
  const input = textsOf(job.call.body, head.count);
  const body = { model: job.model, input, encoding_format: 'base64', provider: providerPreferences(job.pin) };
  const answer = await ask(job, '/embeddings', body, head.timeoutMs);
  // Cut and normalised here: an upstream's own idea of `dimensions` is not the space's.
  const batch = readVectors(answer.json, head);
  return await finish(job, answer, vectorBytes(batch), { count: batch.count, width: batch.width });
}

export async function serveRerank(job: CloudJob, head: CallHead & { readonly op: 'rerank' }): Promise<Trailers> {
  const { query, documents } = rerankOf(job.call.body, head.count);
  const body = { model: job.model, query, documents, provider: providerPreferences(job.pin) };
  const answer = await ask(job, '/rerank', body, head.timeoutMs);
  const scores = readScores(answer.json, head.count);
  return await finish(job, answer, Buffer.from(JSON.stringify({ scores })), { count: null, width: null });
}

/** These calls do not end at the upstream when their connection closes: a cancelled one is read to its end and thrown away. */
async function ask(job: CloudJob, path: string, body: unknown, timeoutMs: number): Promise<Answer> {
  const { call, http, clock, baseUrl, authorization } = job;
  if (call.signal.aborted) throw new CallCancelled(false, 0);
  const startedMs = clock.nowMs();
  const late = new AbortController();
  const stop = clock.after(timeoutMs, () => late.abort());
  const request = {
    baseUrl,
    path,
    authorization,
    body: JSON.stringify(body),
    firstByteMs: timeoutMs,
    signal: late.signal,
  };
  let answer: Awaited<ReturnType<typeof http.json>>;
  try {
    answer = await http.json(request, MAX_ANSWER_BYTES);
  } catch (error) {
    if (call.signal.aborted) throw new CallCancelled(false, null);
    throw late.signal.aborted ? new EngineFailure('engine_timeout') : error;
  } finally {
    stop();
  }
  const json = isRecord(answer.json) ? answer.json : {};
  const costUsd = cloudUsage(json)?.costUsd ?? null;
  if (call.signal.aborted) throw new CallCancelled(false, costUsd);
  if (answer.status >= 300 || isRecord(json.error)) {
    const refusal = readRefusal(answer.status, json, answer.headers, clock.wallMs());
    throw refusedCall({ ...refusal, costUsd: 0 }, { tooLong: isTooLong(json), chat: false, afterFirstByte: false });
  }
  return { json, upstream: checkedUpstream(job, json, costUsd), elapsedMs: clock.nowMs() - startedMs };
}

function checkedUpstream(
  job: CloudJob,
  json: Readonly<Record<string, unknown>>,
  costUsd: number | null,
): string | null {
  const { upstreams } = job.pin;
  const named = upstreamName(json.provider);
  if (named !== null && upstreams.length > 0 && !isPinned(named, upstreams, job.names)) {
    const { failure } = new EngineFailure(
      'fingerprint_changed',
      {},
      'Another upstream than the pinned one has answered.',
    );
    throw failedCall(failure, { wrongUpstream: true, costUsd });
  }
  return named ?? (upstreams.length === 1 ? (upstreams[0] ?? null) : null);
}

async function finish(
  job: CloudJob,
  answer: Answer,
  bytes: Uint8Array,
  shape: { readonly count: number | null; readonly width: number | null },
): Promise<Trailers> {
  const { call } = job;
  call.respond({
    status: 200,
    contentType: shape.count === null ? 'application/json' : 'application/octet-stream',
    ...shape,
  });
  if (!call.write(bytes)) await call.drained();
  if (call.signal.aborted) throw new CallCancelled(false, cloudUsage(answer.json)?.costUsd ?? null);
  return {
    usage: cloudUsage(answer.json),
    fingerprint: job.fingerprint(answer.upstream),
    engineMs: answer.elapsedMs,
    firstByteMs: answer.elapsedMs,
    tokensPerSecond: null,
    finished: true,
  };
}
