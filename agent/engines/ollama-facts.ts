import { z } from 'zod';

/** What Ollama tells, as far as it is used. Everything else in these answers is ignored. */
const count = z.number().int().min(0).max(1e15);
const text = z.string().max(4096);
const name = z.string().min(1).max(512);

export const Version = z.object({ version: z.string().min(1).max(128) });

const Tag = z.object({
  name,
  digest: z.string().max(512).default(''),
  size: count.optional(),
  /** Set for a cloud model: the work is done there. */
  remote_host: z.string().max(512).optional(),
});
export type Tag = z.infer<typeof Tag>;
export const Tags = z.object({ models: z.array(Tag).max(4096).nullable() });

const Loaded = z.object({ name, context_length: count.optional() });
export const Processes = z.object({ models: z.array(Loaded).max(4096).nullable() });

export const Show = z.object({
  parameters: z.string().max(100_000).default(''),
  model_info: z.record(z.string(), z.unknown()).default({}),
  capabilities: z.array(text).optional(),
});
export type Show = z.infer<typeof Show>;

export const Embedded = z.object({
  embeddings: z.array(z.unknown()),
  prompt_eval_count: count.optional(),
});

export interface ShownModel {
  readonly tasks: readonly ('chat' | 'embed')[];
  readonly width: number | null;
  /** As trained. */
  readonly trainedTokens: number | null;
  /** `PARAMETER num_ctx` and `num_batch` of its Modelfile. */
  readonly contextParameter: number | null;
  readonly batchParameter: number | null;
}

export function readShow(show: Show): ShownModel {
  const { capabilities, model_info: info, parameters } = show;
  const architecture = typeof info['general.architecture'] === 'string' ? info['general.architecture'] : '';
  const number = (key: string) => {
    const value = info[`${architecture}.${key}`];
    return typeof value === 'number' && Number.isInteger(value) && value > 0 && value <= 1e9 ? value : null;
  };
  // Older releases list no capabilities; there a pooling type is what makes an encoder.
  const embeds = capabilities?.includes('embedding') ?? info[`${architecture}.pooling_type`] !== undefined;
  const chats = capabilities?.includes('completion') ?? !embeds;
  return {
    tasks: [...(chats ? (['chat'] as const) : []), ...(embeds ? (['embed'] as const) : [])],
    width: embeds ? number('embedding_length') : null,
    trainedTokens: number('context_length'),
    contextParameter: parameterOf(parameters, 'num_ctx'),
    batchParameter: parameterOf(parameters, 'num_batch'),
  };
}

function parameterOf(parameters: string, key: string): number | null {
  const value = new RegExp(`^${key}\\s+(\\d{1,9})$`, 'm').exec(parameters)?.[1];
  return value === undefined ? null : Number(value);
}

/** Ollama's own, and the least of those it derives from the size of the video memory. */
const DEFAULT_BATCH = 2048;
const LEAST_DEFAULT_CONTEXT = 4096;

/** Longest single input: what is allocated, and the batch through which an encoder must read a text in one piece. */
export function inputLimit(shown: ShownModel, allocated: number | null): number {
  const context = allocated ?? shown.contextParameter ?? LEAST_DEFAULT_CONTEXT;
  return Math.min(context, shown.trainedTokens ?? context, shown.batchParameter ?? DEFAULT_BATCH);
}
