import { createServer } from 'node:net';
import { describe, expect, it } from 'vitest';
import { createProcessMarks } from '../../../agent/engines/process-mark.ts';
import { Slots } from '../../../agent/engines/slots.ts';

describe('an engine of one slot', () => {
  const first = { controller: 'one', follows: true };
  const second = { controller: 'two', follows: true };

  it('lets one embedding call wait behind another, and no third', () => {
    const slots = new Slots();
    expect(slots.take(1, first)).not.toBeNull();
    expect(slots.take(1, second)).not.toBeNull();
    expect(slots.take(1, first)).toBeNull();
  });

  it('lets nothing else wait', () => {
    const slots = new Slots();
    slots.take(1, first);
    expect(slots.take(1, { controller: 'one', follows: false })).toBeNull();
  });

  it('with more slots than one keeps to them: nobody idles there', () => {
    const slots = new Slots();
    slots.resize(2);
    slots.take(1, first);
    slots.take(1, first);
    expect(slots.take(1, first)).toBeNull();
  });

  it("counts each control plane's calls", () => {
    const slots = new Slots();
    const release = slots.take(1, first);
    slots.take(1, second);
    expect([slots.runningOf('one'), slots.runningOf('two'), slots.runningOf('three')]).toEqual([1, 1, 0]);
    release?.();
    release?.();
    expect([slots.runningOf('one'), slots.running]).toEqual([0, 1]);
  });
});

describe.runIf(process.platform === 'linux')('many who ask at once which process listens', () => {
  it('all hear the same, and hear of a listener that is gone as soon as they ask again', async () => {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const address = server.address();
    const port = typeof address === 'object' && address !== null ? address.port : 0;
    const marks = createProcessMarks();
    const told = await Promise.all(Array.from({ length: 50 }, () => marks.read(port)));
    expect(new Set(told).size).toBe(1);
    expect(told[0]).toMatch(new RegExp(`^${process.pid}@`));
    // One look is under way when the server closes; who asks then must not be given its answer.
    const early = marks.read(port);
    await new Promise((resolve) => server.close(resolve));
    const late = marks.read(port);
    await early;
    expect(await late).toBeNull();
  });
});
