export type PlistValue = string | number | boolean | Uint8Array | readonly PlistValue[] | PlistDict;
export type PlistDict = { readonly [key: string]: PlistValue };

const MAX_DEPTH = 32;
const TOKEN = /<(\/?)([a-z]+)([^<>]*?)(\/?)>/g;
const ENTITIES: Readonly<Record<string, string>> = { lt: '<', gt: '>', amp: '&', quot: '"', apos: "'" };

interface Reader {
  readonly xml: string;
  readonly token: RegExp;
}

/**
 * Reads Apple's XML property list, as `ioreg -a` writes it. Numbers beyond 2^53 lose their last digits. @returns null when it is
 * not one. Keeps to the few elements there are; a key named like a property of objects is harmless.
 */
export function parsePlist(xml: string): PlistValue | null {
  const reader: Reader = { xml, token: new RegExp(TOKEN) };
  try {
    for (let tag = next(reader); tag !== null; tag = next(reader)) {
      if (tag.name === 'plist' && !tag.closes) {
        const first = next(reader);
        return first === null ? null : value(reader, first, 0);
      }
    }
    return null;
  } catch (error) {
    if (error instanceof NotAPlist) return null;
    throw error;
  }
}

class NotAPlist extends Error {}

interface Tag {
  readonly name: string;
  readonly closes: boolean;
  readonly empty: boolean;
  readonly end: number;
}

function next({ xml, token }: Reader): Tag | null {
  const match = token.exec(xml);
  if (match === null) return null;
  return { name: match[2] ?? '', closes: match[1] === '/', empty: match[4] === '/', end: token.lastIndex };
}

function need(reader: Reader): Tag {
  const tag = next(reader);
  if (tag === null) throw new NotAPlist();
  return tag;
}

function value(reader: Reader, tag: Tag, depth: number): PlistValue {
  if (tag.closes || depth > MAX_DEPTH) throw new NotAPlist();
  switch (tag.name) {
    case 'true':
    case 'false':
      if (!tag.empty) content(reader, tag);
      return tag.name === 'true';
    case 'integer':
    case 'real':
      return Number(content(reader, tag));
    case 'string':
    case 'date':
      return content(reader, tag);
    case 'data':
      return Buffer.from(content(reader, tag), 'base64');
    case 'array':
      return array(reader, tag, depth);
    case 'dict':
      return dict(reader, tag, depth);
    default:
      throw new NotAPlist();
  }
}

function array(reader: Reader, open: Tag, depth: number): readonly PlistValue[] {
  const items: PlistValue[] = [];
  if (open.empty) return items;
  for (let tag = need(reader); !tag.closes; tag = need(reader)) items.push(value(reader, tag, depth + 1));
  return items;
}

function dict(reader: Reader, open: Tag, depth: number): PlistDict {
  const members = Object.create(null) as Record<string, PlistValue>;
  if (open.empty) return members;
  for (let tag = need(reader); !tag.closes; tag = need(reader)) {
    if (tag.name !== 'key') throw new NotAPlist();
    const key = content(reader, tag);
    members[key] = value(reader, need(reader), depth + 1);
  }
  return members;
}

/** Text up to the closing tag. */
function content(reader: Reader, open: Tag): string {
  if (open.empty) return '';
  const close = need(reader);
  if (!close.closes || close.name !== open.name) throw new NotAPlist();
  const text = reader.xml.slice(open.end, reader.xml.lastIndexOf('<', close.end - 1));
  return text.replace(/&(lt|gt|amp|quot|apos);/g, (_, name: string) => ENTITIES[name] ?? '');
}
