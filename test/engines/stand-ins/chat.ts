import { pause, type Reply, type StandIn, type Trouble } from './stand-in.ts';

export interface Usage {
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  readonly total_tokens: number;
}

/** How an engine puts the parts of an answer. */
export interface ChatForm {
  /** Members of each chunk and of the whole answer beside `choices` and `usage`. */
  readonly top: (object: string) => Readonly<Record<string, unknown>>;
  /** Further members of the whole answer's message, the last chunk and so on are not needed by anybody. */
  readonly separator?: string;
  /** Raw events that a broken stream ends with; what follows them is the end of the stream. */
  readonly broken: readonly string[];
}

const WORDS = 'the quick brown fox jumps over the lazy dog and runs on through the night'.split(' ');

export const event = (data: unknown, separator = ' ') =>
  `data:${separator}${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`;

/** Tokens of a chat prompt: those of its messages. */
export async function promptTokens(standIn: StandIn, body: Readonly<Record<string, unknown>>): Promise<number> {
  const messages = Array.isArray(body.messages) ? body.messages : [];
  let tokens = 0;
  for (const message of messages) {
    const { content } = message as { content?: unknown };
    tokens += await standIn.vectors.count(typeof content === 'string' ? content : '');
  }
  return tokens;
}

/** Answers a chat request word by word, or whole. */
export async function recite(standIn: StandIn, reply: Reply, form: ChatForm, trouble: Trouble | null): Promise<void> {
  const { body } = reply;
  const limit = Number(body.max_tokens ?? body.max_completion_tokens ?? Number.POSITIVE_INFINITY);
  const count = Math.min(standIn.words, limit);
  const finish = count < standIn.words ? 'length' : 'stop';
  const prompt = await promptTokens(standIn, body);
  const usage: Usage = { prompt_tokens: prompt, completion_tokens: count, total_tokens: prompt + count };
  const word = (i: number) => `${i > 0 ? ' ' : ''}${WORDS[i % WORDS.length]}`;
  if (body.stream !== true) {
    for (let i = 0; i < count && !reply.gone; i++) {
      await pause(standIn.wordMs);
    }
    const content = Array.from({ length: count }, (_, i) => word(i)).join('');
    const message = { role: 'assistant', content };
    reply.json(200, {
      ...form.top('chat.completion'),
      choices: [{ index: 0, message, finish_reason: finish }],
      usage,
    });
    return;
  }
  reply.events();
  const chunk = (choices: readonly object[], more = {}) =>
    reply.write(event({ ...form.top('chat.completion.chunk'), choices, ...more }, form.separator));
  const breaksAt = trouble?.kind === 'mid-stream' || trouble?.kind === 'cut' ? trouble.afterWords : -1;
  for (let i = 0; i < count; i++) {
    if (i === breaksAt) {
      if (trouble?.kind === 'cut') reply.cut();
      for (const raw of form.broken) reply.write(raw);
      reply.end();
      return;
    }
    const delta = i === 0 ? { role: 'assistant', content: word(i) } : { content: word(i) };
    chunk([{ index: 0, delta, finish_reason: null }]);
    await pause(standIn.wordMs);
    if (reply.gone) return;
  }
  chunk([{ index: 0, delta: {}, finish_reason: finish }]);
  const options = body.stream_options as { include_usage?: boolean } | undefined;
  if (options?.include_usage === true) chunk([], { usage });
  reply.write(event('[DONE]', form.separator));
  reply.end();
}
