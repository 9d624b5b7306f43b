import { performance } from 'node:perf_hooks';
import type { Clock } from '../main/domain/time.ts';

/** The machine's own clock. Timers do not keep the process alive: the listener does. */
export function createAgentClock(): Clock {
  return {
    nowMs: () => performance.now(),
    wallMs: () => Date.now(),
    after(delayMs, callback) {
      // Node runs longer timers at once; nothing here waits for 24 days.
      const timer = setTimeout(callback, Math.min(Math.max(0, delayMs), 2 ** 31 - 1));
      timer.unref();
      return () => clearTimeout(timer);
    },
  };
}
