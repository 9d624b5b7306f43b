import type { HttpAnswer } from './engine-http.ts';
import { isRecord } from './sse.ts';

/** Answers nest a handful deep. To parse five million open brackets takes a second and more. */
const MAX_DEPTH = 64;
/** What is shorter can nest as it likes. */
const SHORT_BYTES = 64 * 1024;

/**
 * Body of an engine's answer; undefined when it is no JSON, or nests deeper than any answer. The parser's own message quotes the
 * body and is dropped.
 */
export function jsonOf({ body }: Pick<HttpAnswer, 'body'>): unknown {
  if (body.length > SHORT_BYTES && isDeep(body)) return undefined;
  try {
    return JSON.parse(body.toString('utf8'));
  } catch {
    return undefined;
  }
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;

function isDeep(json: Buffer): boolean {
  let depth = 0;
  for (let at = 0; at < json.length; at++) {
    const byte = json[at];
    if (byte === QUOTE) at = stringEnd(json, at);
    else if (byte === CLOSE_BRACKET || byte === CLOSE_BRACE) depth--;
    else if ((byte === OPEN_BRACKET || byte === OPEN_BRACE) && ++depth > MAX_DEPTH) return true;
  }
  return false;
}

/** @returns where the string ends that begins at `start`: its quote, or the end of everything */
function stringEnd(json: Buffer, start: number): number {
  for (let from = start + 1; ; ) {
    const quote = json.indexOf(QUOTE, from);
    if (quote < 0) return json.length;
    let escapes = 0;
    while (json[quote - 1 - escapes] === BACKSLASH) escapes++;
    if (escapes % 2 === 0) return quote;
    from = quote + 1;
  }
}

/** `usage.prompt_tokens` of an OpenAI-shaped answer. */
export function promptTokensOf(answer: unknown): number | null {
  const usage = isRecord(answer) && isRecord(answer.usage) ? answer.usage.prompt_tokens : null;
  return typeof usage === 'number' && Number.isInteger(usage) && usage >= 0 ? usage : null;
}
