import { EventEmitter } from 'node:events';
import { describe, expect, it } from 'vitest';
import { Ending } from '../../main/desktop/ending.ts';

/** An app whose quit asks `before-quit` and then is gone, as Electron's. */
function rig() {
  const done: string[] = [];
  const signals = new Map<string, () => void>();
  let release: (whole: boolean) => void = () => undefined;
  let nowMs = 0;
  const events = new EventEmitter();
  const quit = () => {
    let prevented = false;
    events.emit('before-quit', { preventDefault: () => (prevented = true) });
    if (!prevented) done.push('gone');
  };
  const ending = new Ending({
    app: {
      on: (name: string, listener: () => void) => events.on(name, listener),
      quit,
      exit: (code: number) => done.push(`exit ${code}`),
    } as never,
    onSignal: (signal, listener) => signals.set(signal, listener),
    nowMs: () => nowMs,
    begin: () => done.push('begin'),
    stopServing: () =>
      new Promise((resolve, reject) => {
        release = (whole) => (whole ? resolve() : reject(new Error()));
      }),
    finish: () => done.push('finish'),
  });
  ending.start();
  const settle = async (whole = true) => {
    release(whole);
    await new Promise((resolve) => setImmediate(resolve));
  };
  return {
    ending,
    done,
    quit,
    settle,
    signal: (name = 'SIGTERM') => signals.get(name)?.(),
    pass: (ms: number) => (nowMs += ms),
  };
}

describe('the end of the desktop', () => {
  it('lets what runs end, then goes', async () => {
    const { done, quit, settle } = rig();
    quit();
    expect(done).toEqual(['begin']);
    await settle();
    expect(done).toEqual(['begin', 'finish', 'exit 0']);
  });

  it('says with its exit code that something did not end', async () => {
    const { done, quit, settle } = rig();
    quit();
    await settle(false);
    expect(done).toEqual(['begin', 'finish', 'exit 1']);
  });

  it('asked twice it does not wait; a key press that arrives twice is one', () => {
    const { done, signal, pass } = rig();
    signal('SIGINT');
    pass(3);
    signal('SIGINT');
    signal('SIGTERM');
    expect(done).toEqual(['begin']);
    pass(1000);
    signal('SIGINT');
    expect(done).toEqual(['begin', 'exit 1']);
  });

  it('an update drains in the same way, and its own quit passes', async () => {
    const { ending, done, quit, settle } = rig();
    const drained = ending.drain();
    await settle();
    await drained;
    quit();
    expect(done).toEqual(['begin', 'finish', 'gone']);
  });
});
