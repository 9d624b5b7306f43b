import { z } from 'zod';

/** One text of the probe set. Ids are stable; a change of any text raises the version of the set. */
export interface ProbeText {
  readonly id: string;
  readonly text: string;
}

export interface ProbeSet {
  readonly version: number;
  readonly probes: readonly ProbeText[];
  /** Sixteen texts of equal length, sent as one batch and one by one: a padding fault shows only when nothing is padded. */
  readonly equalLength: readonly ProbeText[];
}

/** The texts one space was founded on: they stay with it, so that a later probe set never changes what was compared. */
export interface SpaceProbes {
  readonly version: number;
  /** Compared with the anchor row by row: the texts within the limit, then the two made for the window. */
  readonly texts: readonly ProbeText[];
  readonly equalLength: readonly ProbeText[];
  /** Longer than the limit; see `overLimitTexts`. */
  readonly overLimit: OverLimitTexts;
}

/**
 * Three texts over the limit. An encoder must refuse them or read them whole. `base` and `otherTail` agree in everything
 * within the limit, `base` and `otherHead` in everything after it: an encoder that cuts gives two of them the same vector.
 */
export interface OverLimitTexts {
  readonly base: string;
  readonly otherTail: string;
  readonly otherHead: string;
}

const ProbeSchema = z.object({ id: z.string().min(1).max(64), text: z.string().min(1).max(100_000) });

const ProbeFile = z.object({
  version: z.number().int().min(1),
  probes: z.array(ProbeSchema).min(8).max(512),
  equalLengthBatch: z.object({ texts: z.array(z.string().min(1).max(1000)).min(16).max(64) }),
});

/**
 * Reads the parsed JSON of `assets/probes.json`.
 *
 * @throws Error when the file does not have that form or repeats an id or a text: two equal probes would look collapsed.
 */
export function parseProbeSet(json: unknown): ProbeSet {
  const parsed = ProbeFile.safeParse(json);
  if (!parsed.success) throw new Error('assets/probes.json is not a probe set');
  const { version, probes, equalLengthBatch } = parsed.data;
  const equalLength = equalLengthBatch.texts.map((text, index) => ({ id: `equal-${index + 1}`, text }));
  const all = [...probes, ...equalLength];
  for (const part of ['id', 'text'] as const) {
    if (new Set(all.map((probe) => probe[part])).size !== all.length) {
      throw new Error(`assets/probes.json repeats a probe ${part}`);
    }
  }
  return { version, probes, equalLength };
}

/** Every text with a row in the anchor, in the order of the rows. */
export function anchorTexts(probes: SpaceProbes): readonly ProbeText[] {
  return [...probes.texts, ...probes.equalLength];
}
