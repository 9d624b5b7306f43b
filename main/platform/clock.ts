import { performance } from 'node:perf_hooks';
import type { Clock } from '../domain/time.ts';

/** The machine's own clock. Timers do not keep the process alive: services that must, hold a socket. */
export function createSystemClock(): Clock {
  return {
    nowMs: () => performance.now(),
    wallMs: () => Date.now(),
    after(delayMs, callback) {
      const timer = setTimeout(callback, Math.max(0, delayMs));
      timer.unref();
      return () => clearTimeout(timer);
    },
  };
}
