import { setImmediate as turn } from 'node:timers/promises';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  isNewer,
  type UpdateFacts,
  type Updater,
  type UpdateState,
  Updates,
  updateMode,
} from '../../main/desktop/updates.ts';
import { ManualClock } from '../gateway/manual-clock.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

const FACTS: UpdateFacts = {
  version: '0.1.0',
  platform: 'win32',
  packaged: true,
  feedUrl: 'https://downloads.example/switchyard',
  signed: true,
};

/** Answers as told, and notes what was asked of it. */
class ScriptedUpdater implements Updater {
  autoDownload = true;
  autoInstallOnAppQuit = true;
  allowDowngrade = true;
  allowPrerelease = true;
  logger: unknown = console;
  readonly asked: string[] = [];
  offered: string | Error | null = '0.1.0';
  download: Error | null = null;
  hearsErrors = false;

  async checkForUpdates() {
    this.asked.push('check');
    if (this.offered instanceof Error) throw this.offered;
    return this.offered === null ? null : { updateInfo: { version: this.offered } };
  }

  async downloadUpdate() {
    this.asked.push('download');
    if (this.download !== null) throw this.download;
  }

  quitAndInstall() {
    this.asked.push('install');
  }

  on() {
    this.hearsErrors = true;
  }
}

function setUp(facts: Partial<UpdateFacts> = {}, automatic = true) {
  const clock = new ManualClock();
  const updater = new ScriptedUpdater();
  const seen: UpdateState[] = [];
  const loads: number[] = [];
  const updates = new Updates({
    clock,
    random: () => 0.5,
    facts: { ...FACTS, ...facts },
    loadUpdater: async () => {
      loads.push(clock.nowMs());
      return updater;
    },
    automatic,
    drain: async () => void updater.asked.push('drain'),
  });
  updates.subscribe((state) => seen.push(state));
  const pass = async (ms: number) => {
    clock.advance(ms);
    for (let i = 0; i < 10; i++) await turn();
  };
  return { clock, updater, updates, seen, loads, pass };
}

describe('which copies update themselves', () => {
  it('are those that the system can tell from false ones: signed, on macOS and Windows', () => {
    const mode = (platform: NodeJS.Platform, signed: boolean) => updateMode({ ...FACTS, platform, signed });
    expect(mode('darwin', true)).toBe('install');
    expect(mode('win32', true)).toBe('install');
    expect(mode('darwin', false)).toBe('notify');
    expect(mode('win32', false)).toBe('notify');
    expect(mode('linux', false)).toBe('notify');
    expect(mode('linux', true)).toBe('notify');
  });

  it.each([
    ['a checkout', { packaged: false }, 'development'],
    ['a package without an address', { feedUrl: null }, 'no-feed'],
  ] as const)('%s never asks, and says why', async (_, facts, reason) => {
    const { updates, loads, pass } = setUp(facts);
    updates.start();
    await pass(48 * HOUR);
    await updates.check();
    expect(loads).toEqual([]);
    expect(updates.state).toEqual({ state: 'unavailable', reason });
  });

  it('a copy without a signature is told of a version and fetches nothing', async () => {
    for (const facts of [{ platform: 'linux', signed: false }, { signed: false }] as const) {
      const { updates, updater } = setUp(facts);
      updater.offered = '0.2.0';
      await updates.check();
      expect(updates.state).toEqual({ state: 'available', version: '0.2.0', feedUrl: FACTS.feedUrl });
      expect(updater.asked).toEqual(['check']);
      expect(updater).toMatchObject({ autoDownload: false, autoInstallOnAppQuit: false });
      expect(await updates.restart()).toBe(false);
    }
  });

  it('a signed copy fetches a newer version, and replaces itself only when asked, after running work has ended', async () => {
    const { updates, updater, seen } = setUp();
    updater.offered = '0.2.0';
    await updates.check();
    expect(seen.map(({ state }) => state)).toEqual(['checking', 'downloading', 'ready']);
    await updates.check(); // what is ready stays ready
    expect(updater.asked).toEqual(['check', 'download']);
    expect(await updates.restart()).toBe(true);
    expect(updater.asked).toEqual(['check', 'download', 'drain', 'install']);
  });

  it('leaves every guard of the updater on: no downgrade, no pre-release, nothing of its own accord, no log', async () => {
    const { updates, updater } = setUp();
    await updates.check();
    expect(updater).toMatchObject({
      autoDownload: false,
      autoInstallOnAppQuit: true,
      allowDowngrade: false,
      allowPrerelease: false,
      logger: null,
      hearsErrors: true,
    });
  });
});

describe('which versions are newer', () => {
  it.each([
    ['0.1.1', '0.1.0', true],
    ['0.10.0', '0.9.9', true],
    ['1.0.0', '0.99.99', true],
    ['1.2.0', '1.2.0-rc.1', true],
    ['0.1.0', '0.1.0', false],
    ['0.0.9', '0.1.0', false],
    ['0.2.0-beta.1', '0.1.0', false],
    ['v0.2.0', '0.1.0', false],
    ['0.2', '0.1.0', false],
    ['9999999.0.0', '0.1.0', false],
    ['0.2.0 <script>', '0.1.0', false],
    ['', '0.1.0', false],
  ])('%j after %s: %s', (offered, current, newer) => {
    expect(isNewer(offered, current)).toBe(newer);
  });

  it('two releases are never newer than each other', () => {
    const version = fc.tuple(fc.nat(20), fc.nat(20), fc.nat(20)).map((parts) => parts.join('.'));
    fc.assert(
      fc.property(version, version, (a, b) => Number(isNewer(a, b)) + Number(isNewer(b, a)) === Number(a !== b)),
    );
  });

  it('an older or equal version that a feed offers is not fetched', async () => {
    for (const offered of ['0.1.0', '0.0.1', '0.2.0-rc.1', 'nonsense', null]) {
      const { updates, updater, clock } = setUp();
      updater.offered = offered;
      await updates.check();
      expect(updater.asked).toEqual(['check']);
      expect(updates.state).toEqual({ state: 'idle', checkedAtMs: clock.wallMs() });
    }
  });
});

describe('when it looks', () => {
  it('first 90 s after the start (60 s and up to 60 more by chance), then once a day', async () => {
    const { updates, updater, pass } = setUp();
    updates.start();
    await pass(90_000 - 1);
    expect(updater.asked).toHaveLength(0);
    await pass(1);
    expect(updater.asked).toHaveLength(1);
    await pass(24 * HOUR - 1);
    expect(updater.asked).toHaveLength(1);
    await pass(1);
    expect(updater.asked).toHaveLength(2);
  });

  it('after a failure in 1 h, 2 h, 4 h ... and never less than daily; the failure tells the step and quotes nothing', async () => {
    const { updates, updater, seen, pass } = setUp();
    updater.offered = new Error('getaddrinfo ENOTFOUND secret.internal');
    updates.start();
    await pass(90_000);
    expect(updates.state).toEqual({ state: 'failed', step: 'check', version: null });
    for (const hours of [1, 2, 4, 8, 16, 24, 24]) {
      const before = updater.asked.length;
      await pass(hours * HOUR - 1);
      expect(updater.asked).toHaveLength(before);
      await pass(1);
      expect(updater.asked).toHaveLength(before + 1);
    }
    expect(JSON.stringify(seen)).not.toContain('secret');
    updater.offered = '0.1.0';
    await pass(24 * HOUR);
    expect(updates.state.state).toBe('idle');
  });

  it('a download whose signature is wrong is a failure, and is never installed', async () => {
    const { updates, updater } = setUp();
    updater.offered = '0.2.0';
    updater.download = new Error('not signed by the application owner');
    await updates.check();
    expect(updates.state).toEqual({ state: 'failed', step: 'download', version: '0.2.0' });
    expect(await updates.restart()).toBe(false);
    expect(updater.asked).toEqual(['check', 'download']);
  });

  it('not by itself when the operator turned that off, but when asked; and again when it is turned on', async () => {
    const { updates, updater, pass } = setUp({}, false);
    updates.start();
    await pass(72 * HOUR);
    expect(updater.asked).toHaveLength(0);
    await updates.check();
    await pass(72 * HOUR);
    expect(updater.asked).toHaveLength(1);
    updates.setAutomatic(true);
    await pass(90_000);
    expect(updater.asked).toHaveLength(2);
    updates.setAutomatic(false);
    await pass(72 * HOUR);
    expect(updater.asked).toHaveLength(2);
  });

  it('once for several who ask together, with one updater for good', async () => {
    const { updates, updater, loads } = setUp();
    await Promise.all([updates.check(), updates.check()]);
    await updates.check();
    expect(updater.asked).toEqual(['check', 'check']);
    expect(loads).toHaveLength(1);
  });

  it('no more after the stop', async () => {
    const { updates, updater, pass } = setUp();
    updates.start();
    updates.stop();
    await pass(72 * HOUR);
    expect(updater.asked).toHaveLength(0);
  });
});
