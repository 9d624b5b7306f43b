/**
 * Sum of a metric's samples over all its label sets, from Prometheus text. Only lines of that name are looked at: a vLLM page
 * has thousands of others.
 * @returns null when the page does not have it
 */
export function sumOf(page: string, name: string): number | null {
  let sum: number | null = null;
  let at = 0;
  for (;;) {
    at = page.indexOf(name, at);
    if (at < 0) return sum;
    const end = page.indexOf('\n', at);
    const line = page.slice(at, end < 0 ? page.length : end);
    const startsLine = at === 0 || page[at - 1] === '\n';
    const value = startsLine ? sampleOf(line, name) : null;
    if (value !== null) sum = (sum ?? 0) + value;
    at += line.length;
  }
}

/** `name 3`, `name{a="b"} 3`, each perhaps with a time after it. */
function sampleOf(line: string, name: string): number | null {
  const next = line[name.length];
  if (next !== ' ' && next !== '{') return null; // another name that begins alike
  const from = next === '{' ? line.lastIndexOf('}') + 1 : name.length;
  const [text = ''] = line.slice(from).trim().split(/\s+/);
  const value = Number(text);
  return text !== '' && Number.isFinite(value) ? value : null;
}

/** When the process began, in seconds; a mark that passes through proxies. Null where the page does not tell. */
export function processStart(page: string): string | null {
  const seconds = sumOf(page, 'process_start_time_seconds');
  return seconds === null ? null : `start=${seconds}`;
}
