/**
 * Changes of single top-level members of a client's JSON, on bytes: everything else goes to the engine exactly as it came,
 * unknown members, number spellings and spacing included.
 */

export interface Member {
  /** Unescaped. */
  readonly key: string;
  /** Offsets of the whole member, without commas: from the quote of the key to the end of the value. */
  readonly start: number;
  readonly valueStart: number;
  readonly end: number;
}

/** `json` null removes the member. `set` adds it where it is missing, `replace` changes only what is there. */
export interface Edit {
  readonly key: string;
  readonly how: 'set' | 'replace' | 'remove';
  readonly json?: string;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;

const isSpace = (byte: number | undefined) => byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;

function skipSpace(body: Uint8Array, from: number): number {
  let at = from;
  while (isSpace(body[at])) at++;
  return at;
}

/** @returns offset after the closing quote of the string that opens at `from`; -1 when it never closes. */
function skipString(body: Uint8Array, from: number): number {
  let at = from + 1;
  for (;;) {
    const close = body.indexOf(QUOTE, at);
    if (close < 0) return -1;
    let slashes = 0;
    while (body[close - 1 - slashes] === BACKSLASH) slashes++;
    if (slashes % 2 === 0) return close + 1;
    at = close + 1;
  }
}

/** @returns offset after the value that begins at `from`; -1 when it is cut off. */
function skipValue(body: Uint8Array, from: number): number {
  const first = body[from];
  if (first === QUOTE) return skipString(body, from);
  if (first !== OPEN_BRACE && first !== OPEN_BRACKET) {
    let at = from;
    while (at < body.length && !isEnd(body[at])) at++;
    return at > from ? at : -1;
  }
  let depth = 0;
  let at = from;
  while (at < body.length) {
    const byte = body[at];
    if (byte === QUOTE) {
      at = skipString(body, at);
      if (at < 0) return -1;
      continue;
    }
    if (byte === OPEN_BRACE || byte === OPEN_BRACKET) depth++;
    else if ((byte === CLOSE_BRACE || byte === CLOSE_BRACKET) && --depth === 0) return at + 1;
    at++;
  }
  return -1;
}

const isEnd = (byte: number | undefined) =>
  byte === COMMA || byte === CLOSE_BRACE || byte === CLOSE_BRACKET || isSpace(byte);

/**
 * Members of a JSON object that was validated before. Null when the bytes are no object after all; never throws, whatever
 * the bytes are.
 */
export function topLevelMembers(body: Uint8Array): Member[] | null {
  let at = skipSpace(body, 0);
  if (body[at] !== OPEN_BRACE) return null;
  const members: Member[] = [];
  at = skipSpace(body, at + 1);
  if (body[at] === CLOSE_BRACE) return members;
  for (;;) {
    if (body[at] !== QUOTE) return null;
    const start = at;
    const keyEnd = skipString(body, at);
    if (keyEnd < 0) return null;
    at = skipSpace(body, keyEnd);
    if (body[at] !== COLON) return null;
    const valueStart = skipSpace(body, at + 1);
    const end = skipValue(body, valueStart);
    if (end < 0) return null;
    const key = unescapeKey(body.subarray(start, keyEnd));
    if (key === null) return null;
    members.push({ key, start, valueStart, end });
    at = skipSpace(body, end);
    if (body[at] === CLOSE_BRACE) return members;
    if (body[at] !== COMMA) return null;
    at = skipSpace(body, at + 1);
  }
}

function unescapeKey(quoted: Uint8Array): string | null {
  const text = Buffer.from(quoted.buffer, quoted.byteOffset, quoted.byteLength).toString('utf8');
  if (!text.includes('\\')) return text.slice(1, -1);
  try {
    return JSON.parse(text) as string;
  } catch {
    return null;
  }
}

/**
 * @returns the changed body, or null when `body` is no JSON object. Members named twice are all changed. What is not named in
 * `edits` keeps its bytes; only a removal also takes the blanks between members.
 */
export function splice(body: Uint8Array, edits: readonly Edit[]): Buffer | null {
  const members = topLevelMembers(body);
  if (members === null) return null;
  const byKey = new Map(edits.map((edit) => [edit.key, edit]));
  const present = new Set(members.map((member) => member.key));
  const added = edits
    .filter((edit) => edit.how === 'set' && !present.has(edit.key))
    .map((edit) => Buffer.from(`${JSON.stringify(edit.key)}:${edit.json ?? 'null'}`));
  const removes = members.some((member) => byKey.get(member.key)?.how === 'remove');
  return removes ? rebuilt(body, members, byKey, added) : spliced(body, members, byKey, added);
}

function spliced(
  body: Uint8Array,
  members: readonly Member[],
  edits: ReadonlyMap<string, Edit>,
  added: readonly Buffer[],
): Buffer {
  const parts: Uint8Array[] = [];
  let copied = 0;
  for (const member of members) {
    const json = edits.get(member.key)?.json;
    if (json === undefined) continue;
    parts.push(body.subarray(copied, member.valueStart), Buffer.from(json));
    copied = member.end;
  }
  const end = members.at(-1)?.end ?? skipSpace(body, 0) + 1;
  if (added.length > 0) {
    parts.push(body.subarray(copied, end));
    copied = end;
    added.forEach((member, i) => {
      if (i > 0 || members.length > 0) parts.push(Buffer.of(COMMA));
      parts.push(member);
    });
  }
  parts.push(body.subarray(copied));
  return Buffer.concat(parts);
}

function rebuilt(
  body: Uint8Array,
  members: readonly Member[],
  edits: ReadonlyMap<string, Edit>,
  added: readonly Buffer[],
): Buffer {
  const parts: Uint8Array[] = [Buffer.of(OPEN_BRACE)];
  const append = (...pieces: Uint8Array[]) => {
    if (parts.length > 1) parts.push(Buffer.of(COMMA));
    parts.push(...pieces);
  };
  for (const member of members) {
    const edit = edits.get(member.key);
    if (edit?.how === 'remove') continue;
    if (edit?.json === undefined) append(body.subarray(member.start, member.end));
    else append(body.subarray(member.start, member.valueStart), Buffer.from(edit.json));
  }
  for (const member of added) append(member);
  parts.push(Buffer.of(CLOSE_BRACE));
  return Buffer.concat(parts);
}
