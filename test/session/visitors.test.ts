import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Acquaintances } from '../../agent/session/acquaintances.ts';
import { Controllers } from '../../agent/session/controllers.ts';
import { type ControllerChange, sentenceOf, Visitors } from '../../agent/session/visitors.ts';

const MINUTE = 60_000;
let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'switchyard-visitors-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

async function agent() {
  const controllers = await Controllers.load(folder);
  const acquaintances = await Acquaintances.load(folder);
  const told: ControllerChange[] = [];
  const time = { ms: 1_000_000 };
  const visitors = new Visitors(
    controllers,
    acquaintances,
    () => time.ms,
    (change) => told.push(change),
  );
  const later = async () => {
    await visitors.settled();
    return Acquaintances.load(folder);
  };
  return { controllers, visitors, told, time, later };
}

describe('control planes that come and go', () => {
  it('are told of once, when they are paired, paired anew or removed', async () => {
    const { controllers, visitors, told } = await agent();
    await controllers.admit('alpha', new Uint8Array(32).fill(1));
    visitors.look();
    visitors.look();
    await controllers.admit('alpha', new Uint8Array(32).fill(2));
    visitors.look();
    await controllers.revoke('alpha');
    visitors.look();
    expect(told.map(sentenceOf)).toEqual([
      'The control plane alpha was paired.',
      'The control plane alpha was paired.',
      'The control plane alpha was removed.',
    ]);
  });

  it('are not news when they were there before the start', async () => {
    const before = await agent();
    await before.controllers.admit('alpha', new Uint8Array(32).fill(1));
    const { visitors, told } = await agent();
    visitors.look();
    expect(told).toEqual([]);
  });

  it('leave their times behind, the last one to ten minutes', async () => {
    const { controllers, visitors, time, later } = await agent();
    await controllers.admit('alpha', new Uint8Array(32).fill(1));
    visitors.look();
    time.ms += MINUTE;
    visitors.seen('alpha');
    time.ms += 9 * MINUTE;
    visitors.seen('alpha'); // not written anew
    visitors.seen('nobody');
    expect((await later()).of('alpha')).toEqual({ pairedAtMs: 1_000_000, lastSeenAtMs: 1_000_000 + MINUTE });
    time.ms += MINUTE;
    visitors.seen('alpha');
    expect((await later()).of('alpha').lastSeenAtMs).toBe(1_000_000 + 11 * MINUTE);
    expect((await later()).of('nobody')).toEqual({ pairedAtMs: null, lastSeenAtMs: null });
    await controllers.revoke('alpha');
    visitors.look();
    expect((await later()).of('alpha')).toEqual({ pairedAtMs: null, lastSeenAtMs: null });
  });

  it('are unknown when their times cannot be read', async () => {
    writeFileSync(join(folder, 'acquaintances.json'), '{"v":1,"controllers":[{"id":5}]}');
    expect((await Acquaintances.load(folder)).of('alpha').pairedAtMs).toBeNull();
  });
});
