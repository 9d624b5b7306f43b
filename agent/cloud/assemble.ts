import { isRecord } from '../engines/sse.ts';

interface Choice {
  content: string;
  reasoning: string;
  refusal: string;
  readonly details: unknown[];
  readonly logprobs: unknown[];
  readonly tools: Map<number, ToolCall>;
  finishReason: string | null;
}

interface ToolCall {
  id: string;
  type: string;
  name: string;
  arguments: string;
}

/** Puts the chunks of a stream together to the answer that was asked for: one `chat.completion`. */
export class Assembler {
  readonly #choices = new Map<number, Choice>();
  #head: Readonly<Record<string, unknown>> = {};
  #usage: unknown;

  add(chunk: Readonly<Record<string, unknown>>): void {
    if (this.#head.id === undefined) {
      const { id, model, created, provider, system_fingerprint: fingerprint } = chunk;
      this.#head = {
        id,
        model,
        created,
        ...(provider === undefined ? {} : { provider }),
        system_fingerprint: fingerprint ?? null,
      };
    }
    if (isRecord(chunk.usage)) this.#usage = chunk.usage;
    for (const choice of Array.isArray(chunk.choices) ? chunk.choices : [])
      if (isRecord(choice)) this.#addChoice(choice);
  }

  toJson(): string {
    const { id, model, created, ...rest } = this.#head;
    const choices = [...this.#choices].sort(([a], [b]) => a - b).map(([index, choice]) => assembled(index, choice));
    return JSON.stringify({ id, object: 'chat.completion', created, model, ...rest, choices, usage: this.#usage });
  }

  #addChoice(part: Readonly<Record<string, unknown>>): void {
    const index = typeof part.index === 'number' ? part.index : 0;
    const choice = this.#choices.get(index) ?? emptyChoice();
    this.#choices.set(index, choice);
    const delta = isRecord(part.delta) ? part.delta : {};
    choice.content += text(delta.content);
    choice.reasoning += text(delta.reasoning);
    choice.refusal += text(delta.refusal);
    if (Array.isArray(delta.reasoning_details)) choice.details.push(...delta.reasoning_details);
    if (isRecord(part.logprobs) && Array.isArray(part.logprobs.content)) choice.logprobs.push(...part.logprobs.content);
    for (const tool of Array.isArray(delta.tool_calls) ? delta.tool_calls : [])
      if (isRecord(tool)) addTool(choice, tool);
    if (typeof part.finish_reason === 'string') choice.finishReason = part.finish_reason;
  }
}

function emptyChoice(): Choice {
  return { content: '', reasoning: '', refusal: '', details: [], logprobs: [], tools: new Map(), finishReason: null };
}

function addTool(choice: Choice, part: Readonly<Record<string, unknown>>): void {
  const index = typeof part.index === 'number' ? part.index : choice.tools.size;
  const tool = choice.tools.get(index) ?? { id: '', type: 'function', name: '', arguments: '' };
  choice.tools.set(index, tool);
  tool.id ||= text(part.id);
  tool.type = text(part.type) || tool.type;
  if (!isRecord(part.function)) return;
  tool.name += text(part.function.name);
  tool.arguments += text(part.function.arguments);
}

function assembled(index: number, choice: Choice): Readonly<Record<string, unknown>> {
  const tools = [...choice.tools]
    .sort(([a], [b]) => a - b)
    .map(([, tool]) => ({
      id: tool.id,
      type: tool.type,
      function: { name: tool.name, arguments: tool.arguments },
    }));
  return {
    index,
    finish_reason: choice.finishReason,
    logprobs: choice.logprobs.length === 0 ? null : { content: choice.logprobs },
    message: {
      role: 'assistant',
      content: choice.content === '' && tools.length > 0 ? null : choice.content,
      refusal: choice.refusal === '' ? null : choice.refusal,
      ...(choice.reasoning === '' ? {} : { reasoning: choice.reasoning }),
      ...(choice.details.length === 0 ? {} : { reasoning_details: choice.details }),
      ...(tools.length === 0 ? {} : { tool_calls: tools }),
    },
  };
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
