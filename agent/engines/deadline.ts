import type { Clock } from '../../main/domain/time.ts';
import { EngineFailure } from './failure.ts';

/**
 * Does work that may take `timeoutMs` in all, however busy it looks meanwhile. The work's own signal fires then, and when
 * `outer` does.
 * @throws EngineFailure `engine_timeout` (as the reason of the signal); the reason of `outer`; what the work throws
 */
export async function within<T>(
  clock: Clock,
  timeoutMs: number,
  outer: AbortSignal,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const inner = new AbortController();
  const onAbort = () => inner.abort(outer.reason);
  if (outer.aborted) onAbort();
  else outer.addEventListener('abort', onAbort, { once: true });
  const cancelTimer = clock.after(timeoutMs, () => inner.abort(new EngineFailure('engine_timeout')));
  try {
    return await work(inner.signal);
  } finally {
    cancelTimer();
    outer.removeEventListener('abort', onAbort);
  }
}
