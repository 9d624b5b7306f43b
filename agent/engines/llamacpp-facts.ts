import { createHash } from 'node:crypto';
import { z } from 'zod';
import { versionText } from './version-text.ts';

/** What a llama.cpp server tells of itself, as far as it is used. Everything else in these answers is ignored. */
const count = z.number().int().min(0).max(1e9);
const text = z.string().max(4096);

export const Props = z.object({
  default_generation_settings: z.object({ n_ctx: count }),
  total_slots: count.default(1),
  model_path: text.default(''),
  build_info: versionText,
  /** Random per process: a mark that passes through proxies. */
  media_marker: z.string().max(512).optional(),
  endpoint_metrics: z.boolean().optional(),
});
export type Props = z.infer<typeof Props>;

const Model = z.object({
  id: z.string().min(1).max(512),
  aliases: z.array(text).optional(),
  /** Router mode (a server without a model of its own). */
  status: z.object({ value: z.string().max(64) }).optional(),
  meta: z
    .object({
      n_ctx_train: count.optional(),
      n_embd: count.optional(),
      n_params: z.number().optional(),
      n_vocab: count.optional(),
      size: z.number().min(0).max(1e15).optional(),
      ftype: text.optional(),
    })
    .nullish(),
});
export type Model = z.infer<typeof Model>;
export const Models = z.object({ data: z.array(Model).max(512) });

export const SlotList = z.array(z.object({ is_processing: z.boolean() })).max(4096);

/** Changes whenever another model, build or process answers. */
export function identityOf(props: Props): string {
  const { build_info, media_marker, model_path, total_slots, default_generation_settings } = props;
  return JSON.stringify([build_info, media_marker, model_path, total_slots, default_generation_settings.n_ctx]);
}

/**
 * The server offers no digest of its weights; this one is over what it tells of them. Equal for equal files at equal paths,
 * different after a change of file, size or quantisation. Pooling is not in it: that is what process marks are for.
 */
export function digestOf(props: Props, model: Model): string {
  const { n_params, n_embd, n_vocab, size, ftype } = model.meta ?? {};
  const told = JSON.stringify([props.model_path, n_params, n_embd, n_vocab, size, ftype]);
  return createHash('sha256').update(told).digest('hex').slice(0, 32);
}

const ErrorBody = z.object({ error: z.object({ type: z.string().default('') }) });

export function errorType(body: unknown): string {
  const parsed = ErrorBody.safeParse(body);
  return parsed.success ? parsed.data.error.type : '';
}
