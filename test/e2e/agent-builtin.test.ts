import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { findEncoder, startChild } from '../../agent/builtin/child.ts';
import { BuiltinEngine } from '../../agent/builtin/engine.ts';
import { createAgentClock } from '../../agent/clock.ts';
import { EngineReport } from '../../agent/wire/control.ts';
import { chatCall, embedCall, type RecordedCall, tokenizeCall } from '../agent/recorded-call.ts';

const version = findEncoder();
const missing = version === null && process.env.SWITCHYARD_NO_SKIP !== '1';

describe.skipIf(missing)('the built-in encoder (skipped where its optional packages are not installed)', () => {
  let changes = 0;
  let pid: number | undefined;
  const engine = new BuiltinEngine({
    version: version ?? '',
    clock: createAgentClock(),
    start: () => {
      const child = startChild();
      pid = child.pid;
      return child;
    },
    onChange: () => void changes++,
  });
  const model = engine.report().models[0]?.model ?? '';
  const place = { engine: engine.id, model };
  const run = async <C extends RecordedCall>(call: C): Promise<C> => {
    engine.serve(call);
    await call.over;
    return call;
  };
  const rows = async (texts: readonly string[], more = {}) => {
    const call = await run(embedCall(place, texts, more));
    expect(call.failure).toBeNull();
    return call.vectors;
  };

  beforeAll(() => engine.start());
  afterAll(() => engine.stop());

  it('is reported before anything is loaded, and starts no process for that', () => {
    expect(version).not.toBeNull();
    const report = EngineReport.parse(engine.report());
    expect(report).toMatchObject({
      kind: 'builtin',
      state: 'ready',
      slots: 1,
      processMark: expect.stringMatching(/^version:/),
      address: '',
    });
    expect(report.models[0]).toMatchObject({
      width: 512,
      maxInputTokens: 128,
      tasks: ['embed'],
      trial: true,
      loaded: false,
    });
    expect(pid).toBeUndefined();
  });

  it('starts with the first call, says so, and gives unit vectors that know alike from unlike', async () => {
    const [a, b, c] = await rows(['How old are you?', 'What is your age?', 'The engine burns diesel.']);
    const dot = (x: Float32Array = new Float32Array(), y: Float32Array = new Float32Array()) =>
      x.reduce((sum, value, i) => sum + value * (y[i] ?? 0), 0);
    expect(dot(a, a)).toBeCloseTo(1, 5);
    expect(dot(a, b)).toBeGreaterThan(dot(a, c) + 0.2);
    expect(changes).toBe(1);
    expect(engine.report().models[0]).toMatchObject({ loaded: true, tokensPerSecond: expect.any(Number) });
  });

  it('gives the very same vector alone, in a batch and again', async () => {
    const texts = [
      'a',
      'URGENT: SERVER ROOM',
      'Überschwemmung',
      'three words here',
      'a much longer sentence than the others',
    ];
    const batch = await rows(texts);
    for (const [i, text] of texts.entries()) expect((await rows([text]))[0]).toEqual(batch[i]);
    expect(await rows(texts)).toEqual(batch);
  });

  it('cuts, then normalises', async () => {
    const [cut] = await rows(['alpha'], { cut: 8 });
    expect(cut).toHaveLength(8);
    expect(cut?.reduce((sum, value) => sum + value * value, 0)).toBeCloseTo(1, 5);
  });

  it('takes 128 tokens and refuses 129, naming index and count', async () => {
    const word = (count: number) => 'word '.repeat(count).trim();
    const counted = await run(tokenizeCall(place, [word(128), word(129)]));
    expect(counted.json).toEqual({ tokens: [128, 129] });
    await rows([word(128)]);
    const call = await run(embedCall(place, ['ok', word(129)]));
    expect(call.failure).toMatchObject({ blame: 'caller', code: 'input_too_long', limitTokens: 128 });
    expect(call.failure?.failing).toEqual([{ index: 1, tokens: 129 }]);
    expect((await run(embedCall(place, ['']))).failure).toMatchObject({ blame: 'caller', code: 'empty_input' });
  });

  it('refuses another mark, another width, other work; one call may wait behind the running one, a third is told that it is busy', async () => {
    expect((await run(embedCall(place, ['a'], { processMark: '1@1' }))).failure?.code).toBe('fingerprint_changed');
    expect((await run(embedCall(place, ['a'], { width: 384 }))).failure?.code).toBe('engine_invalid_response');
    expect((await run(chatCall(place, {}))).failure?.code).toBe('unsupported_task');
    const first = embedCall(place, ['a']);
    const second = embedCall(place, ['b']);
    engine.serve(first);
    engine.serve(second);
    expect((await run(embedCall(place, ['c']))).failure).toMatchObject({ blame: 'busy', code: 'engine_busy' });
    await Promise.all([first.over, second.over]);
    expect([first.failure, second.failure]).toEqual([null, null]);
  });

  it('lets the caller leave in the middle of a batch', async () => {
    const call = embedCall(
      place,
      Array.from({ length: 32 }, (_, i) => `${i} ${'word '.repeat(100)}`),
    );
    engine.serve(call);
    call.controls.abort();
    await expect.poll(() => engine.report().running).toBe(0);
    const before = performance.now();
    await rows(['next']);
    // 32 such texts take two seconds or more; the next call did not wait for them.
    expect(performance.now() - before).toBeLessThan(1500);
    expect(call.chunks).toEqual([]);
  });

  it('is started again after a crash with the mark it had, for the weights are the same; the call that was running fails', async () => {
    const mark = engine.report().processMark;
    const [before] = await rows(['the same text']);
    const call = embedCall(
      place,
      Array.from({ length: 16 }, () => 'word '.repeat(100)),
    );
    engine.serve(call);
    if (pid !== undefined) process.kill(pid, 'SIGKILL');
    await call.over;
    expect(call.failure).toMatchObject({ blame: 'engine', code: 'engine_error', afterFirstByte: false });
    const [after] = await rows(['the same text']);
    expect(after).toEqual(before);
    expect(engine.report().processMark).toBe(mark);
  });

  it('keeps its memory to itself and shows its child no secrets', () => {
    if (process.platform !== 'linux' || pid === undefined) return;
    const environment = readFileSync(`/proc/${pid}/environ`, 'utf8');
    expect(environment).not.toContain('VITEST');
    expect(environment).toContain('PATH=');
  });

  it('ends its child when it stops', async () => {
    const running = pid ?? 0;
    engine.stop();
    await expect
      .poll(() => {
        try {
          return process.kill(running, 0);
        } catch {
          return false;
        }
      })
      .toBe(false);
    expect((await run(embedCall(place, ['late']))).failure?.code).toBe('engine_unreachable');
  });
});
