import { isUtf8 } from 'node:buffer';
import { SwitchyardError } from '../domain/errors.ts';
import {
  firstNumberState,
  hexDigit,
  isCompleteNumber,
  isSimpleEscape,
  type JsonKind,
  kindOf,
  nextNumberState,
  utf8Share,
} from './json-bytes.ts';

/** Limits on the shape of a body, enforced on its bytes: parsing 32 MB of `{},` first would cost seconds and a gigabyte. */
export const MAX_DEPTH = 64;
export const MAX_CONTAINERS = 200_000;
const MAX_MEMBERS = 1024;
/** Elements of a top-level array whose ranges are kept: one more than any route takes, so that too many can be told. */
const KEPT_ELEMENTS = 2049;

export const KIND_BIT: Readonly<Record<JsonKind, number>> = {
  object: 1,
  array: 2,
  string: 4,
  number: 8,
  boolean: 16,
  null: 32,
};

/** One top-level member by its byte range: its value is read only by who needs it. */
export interface ScannedMember {
  readonly nameStart: number;
  readonly nameEnd: number;
  readonly valueStart: number;
  /** Exclusive. */
  valueEnd: number;
  readonly kind: JsonKind;
  /** Bytes that escapes take beyond the UTF-8 they stand for. */
  escapeExcess: number;
  /** Array: number of elements, whatever their kind. */
  elementCount: number;
  /** Array: kinds of its elements, as bits of `KIND_BIT`. */
  elementKinds: number;
  /** Array: start, end, start, end of its first 2,049 elements. */
  readonly elementRanges: number[];
}

const OBJECT = 1;
const ARRAY = 2;

// What the scanner expects next; a chunk may end anywhere.
const VALUE = 0;
const FIRST_ELEMENT = 1;
const FIRST_NAME = 2;
const NAME = 3;
const COLON = 4;
const AFTER = 5;
const IN_STRING = 6;
const IN_ESCAPE = 7;
const IN_UNICODE = 8;
const IN_NUMBER = 9;
const IN_LITERAL = 10;
const ENDED = 11;
/** The grammar is broken already: only size, depth and containers are still counted. */
const BROKEN = 12;
const BROKEN_STRING = 13;
const BROKEN_ESCAPE = 14;

const LITERALS = ['true', 'false', 'null'] as const;

/**
 * Checks a JSON text byte by byte while its chunks arrive: grammar, depth, containers; and finds where its top-level members
 * begin and end. Allocates nothing per value, so a hostile body costs its bytes and no more.
 */
export class JsonScanner {
  readonly members: ScannedMember[] = [];
  /** By depth, from 1 on. Up to 64 bytes V8 keeps a typed array on its own heap. */
  readonly #stack = new Uint8Array(MAX_DEPTH);
  #depth = 0;
  #containers = 0;
  #state = VALUE;
  #number = 0;
  #literal = '';
  #literalAt = 0;
  #unicodeLeft = 0;
  #unicode = 0;
  #isName = false;
  #position = 0;
  #excess = 0;
  #rootKind: JsonKind | null = null;
  #nameStart = 0;
  #nameEnd = 0;
  #member: ScannedMember | null = null;

  /** @throws SwitchyardError too_complex */
  feed(chunk: Uint8Array): void {
    const base = this.#position;
    const length = chunk.length;
    let at = 0;
    while (at < length) {
      const byte = chunk[at] ?? 0;
      switch (this.#state) {
        case IN_STRING: {
          let end = at;
          let next = byte;
          while (next !== 0x22 && next !== 0x5c && next >= 0x20) {
            end += 1;
            if (end === length) break;
            next = chunk[end] ?? 0;
          }
          at = end;
          if (end === length) break;
          if (next === 0x22) this.#endString(base + at + 1);
          else if (next === 0x5c) this.#state = IN_ESCAPE;
          else this.#breakOff();
          at += 1;
          break;
        }
        case IN_ESCAPE:
          if (byte === 0x75) {
            this.#unicodeLeft = 4;
            this.#unicode = 0;
            this.#state = IN_UNICODE;
          } else if (isSimpleEscape(byte)) {
            this.#excess += 1;
            this.#state = IN_STRING;
          } else this.#breakOff();
          at += 1;
          break;
        case IN_UNICODE: {
          const digit = hexDigit(byte);
          if (digit < 0) {
            this.#breakOff();
          } else {
            this.#unicode = this.#unicode * 16 + digit;
            this.#unicodeLeft -= 1;
            if (this.#unicodeLeft === 0) {
              this.#excess += 6 - utf8Share(this.#unicode);
              this.#state = IN_STRING;
            }
          }
          at += 1;
          break;
        }
        case IN_NUMBER: {
          const next = nextNumberState(this.#number, byte);
          if (next >= 0) {
            this.#number = next;
            at += 1;
          } else if (isCompleteNumber(this.#number)) this.#endValue(base + at);
          else this.#breakOff();
          break;
        }
        case IN_LITERAL:
          if (byte !== this.#literal.charCodeAt(this.#literalAt)) {
            this.#breakOff();
            break;
          }
          at += 1;
          this.#literalAt += 1;
          if (this.#literalAt === this.#literal.length) this.#endValue(base + at);
          break;
        case BROKEN:
          if (byte === 0x7b || byte === 0x5b) this.#count();
          else if (byte === 0x7d || byte === 0x5d) this.#depth = Math.max(0, this.#depth - 1);
          else if (byte === 0x22) this.#state = BROKEN_STRING;
          at += 1;
          break;
        case BROKEN_STRING:
          if (byte === 0x22) this.#state = BROKEN;
          else if (byte === 0x5c) this.#state = BROKEN_ESCAPE;
          at += 1;
          break;
        case BROKEN_ESCAPE:
          this.#state = BROKEN_STRING;
          at += 1;
          break;
        default:
          if (byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09) at += 1;
          // A byte that broke the grammar is looked at once more, by the state that only counts.
          else if (this.#structure(byte, base + at)) at += 1;
      }
    }
    this.#position = base + length;
  }

  /**
   * @param body all that was fed, in one piece
   * @throws SwitchyardError invalid_json, duplicate_field
   */
  end(body: Uint8Array): ReadonlyMap<string, ScannedMember> {
    if (this.#state !== ENDED || this.#rootKind !== 'object' || !isUtf8(body))
      throw new SwitchyardError('invalid_json');
    const text = Buffer.from(body.buffer, body.byteOffset, body.byteLength);
    const byName = new Map<string, ScannedMember>();
    for (const member of this.members) {
      const raw = text.toString('utf8', member.nameStart, member.nameEnd);
      const name = raw.includes('\\') ? (JSON.parse(`"${raw}"`) as string) : raw;
      if (byName.has(name)) throw new SwitchyardError('duplicate_field');
      byName.set(name, member);
    }
    return byName;
  }

  /** @returns false when the byte broke the grammar. */
  #structure(byte: number, at: number): boolean {
    switch (this.#state) {
      case FIRST_ELEMENT:
        if (byte === 0x5d) return this.#close(at + 1);
        return this.#beginValue(byte, at);
      case VALUE:
        return this.#beginValue(byte, at);
      case FIRST_NAME:
        if (byte === 0x7d) return this.#close(at + 1);
        return this.#beginName(byte, at);
      case NAME:
        return this.#beginName(byte, at);
      case COLON:
        if (byte !== 0x3a) return this.#breakOff();
        this.#state = VALUE;
        return true;
      case AFTER: {
        const container = this.#stack[this.#depth - 1];
        if (byte === 0x2c) {
          this.#state = container === OBJECT ? NAME : VALUE;
          return true;
        }
        if (byte === (container === OBJECT ? 0x7d : 0x5d)) return this.#close(at + 1);
        return this.#breakOff();
      }
      default:
        return this.#breakOff();
    }
  }

  #breakOff(): false {
    this.#state = BROKEN;
    return false;
  }

  #beginName(byte: number, at: number): boolean {
    if (byte !== 0x22) return this.#breakOff();
    this.#isName = true;
    if (this.#depth === 1) this.#nameStart = at + 1;
    this.#state = IN_STRING;
    return true;
  }

  #beginValue(byte: number, at: number): boolean {
    const kind = kindOf(byte);
    if (kind === null) return this.#breakOff();
    if (this.#depth === 0) this.#rootKind = kind;
    else if (this.#depth === 1 && this.#stack[0] === OBJECT) this.#beginMember(kind, at);
    else if (this.#depth === 2 && this.#member?.kind === 'array' && this.#stack[1] === ARRAY) {
      const member = this.#member;
      member.elementCount += 1;
      member.elementKinds |= KIND_BIT[kind];
      if (member.elementCount <= KEPT_ELEMENTS) member.elementRanges.push(at);
    }
    if (kind === 'object' || kind === 'array') {
      this.#count();
      this.#stack[this.#depth - 1] = kind === 'object' ? OBJECT : ARRAY;
      this.#state = kind === 'object' ? FIRST_NAME : FIRST_ELEMENT;
    } else if (kind === 'string') {
      this.#isName = false;
      this.#state = IN_STRING;
    } else if (kind === 'number') {
      this.#number = firstNumberState(byte);
      this.#state = IN_NUMBER;
    } else {
      this.#literal = LITERALS.find((literal) => literal.charCodeAt(0) === byte) ?? 'null';
      this.#literalAt = 1;
      this.#state = IN_LITERAL;
    }
    return true;
  }

  #beginMember(kind: JsonKind, at: number): void {
    if (this.members.length === MAX_MEMBERS) throw new SwitchyardError('too_complex');
    this.#member = {
      nameStart: this.#nameStart,
      nameEnd: this.#nameEnd,
      valueStart: at,
      valueEnd: at,
      kind,
      escapeExcess: -this.#excess,
      elementCount: 0,
      elementKinds: 0,
      elementRanges: [],
    };
    this.members.push(this.#member);
  }

  #count(): void {
    this.#containers += 1;
    this.#depth += 1;
    if (this.#containers > MAX_CONTAINERS || this.#depth > MAX_DEPTH) throw new SwitchyardError('too_complex');
  }

  #close(end: number): true {
    this.#depth -= 1;
    this.#endValue(end);
    return true;
  }

  #endString(end: number): void {
    if (!this.#isName) {
      this.#endValue(end);
      return;
    }
    if (this.#depth === 1) this.#nameEnd = end - 1;
    this.#state = COLON;
  }

  /** @param end offset just behind the value. */
  #endValue(end: number): void {
    this.#state = this.#depth === 0 ? ENDED : AFTER;
    const member = this.#member;
    if (member === null) return;
    if (this.#depth === 1) {
      member.valueEnd = end;
      member.escapeExcess += this.#excess;
      this.#member = null;
    } else if (this.#depth === 2 && member.kind === 'array' && member.elementCount <= KEPT_ELEMENTS) {
      member.elementRanges.push(end);
    }
  }
}
