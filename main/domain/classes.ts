/** Priority classes, highest first. A key caps the class its requests may claim. */
export const PRIORITY_CLASSES = ['interactive', 'normal', 'batch'] as const;
export type PriorityClass = (typeof PRIORITY_CLASSES)[number];

/** Longest time from arrival to first dispatch, by class (SPEC 3). */
export const QUEUE_DEADLINE_MS: Readonly<Record<PriorityClass, number>> = {
  interactive: 30_000,
  normal: 120_000,
  batch: 600_000,
};
