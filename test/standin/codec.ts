/** What crosses between worlds and processes: values as the structured clone knows them, as far as the app uses it. */
export interface Codec {
  /** `extend` may turn what the codec refuses (functions, promises) into a plain object with a `$` of its own. */
  encode(value: unknown, extend?: (value: unknown) => object | undefined): string;
  decode(text: string, extend?: (tagged: Record<string, unknown>) => unknown): unknown;
}

/**
 * Runs in Node and, stringified, in the page: it names nothing outside itself. Marks are objects with a `$`: `u` undefined, `n`
 * numbers that JSON lacks, `D` Date, `E` Error, `V` bytes, `O` an object that has a `$` of its own. Bytes cross under a one-time pad:
 * Electron never makes a string of them, so no string that holds them may stay in the heap here either.
 */
export function makeCodec(): Codec {
  const toBase64 = (bytes: Uint8Array): string => {
    if (typeof Buffer === 'function') return Buffer.from(bytes).toString('base64');
    let text = '';
    for (const byte of bytes) text += String.fromCharCode(byte);
    return btoa(text);
  };
  const fromBase64 = (text: string): Uint8Array => {
    if (typeof Buffer === 'function') return new Uint8Array(Buffer.from(text, 'base64'));
    return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  };
  const uncloneable = () => new Error('An object could not be cloned.');
  const encode: Codec['encode'] = (root, extend) => {
    const plain = (value: unknown, above: readonly unknown[]): unknown => {
      if (value === null || typeof value === 'string' || typeof value === 'boolean') return value;
      if (value === undefined) return { $: 'u' };
      if (typeof value === 'number') {
        return Number.isFinite(value) && !Object.is(value, -0)
          ? value
          : { $: 'n', v: Object.is(value, -0) ? '-0' : String(value) };
      }
      const extended = extend?.(value);
      if (extended) return extended;
      if (typeof value !== 'object' || above.includes(value)) throw uncloneable();
      const below = [...above, value];
      if (Array.isArray(value)) return value.map((one) => plain(one, below));
      const kind = Object.prototype.toString.call(value).slice(8, -1);
      if (kind === 'Date') return { $: 'D', v: (value as Date).getTime() };
      if (kind === 'Uint8Array') {
        const bytes = value as Uint8Array;
        const pad = crypto.getRandomValues(new Uint8Array(bytes.length));
        return { $: 'V', v: toBase64(bytes.map((byte, at) => byte ^ (pad[at] ?? 0))), p: toBase64(pad) };
      }
      if (value instanceof Error) return { $: 'E', n: value.name, m: value.message };
      if (kind !== 'Object') throw uncloneable();
      const entries = Object.entries(value).map(([name, one]) => [name, plain(one, below)] as const);
      return Object.hasOwn(value, '$') ? { $: 'O', e: entries } : Object.fromEntries(entries);
    };
    return JSON.stringify(plain(root, []));
  };
  const decode: Codec['decode'] = (text, extend) => {
    const rich = (value: unknown): unknown => {
      if (value === null || typeof value !== 'object') return value;
      if (Array.isArray(value)) return value.map(rich);
      const tagged = value as Record<string, unknown>;
      if (!Object.hasOwn(tagged, '$')) {
        return Object.fromEntries(Object.entries(tagged).map(([name, one]) => [name, rich(one)]));
      }
      if (tagged.$ === 'u') return undefined;
      if (tagged.$ === 'n') return tagged.v === '-0' ? -0 : Number(tagged.v);
      if (tagged.$ === 'D') return new Date(Number(tagged.v));
      if (tagged.$ === 'V') {
        const pad = fromBase64(String(tagged.p));
        return fromBase64(String(tagged.v)).map((byte, at) => byte ^ (pad[at] ?? 0));
      }
      if (tagged.$ === 'E') return Object.assign(new Error(String(tagged.m)), { name: String(tagged.n) });
      if (tagged.$ === 'O')
        return Object.fromEntries((tagged.e as [string, unknown][]).map(([name, one]) => [name, rich(one)]));
      if (extend) return extend(tagged);
      throw uncloneable();
    };
    return rich(JSON.parse(text));
  };
  return { encode, decode };
}
