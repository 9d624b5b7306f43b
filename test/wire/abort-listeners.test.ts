import { describe, expect, it } from 'vitest';
import { AbortListeners } from '../../agent/wire/abort-listeners.ts';

describe('an abort', () => {
  it('is heard once by each listener that was not forgotten, by the signal first', () => {
    const abort = new AbortListeners();
    const heard: string[] = [];
    abort.on(() => heard.push(`first, ${abort.signal.aborted}`));
    const forget = abort.on(() => heard.push('forgotten'));
    abort.on(() => heard.push('second'));
    abort.signal.addEventListener('abort', () => heard.push('signal'));
    forget();
    abort.abort();
    abort.abort();
    expect(heard).toEqual(['signal', 'first, true', 'second']);
  });

  it('that has been is heard at once, and by a signal that is asked for afterwards', () => {
    const abort = new AbortListeners();
    expect(abort.aborted).toBe(false);
    abort.abort();
    let heard = 0;
    abort.on(() => {
      heard += 1;
    })();
    expect([heard, abort.signal.aborted, abort.aborted]).toEqual([1, true, true]);
    expect(abort.signal).toBe(abort.signal);
  });
});
