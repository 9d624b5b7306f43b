import type { HttpAnswer } from './engine-http.ts';
import { isRecord } from './sse.ts';

/** Body of an engine's answer; undefined when it is no JSON. The parser's own message quotes the body and is dropped. */
export function jsonOf(answer: Pick<HttpAnswer, 'body'>): unknown {
  try {
    return JSON.parse(answer.body.toString('utf8'));
  } catch {
    return undefined;
  }
}

/** `usage.prompt_tokens` of an OpenAI-shaped answer. */
export function promptTokensOf(answer: unknown): number | null {
  const usage = isRecord(answer) && isRecord(answer.usage) ? answer.usage.prompt_tokens : null;
  return typeof usage === 'number' && Number.isInteger(usage) && usage >= 0 ? usage : null;
}
