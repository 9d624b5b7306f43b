/** A bare word is no address but a slip, so one without a scheme has a port. No path, no user. */
const FORM = /^(?:https?:\/\/[^/?#@]+\/?|(?:\[[0-9a-f:.]+\]|[^:/?#@[\]]+):\d{1,5})$/i;

/** `http://HOST`, `https://HOST:PORT` or `HOST:PORT` as a URL; null: not in one of these forms. */
export function engineUrl(text: string): URL | null {
  const withScheme = /^https?:\/\//i.test(text) ? text : `http://${text}`;
  return FORM.test(text) && URL.canParse(withScheme) ? new URL(withScheme) : null;
}
