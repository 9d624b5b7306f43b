import { z } from 'zod';
import { hasModel, type Ollama } from './ollama.ts';
import { type Progress, StepFailed } from './steps.ts';

/** Without a sign from Ollama for so long the download hangs. It says something several times a second. */
const SILENCE_MS = 120_000;
const MAX_LINE = 64 * 1024;

const size = z.number().int().min(0).max(1e15);
const Line = z.object({
  status: z.string().max(4096).optional(),
  digest: z.string().max(512).optional(),
  total: size.optional(),
  completed: size.optional(),
  error: z.string().max(4096).optional(),
});

/**
 * Lets Ollama fetch a model, and waits until it has it. Ollama takes up a broken download where it ended and checks each part
 * against its digest.
 * @throws StepFailed
 */
export async function pull(ollama: Ollama, model: string, progress: Progress): Promise<void> {
  const parts = new Map<string, { readonly total: number; readonly completed: number }>();
  let succeeded = false;
  for await (const { status, digest, total, completed, error } of lines(ollama, model)) {
    if (error !== undefined) throw refused(error);
    if (status === 'success') succeeded = true;
    if (digest === undefined || total === undefined || total === 0) continue;
    parts.set(digest, { total, completed: Math.min(completed ?? 0, total) });
    const all = [...parts.values()];
    const sum = (key: 'total' | 'completed') => all.reduce((bytes, part) => bytes + part[key], 0);
    progress.percent((100 * sum('completed')) / sum('total'));
  }
  if (!succeeded || !(await hasModel(ollama, model))) throw new StepFailed('model_failed', BROKE_OFF);
}

const BROKE_OFF = 'The download of the model broke off. Run the same command again: it goes on from there.';

/** Ollama's own words are read for what they mean, and not passed on. */
function refused(error: string): StepFailed {
  if (/no space left|disk full|not enough space/i.test(error)) {
    return new StepFailed('disk_full', 'The disk is full. Make room and run the same command again.');
  }
  if (/does not exist|not found|invalid model name/i.test(error)) {
    return new StepFailed('model_unknown', 'Ollama knows no model of that name. Make a new command with another one.');
  }
  return new StepFailed('model_failed', BROKE_OFF);
}

async function* lines({ origin }: Ollama, model: string): AsyncGenerator<z.infer<typeof Line>> {
  const silence = new AbortController();
  let timer = setTimeout(() => silence.abort(), SILENCE_MS);
  try {
    const body = JSON.stringify({ model, stream: true });
    const answer = await fetch(`${origin}/api/pull`, {
      method: 'POST',
      redirect: 'error',
      body,
      signal: silence.signal,
    });
    if (answer.body === null) throw new Error('no answer');
    let held = '';
    for await (const text of answer.body.pipeThrough(new TextDecoderStream())) {
      clearTimeout(timer);
      timer = setTimeout(() => silence.abort(), SILENCE_MS);
      const whole = `${held}${text}`.split('\n');
      held = whole.pop() ?? '';
      if (held.length > MAX_LINE) throw new Error('a line without an end');
      for (const line of whole) if (line.trim() !== '') yield Line.parse(JSON.parse(line));
    }
    if (held.trim() !== '') yield Line.parse(JSON.parse(held));
  } catch (error) {
    if (error instanceof StepFailed) throw error;
    throw new StepFailed('model_failed', BROKE_OFF);
  } finally {
    clearTimeout(timer);
  }
}
