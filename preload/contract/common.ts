import { z } from 'zod';
import { PRIORITY_CLASSES } from '../../main/domain/classes.ts';
import { POLICIES } from '../../main/domain/policy.ts';
import { ROLE_IDS } from '../../main/domain/roles.ts';
import { RANGES } from './names.ts';

/** `read` never changes anything and may be repeated; `change` is refused while the store cannot be written. */
export type OperationKind = 'read' | 'change';

/** One thing an operator can do. `summary` is the line that API descriptions print. */
export interface Operation<Input extends z.ZodType = z.ZodType, Output extends z.ZodType = z.ZodType> {
  readonly kind: OperationKind;
  readonly summary: string;
  readonly input: Input;
  readonly output: Output;
}

export const read = <Input extends z.ZodType, Output extends z.ZodType>(
  summary: string,
  input: Input,
  output: Output,
): Operation<Input, Output> => ({ kind: 'read', summary, input, output });

export const change = <Input extends z.ZodType, Output extends z.ZodType>(
  summary: string,
  input: Input,
  output: Output,
): Operation<Input, Output> => ({ kind: 'change', summary, input, output });

export const Nothing = z.strictObject({});
export const Done = z.object({ done: z.literal(true) });

export const id = z.string().min(1).max(1024);
/** A name that people gave or will read; at most one line. */
export const label = z.string().max(256);
export const text = z.string().max(4096);
/** Milliseconds since the Unix epoch. */
export const atMs = z.number().int().min(0);
/** A span in milliseconds. */
export const ms = z.number().min(0);
export const count = z.number().int().min(0);
export const amount = z.number().min(0);
export const usd = z.number();

export const RoleName = z.enum(ROLE_IDS);
export const PolicyName = z.enum(POLICIES);
export const ClassName = z.enum(PRIORITY_CLASSES);
export const KindName = z.enum(['local', 'cloud']);

/**
 * A machine-readable code with the sentence that we wrote for it, in English. `params` are the names and figures inside the
 * sentence, so that a console in another language can say it anew; it keeps the English where it cannot.
 */
const Part = z.object({
  code: z.string().max(64),
  sentence: text,
  params: z
    .record(z.string().max(32), z.union([z.string().max(2048), z.number()]))
    .readonly()
    .optional(),
});
export const Reason = Part.extend({
  /** Further sentences, which `sentence` has too. */
  more: z.array(Part).max(8).readonly().optional(),
});
export type Reason = z.infer<typeof Reason>;
/** A sentence that stands beside, by code and figures. Absent in what was stored before there was such a thing. */
export const Says = Reason.omit({ sentence: true });
export type Says = z.infer<typeof Says>;

/** A document to save: exports and bundles. They never carry keys, hashes, tokens or prompts. */
export const FileOut = z.object({ fileName: z.string().max(255), mediaType: z.string().max(100), content: z.string() });
/** A document that was saved earlier, at most 16 MiB of JSON text. */
export const FileIn = z.string().max(16 * 1024 * 1024);

export const Range = z.enum(RANGES);
export type Range = z.infer<typeof Range>;

/** Values on one shared time axis; `null` where nothing was sampled, so that a gap stays a gap. */
export const Series = z.object({
  /** Stable per entity, so that it keeps its colour: `queue.embedding`, `permits.ceiling`, `429.nebius`. */
  id: z.string().max(256),
  values: z.array(z.number().nullable()),
});
export type Series = z.infer<typeof Series>;
