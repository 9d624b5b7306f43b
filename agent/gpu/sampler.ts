import type { GpuReport } from '../wire/control.ts';

/** Live values of this machine's GPUs. What cannot be read is null, never 0. */
export interface GpuSampler {
  start(): void;
  stop(): void;
  /** The last values; never waits. */
  latest(): readonly GpuReport[];
}
