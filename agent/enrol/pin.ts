/** `sha256//` and the base64 of a SHA-256, as curl writes it; null for anything else. */
export function parsePin(text: string): Buffer | null {
  const base64 = /^sha256\/\/([A-Za-z0-9+/]{43}=)$/.exec(text)?.[1];
  const pin = base64 === undefined ? null : Buffer.from(base64, 'base64');
  return pin?.length === 32 && pin.toString('base64') === base64 ? pin : null;
}
