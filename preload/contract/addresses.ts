/** Shapes of addresses, for the schemas of the border and for the fields of a window alike; without schema code. */

const LABEL = /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/i;
const IPV4 = /^(?:25[0-5]|2[0-4]\d|1?\d?\d)(?:\.(?:25[0-5]|2[0-4]\d|1?\d?\d)){3}$/;

function isIpv6(text: string): boolean {
  const [address = '', zone, ...rest] = text.split('%');
  if (rest.length > 0 || (zone !== undefined && !/^[\w.-]{1,32}$/.test(zone))) return false;
  return /^[0-9a-f:.]+$/i.test(address) && address.includes(':') && URL.canParse(`http://[${address}]/`);
}

/** A DNS name as one types it: `box.lan`. What has only figures and points is an address or nothing. */
export function isHostName(text: string): boolean {
  if (text.length > 253 || /^[\d.]+$/.test(text)) return false;
  return text.split('.').every((label) => LABEL.test(label));
}

/** An IP address as it stands in `Listen on`, or a name. Whether it is one of this machine is another question. */
export function isListenAddress(text: string): boolean {
  return IPV4.test(text) || isIpv6(text) || isHostName(text);
}

/** What may stand in a Host header without its port. */
export function isServedName(text: string): boolean {
  return IPV4.test(text) || isHostName(text) || (/^\[.*\]$/.test(text) && isIpv6(text.slice(1, -1)));
}

/** Exactly what a browser sends as Origin: `https://tool.example`, `http://box.lan:8080`, `chrome-extension://abc`. */
export function isOrigin(text: string): boolean {
  if (!/^[a-z][a-z0-9+.-]*:\/\/[^\s/?#@\\]+$/.test(text) || !URL.canParse(text)) return false;
  const { protocol, origin } = new URL(text);
  return protocol === 'http:' || protocol === 'https:' ? origin === text : true;
}
