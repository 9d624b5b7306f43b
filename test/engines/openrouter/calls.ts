import type { ServerResponse } from 'node:http';
import type { LedgerEntry } from './account.ts';
import type { StandInModel, StandInUpstream } from './models.ts';
import { relevance, servedVector } from './numerics.ts';

/** One admitted call on its way. `finish` ends the account's side of it, once. */
export interface Running {
  readonly entry: LedgerEntry;
  readonly model: StandInModel;
  readonly upstream: StandInUpstream;
  readonly body: Readonly<Record<string, unknown>>;
  readonly response: ServerResponse;
  readonly latencyMs: number;
  readonly tokenMs: number;
  readonly commentMs: number;
  /** Name said in answers; another than the upstream's when a test makes OpenRouter route past the pin. Null: not reported. */
  readonly saidUpstream: string | null;
  readonly midStream: { readonly afterTokens: number; readonly error: unknown } | null;
  readonly drift: { readonly cosine: number; readonly seed: string } | null;
  readonly seed: string;
  /** Said at the beginning of an answer; null: nothing. */
  readonly echo: string | null;
  readonly after: (delayMs: number, run: () => void) => void;
  readonly finish: () => void;
}

const WORDS =
  'The quick brown fox jumps over the lazy dog while the switchyard sends each train down its own track'.split(' ');

export function tokensOf(text: string): number {
  return Math.max(1, Math.ceil(Buffer.byteLength(text) / 4));
}

export function serveChat(running: Running): void {
  const { body, entry, response, model, upstream } = running;
  const asked = Number(body.max_completion_tokens ?? body.max_tokens ?? 64);
  const words = running.echo === null ? wordsFor(body) : [running.echo, ...wordsFor(body)];
  const said = words.slice(0, Math.max(0, asked));
  const finishReason = said.length < words.length ? 'length' : 'stop';
  const prompt = tokensOf(JSON.stringify(body.messages ?? ''));
  const costUsd = prompt * model.promptUsd + said.length * model.completionUsd;
  const usage = {
    prompt_tokens: prompt,
    completion_tokens: said.length,
    total_tokens: prompt + said.length,
    cost: costUsd,
    is_byok: false,
    prompt_tokens_details: { cached_tokens: 0, cache_write_tokens: 0, audio_tokens: 0, video_tokens: 0 },
    completion_tokens_details: { reasoning_tokens: 0, audio_tokens: 0, image_tokens: 0 },
    cost_details: {
      upstream_inference_cost: null,
      upstream_inference_prompt_cost: 0,
      upstream_inference_completions_cost: 0,
    },
  };
  const base = {
    id: entry.id,
    ...(running.saidUpstream === null ? {} : { provider: running.saidUpstream }),
    model: model.id,
    created: Math.floor(entry.startMs / 1000),
  };
  if (body.stream !== true) {
    running.after(running.latencyMs + said.length * running.tokenMs, () => {
      entry.costUsd = costUsd;
      running.finish();
      const message = { role: 'assistant', content: said.join(''), refusal: null, reasoning: null };
      const choices = [
        { index: 0, finish_reason: finishReason, native_finish_reason: finishReason, logprobs: null, message },
      ];
      answer(response, entry, 200, { ...base, object: 'chat.completion', system_fingerprint: null, choices, usage });
    });
    return;
  }
  response.writeHead(200, {
    'content-type': 'text/event-stream',
    'cache-control': 'no-cache',
    'x-generation-id': entry.id,
  });
  const send = (text: string) => {
    if (!response.writableEnded && !response.destroyed) response.write(text);
  };
  const chunk = (delta: unknown, reason: string | null) =>
    send(
      `data: ${JSON.stringify({
        ...base,
        object: 'chat.completion.chunk',
        choices: [{ index: 0, delta, finish_reason: reason, native_finish_reason: reason, logprobs: null }],
      })}\n\n`,
    );
  let begun = false;
  const comment = () => {
    if (begun || response.destroyed || entry.endMs !== null) return;
    send(': OPENROUTER PROCESSING\n\n');
    running.after(running.commentMs, comment);
  };
  comment();
  const token = (at: number) => {
    if (entry.endMs !== null) return;
    begun = true;
    entry.costUsd = prompt * model.promptUsd + at * model.completionUsd;
    if (running.midStream !== null && at >= running.midStream.afterTokens) {
      const { error } = running.midStream;
      if (error !== null)
        send(
          `data: ${JSON.stringify({
            ...base,
            object: 'chat.completion.chunk',
            error,
            choices: [
              {
                index: 0,
                delta: { content: '' },
                finish_reason: 'error',
                native_finish_reason: 'error',
                logprobs: null,
              },
            ],
          })}\n\n`,
        );
      running.finish();
      response.end();
      return;
    }
    const word = said[at];
    if (word !== undefined) {
      if (at === 0) chunk({ role: 'assistant', content: '' }, null);
      chunk({ content: word }, null);
      running.after(running.tokenMs, () => token(at + 1));
      return;
    }
    chunk({ content: '' }, finishReason);
    entry.costUsd = costUsd;
    send(`data: ${JSON.stringify({ ...base, object: 'chat.completion.chunk', choices: [], usage })}\n\n`);
    send('data: [DONE]\n\n');
    running.finish();
    response.end();
  };
  running.after(running.latencyMs, () => token(0));
  response.on('close', () => {
    if (entry.endMs !== null) return;
    entry.aborted = true;
    // Others keep on working, and keep the account's slot, until they would have ended anyway.
    if (upstream.stopsOnAbort) running.finish();
  });
}

export function serveEmbeddings(running: Running): void {
  const { body, model, upstream, entry, response } = running;
  const inputs = Array.isArray(body.input) ? body.input.map(String) : [String(body.input)];
  const width = typeof body.dimensions === 'number' ? body.dimensions : model.width;
  const tokens = inputs.reduce((sum, text) => sum + tokensOf(text), 0);
  running.after(running.latencyMs, () => {
    const data = inputs.map((text, index) => {
      const read = text.slice(0, model.contextTokens * 4);
      const numerics = running.drift ?? { cosine: upstream.cosine, seed: `${running.seed}/${upstream.tag}` };
      const vector = servedVector(read, model.width, numerics.cosine, numerics.seed).subarray(0, width);
      const bytes = Buffer.from(vector.buffer, vector.byteOffset, vector.byteLength);
      return {
        object: 'embedding',
        index,
        embedding: body.encoding_format === 'base64' ? bytes.toString('base64') : [...vector],
      };
    });
    entry.costUsd = tokens * model.promptUsd;
    running.finish();
    answer(response, entry, 200, {
      id: entry.id,
      ...(running.saidUpstream === null ? {} : { provider: running.saidUpstream }),
      object: 'list',
      model: model.id,
      data,
      usage: { prompt_tokens: tokens, total_tokens: tokens, cost: entry.costUsd, is_byok: false },
    });
  });
  response.on('close', () => {
    if (entry.endMs === null) entry.aborted = true;
  });
}

export function serveRerank(running: Running): void {
  const { body, model, entry, response } = running;
  const query = String(body.query);
  const documents = Array.isArray(body.documents) ? body.documents.map(documentText) : [];
  running.after(running.latencyMs, () => {
    const results = documents
      .map((text, index) => ({ index, relevance_score: relevance(query, text), document: { text } }))
      .sort((a, b) => b.relevance_score - a.relevance_score);
    entry.costUsd = 0.002 * Math.ceil(documents.length / 100);
    running.finish();
    answer(response, entry, 200, {
      id: entry.id,
      model: model.id,
      ...(running.saidUpstream === null ? {} : { provider: running.saidUpstream }),
      results: results.slice(0, typeof body.top_n === 'number' ? body.top_n : results.length),
      usage: { search_units: Math.ceil(documents.length / 100), cost: entry.costUsd },
    });
  });
  response.on('close', () => {
    if (entry.endMs === null) entry.aborted = true;
  });
}

function answer(response: ServerResponse, entry: LedgerEntry, status: number, body: unknown): void {
  entry.status = status;
  if (response.destroyed) return;
  response.writeHead(status, { 'content-type': 'application/json', 'x-generation-id': entry.id });
  response.end(JSON.stringify(body));
}

/** Recites; a prompt "say N words" gets that many. */
function wordsFor(body: Readonly<Record<string, unknown>>): readonly string[] {
  const count = Number(/say (\d+) words/.exec(JSON.stringify(body.messages ?? ''))?.[1] ?? 12);
  return Array.from({ length: count }, (_, at) => `${at === 0 ? '' : ' '}${WORDS[at % WORDS.length]}`);
}

function documentText(document: unknown): string {
  if (typeof document === 'string') return document;
  if (typeof document === 'object' && document !== null && 'text' in document) return String(document.text);
  return '';
}
