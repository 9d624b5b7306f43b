import type { EngineHttp } from './engine-http.ts';
import { EngineFailure } from './failure.ts';
import { jsonOf } from './json-answer.ts';

/** Texts counted at once where a route takes one each. */
const AT_ONCE = 4;
const MAX_BYTES = 64 * 1024 * 1024;

export interface CountRoute {
  body(text: string): object;
  /** @throws EngineFailure when the answer is no count */
  read(answer: unknown): number;
}

/** Tokens of each text, by a route that takes one text. @throws EngineFailure `unsupported_task` when it has no such route */
export async function countEach(
  http: EngineHttp,
  path: string,
  texts: readonly string[],
  signal: AbortSignal,
  timeoutMs: number,
  route: CountRoute,
): Promise<number[]> {
  const counts = new Array<number>(texts.length).fill(0);
  let next = 0;
  const work = async () => {
    for (let i = next++; i < texts.length; i = next++) {
      const body = Buffer.from(JSON.stringify(route.body(texts[i] ?? '')));
      const answer = await http.fetch(path, { body, timeoutMs, maxBytes: MAX_BYTES, signal });
      if (answer.status !== 200) throw new EngineFailure('unsupported_task', { engineStatus: answer.status });
      counts[i] = route.read(jsonOf(answer));
    }
  };
  await Promise.all(Array.from({ length: Math.min(AT_ONCE, texts.length) }, work));
  return counts;
}
