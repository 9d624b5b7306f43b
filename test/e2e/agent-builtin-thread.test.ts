import { afterAll, describe, expect, it } from 'vitest';
import { type EncoderChild, findEncoder, startProcess, startThread } from '../../agent/builtin/child.ts';
import { BuiltinEngine } from '../../agent/builtin/engine.ts';
import { MODEL, WIDTH, type WorkAnswer, type WorkRequest } from '../../agent/builtin/messages.ts';
import { createAgentClock } from '../../agent/clock.ts';
import { embedCall } from '../agent/recorded-call.ts';

const version = findEncoder();
const missing = version === null && process.env.SWITCHYARD_NO_SKIP !== '1';

/** Asks a child once; resolves with its answer, rejects when it ends instead. */
function ask(child: EncoderChild, request: WorkRequest): Promise<WorkAnswer> {
  return new Promise((resolve, reject) => {
    child.on('message', (answer) => {
      if (answer.id === request.id) resolve(answer);
    });
    child.once('exit', () => reject(new Error('the child ended')));
    child.send(request, (error) => error && reject(error));
  });
}

describe.skipIf(missing)(
  'the encoder as a thread, where no process may be started (skipped without its packages)',
  () => {
    const children: EncoderChild[] = [];
    const started = (child: EncoderChild) => {
      children.push(child);
      return child;
    };
    afterAll(() => {
      for (const child of children) child.kill();
    });

    it('gives the very vectors that the process gives', async () => {
      const texts = ['a switchyard sorts wagons', 'Ünïcödé und Umlaute', '日本語'];
      const [thread, forked] = await Promise.all(
        [startThread(), startProcess()].map((child) => ask(started(child), { id: 1, op: 'embed', texts })),
      );
      expect(thread).toMatchObject({ kind: 'vectors' });
      if (thread?.kind !== 'vectors') return;
      expect(thread.values).toHaveLength(texts.length * WIDTH);
      expect(thread.values.every(Number.isFinite)).toBe(true);
      expect(thread).toEqual(forked);
    });

    it('serves the engine, is ended in the middle of its work, and is started again', async () => {
      let child: EncoderChild | null = null;
      const engine = new BuiltinEngine({
        version: version ?? '',
        clock: createAgentClock(),
        start: () => {
          child = started(startThread());
          return child;
        },
        onChange: () => undefined,
      });
      engine.start();
      const run = async (texts: readonly string[], meanwhile?: () => void) => {
        const call = embedCall({ engine: engine.id, model: MODEL }, texts);
        engine.serve(call);
        meanwhile?.();
        await call.over;
        return call;
      };
      expect((await run(['the same text'])).failure).toBeNull();
      const cut = await run(
        Array.from({ length: 16 }, () => 'word '.repeat(100)),
        () => child?.kill(),
      );
      expect(cut.failure).toMatchObject({ blame: 'engine', code: 'engine_error' });
      expect((await run(['the same text'])).failure).toBeNull();
      engine.stop();
      expect((await run(['late'])).failure?.code).toBe('engine_unreachable');
    });
  },
);
