import type { IncomingMessage } from 'node:http';
import { SwitchyardError } from '../domain/errors.ts';
import type { Clock } from '../domain/time.ts';
import { type BodyLimits, readBody } from './body.ts';
import type { JsonKind } from './json-bytes.ts';
import { JsonScanner, type ScannedMember } from './prescan.ts';

/** Bytes decoded before the event loop gets its turn again: about 2 ms. */
const SLICE_BYTES = 1024 * 1024;

/** A JSON object whose grammar is known to be right and whose members are read one by one, from their bytes. */
export class JsonBody {
  readonly bytes: Buffer;
  readonly #members: ReadonlyMap<string, ScannedMember>;

  constructor(bytes: Buffer, members: ReadonlyMap<string, ScannedMember>) {
    this.bytes = bytes;
    this.#members = members;
  }

  /** Every member by name, parsed. For small bodies of known routes; work is read member by member. */
  all(): Map<string, unknown> {
    return new Map(
      Array.from(this.#members, ([name, member]) => [name, this.#parse(member.valueStart, member.valueEnd)]),
    );
  }

  member(name: string): ScannedMember | null {
    return this.#members.get(name) ?? null;
  }

  /** Absent and `null` are the same to a reader. */
  has(name: string): boolean {
    const member = this.#members.get(name);
    return member !== undefined && member.kind !== 'null';
  }

  /** @returns the parsed value; undefined when absent or null. */
  value(name: string): unknown {
    const member = this.#members.get(name);
    return member === undefined || member.kind === 'null' ? undefined : this.#parse(member.valueStart, member.valueEnd);
  }

  /** @throws SwitchyardError invalid_request when there is another kind than a string */
  string(name: string): string | null {
    if (!this.has(name)) return null;
    this.#expect(name, 'string');
    return this.value(name) as string;
  }

  /** @throws SwitchyardError invalid_request */
  boolean(name: string): boolean | null {
    if (!this.has(name)) return null;
    this.#expect(name, 'boolean');
    return this.value(name) as boolean;
  }

  /** @throws SwitchyardError invalid_request unless it is an integer of at least `least` */
  integer(name: string, least: number): number | null {
    if (!this.has(name)) return null;
    this.#expect(name, 'number');
    const value = this.value(name) as number;
    if (!Number.isSafeInteger(value) || value < least) {
      throw invalidField(name, `must be an integer of at least ${least}`);
    }
    return value;
  }

  /** UTF-8 bytes of a member's JSON, escapes counted as what they stand for. */
  utf8Bytes(name: string): number {
    const member = this.#members.get(name);
    return member === undefined ? 0 : member.valueEnd - member.valueStart - member.escapeExcess;
  }

  /** The bytes of element `index` of an array member; null behind the last one. */
  element(name: string, index: number): Buffer | null {
    const ranges = this.#members.get(name)?.elementRanges;
    const start = ranges?.[2 * index];
    const end = ranges?.[2 * index + 1];
    return start === undefined || end === undefined ? null : this.bytes.subarray(start, end);
  }

  /**
   * The texts of an array member, at most 2,049 of them: strings, or objects with a string `text`. Decoded in slices, so that
   * a large body stalls nobody.
   * @throws SwitchyardError invalid_request for an element of another kind
   */
  async texts(name: string): Promise<string[]> {
    const member = this.#members.get(name);
    if (member?.kind !== 'array') throw invalidField(name, 'must be an array');
    const texts: string[] = [];
    let sliceEnd = member.valueStart + SLICE_BYTES;
    for (let at = 0; at + 1 < member.elementRanges.length; at += 2) {
      const end = member.elementRanges[at + 1] ?? 0;
      const text = textOf(this.#parse(member.elementRanges[at] ?? 0, end));
      if (text === null) throw invalidField(name, 'must hold strings or objects with a text');
      texts.push(text);
      if (end > sliceEnd) {
        sliceEnd = end + SLICE_BYTES;
        await new Promise(setImmediate);
      }
    }
    return texts;
  }

  /** The body less one member and its comma; the same bytes when it has none. */
  without(name: string): Buffer {
    const member = this.#members.get(name);
    if (member === undefined) return this.bytes;
    let start = member.nameStart - 1;
    let end = member.valueEnd;
    const next = this.#skipSpace(end);
    if (this.bytes[next] === 0x2c) end = next + 1;
    else {
      // The last member gives up the comma before it; an only member has none.
      let before = start - 1;
      while (isSpace(this.bytes[before])) before -= 1;
      if (this.bytes[before] === 0x2c) start = before;
    }
    return Buffer.concat([this.bytes.subarray(0, start), this.bytes.subarray(end)]);
  }

  #skipSpace(from: number): number {
    let at = from;
    while (isSpace(this.bytes[at])) at += 1;
    return at;
  }

  #expect(name: string, kind: JsonKind): void {
    if (this.#members.get(name)?.kind !== kind) throw invalidField(name, `must be a ${kind}`);
  }

  #parse(start: number, end: number): unknown {
    return JSON.parse(this.bytes.toString('utf8', start, end));
  }
}

function textOf(element: unknown): string | null {
  if (typeof element === 'string') return element;
  const text = typeof element === 'object' && element !== null && 'text' in element ? element.text : null;
  return typeof text === 'string' ? text : null;
}

function isSpace(byte: number | undefined): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}

/** @param field a name of ours, never one that a client sent. */
export function invalidField(field: string, sentence: string): SwitchyardError {
  return new SwitchyardError('invalid_request', `${field} ${sentence}.`, { extra: { param: field } });
}

/** No content type at all is taken for JSON. @throws SwitchyardError unsupported_media_type */
export function checkJsonType(request: IncomingMessage): void {
  const type = request.headers['content-type'];
  if (type === undefined || type.startsWith('application/json')) return;
  const plain = type.split(';', 1)[0]?.trim().toLowerCase() ?? '';
  if (plain !== 'application/json') throw new SwitchyardError('unsupported_media_type');
}

/** @throws SwitchyardError as `readBody`, and invalid_json, duplicate_field, too_complex */
export async function readJsonBody(request: IncomingMessage, limits: BodyLimits, clock: Clock): Promise<JsonBody> {
  const scanner = new JsonScanner();
  const bytes = await readBody(request, limits, clock, (chunk) => scanner.feed(chunk));
  return new JsonBody(bytes, scanner.end(bytes));
}

/** For bytes at hand. @throws SwitchyardError invalid_json, duplicate_field, too_complex */
export function scanJson(bytes: Buffer): JsonBody {
  const scanner = new JsonScanner();
  scanner.feed(bytes);
  return new JsonBody(bytes, scanner.end(bytes));
}
