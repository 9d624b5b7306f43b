import type { JsonBody } from './json-body.ts';

export interface MediaFinding {
  /** A part names an address that somebody would have to fetch. */
  readonly remote: boolean;
  /** Bytes of inline media among the messages: they are no text, so they do not count as prompt. */
  readonly payloadBytes: number;
  /** What the parts count as instead. */
  readonly tokens: number;
}

const NO_MEDIA: MediaFinding = { remote: false, payloadBytes: 0, tokens: 0 };
/** Tokens of one picture, sound or file; engines differ, most stay below. */
const TOKENS_PER_PART = 1024;
/** Part types whose members may hold an address or inline data. */
const MARKS = ['_url', '"file', 'audio', 'image', 'video', '\\u00'];

/**
 * Looks for media among the messages. Only bodies that hold a tell-tale byte sequence are parsed: an escaped name
 * (`image\u005furl`) counts as one, since it may spell anything.
 */
export function inspectMedia(body: JsonBody): MediaFinding {
  const member = body.member('messages');
  if (member === null) return NO_MEDIA;
  const bytes = body.bytes.subarray(member.valueStart, member.valueEnd);
  if (!MARKS.some((mark) => bytes.includes(mark))) return NO_MEDIA;
  const messages = body.value('messages');
  let remote = false;
  let payloadBytes = 0;
  let parts = 0;
  for (const message of Array.isArray(messages) ? messages : []) {
    const content: unknown = message?.content;
    if (!Array.isArray(content)) continue;
    for (const part of content) {
      if (typeof part !== 'object' || part === null || part.type === 'text') continue;
      const found = { remote: false, payloadBytes: 0 };
      walk(part, found);
      if (found.remote) remote = true;
      payloadBytes += found.payloadBytes;
      parts += 1;
    }
  }
  return { remote, payloadBytes, tokens: parts * TOKENS_PER_PART };
}

const INLINE_BYTES = 256;

/** Every string of a part that is not text: an address unless it is `data:` or no address at all. Depth is bounded by the scan. */
function walk(value: unknown, found: { remote: boolean; payloadBytes: number }): void {
  if (typeof value === 'string') {
    if (/^\s*data:/i.test(value)) found.payloadBytes += value.length;
    else if (/^\s*(?:[a-z][a-z0-9+.-]*:|\/\/|\\\\)\S*\s*$/i.test(value)) found.remote = true;
    else if (value.length > INLINE_BYTES) found.payloadBytes += value.length;
    return;
  }
  if (typeof value !== 'object' || value === null) return;
  for (const inner of Object.values(value)) walk(inner, found);
}
