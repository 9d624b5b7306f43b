import { Show, Version } from '../engines/ollama-facts.ts';

const GREETING = 'Ollama is running';
const ANSWER_MS = 3000;
/** A model's card is read from the disk. */
const SHOW_MS = 15_000;
/** Earlier ones have holes that are known. */
export const LEAST_OLLAMA = [0, 17, 1] as const;

export interface Ollama {
  /** `http://127.0.0.1:11434` */
  readonly origin: string;
}

/** The version of the Ollama that answers there; null: none does. */
export async function runningVersion({ origin }: Ollama): Promise<string | null> {
  try {
    const greeting = await fetch(`${origin}/`, { redirect: 'error', signal: AbortSignal.timeout(ANSWER_MS) });
    if ((await greeting.text()) !== GREETING) return null;
    const answer = await fetch(`${origin}/api/version`, { redirect: 'error', signal: AbortSignal.timeout(ANSWER_MS) });
    return Version.parse(await answer.json()).version;
  } catch {
    return null;
  }
}

/** A version that cannot be read (a build of one's own) counts as new: whoever made it knows. */
export function isTooOld(version: string): boolean {
  const parts = /^v?(\d+)\.(\d+)\.(\d+)/.exec(version)?.slice(1).map(Number);
  if (parts === undefined || parts.every((part) => part === 0)) return false;
  for (const [at, least] of LEAST_OLLAMA.entries()) {
    const part = parts[at] ?? 0;
    if (part !== least) return part < least;
  }
  return false;
}

export async function hasModel({ origin }: Ollama, model: string): Promise<boolean> {
  try {
    const answer = await fetch(`${origin}/api/show`, {
      method: 'POST',
      redirect: 'error',
      body: JSON.stringify({ model }),
      signal: AbortSignal.timeout(SHOW_MS),
    });
    return answer.status === 200 && Show.safeParse(await answer.json()).success;
  } catch {
    return false;
  }
}
