import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type RunProgram, readUpdateFacts } from '../../main/desktop/update-facts.ts';

const FEED = 'provider: generic\nurl: https://downloads.example/switchyard\nupdaterCacheDirName: switchyard-updater\n';

describe('how a copy was made', () => {
  let resources = '';
  beforeEach(async () => {
    resources = await mkdtemp(path.join(tmpdir(), 'switchyard-facts-'));
  });
  afterEach(() => rm(resources, { recursive: true }));

  const read = (platform: NodeJS.Platform, run: RunProgram = async () => false, packaged = true) =>
    readUpdateFacts(
      {
        version: '0.1.0',
        packaged,
        platform,
        resources,
        executable: '/Applications/Switchyard.app/Contents/MacOS/Switchyard',
      },
      run,
    );
  const config = (text: string) => writeFile(path.join(resources, 'app-update.yml'), text);

  it('without the file there is no address, and nobody is asked about a signature', async () => {
    const run = async () => {
      throw new Error('asked');
    };
    expect(await read('darwin', run)).toMatchObject({ feedUrl: null, signed: false });
  });

  it('takes an https address and no other', async () => {
    await config(FEED);
    expect(await read('linux')).toMatchObject({ feedUrl: 'https://downloads.example/switchyard', signed: false });
    for (const url of ['http://downloads.example/', 'file:///etc', 'ftp://x/', 'nonsense']) {
      await config(`provider: generic\nurl: ${url}\n`);
      expect((await read('linux')).feedUrl).toBeNull();
    }
    await config(FEED);
    expect((await read('linux', undefined, false)).feedUrl).toBeNull();
  });

  it('on Windows a publisher in the package makes it signed: without one the updater would compare nothing', async () => {
    await config(`${FEED}publisherName:\n  - The Switchyard team\n`);
    expect((await read('win32')).signed).toBe(true);
    await config(`${FEED}publisherName: The Switchyard team\n`);
    expect((await read('win32')).signed).toBe(true);
    for (const nobody of ['', 'publisherName:\n', 'publisherName:\nurl2: x\n']) {
      await config(`${FEED}${nobody}`);
      expect((await read('win32')).signed).toBe(false);
    }
  });

  it('on macOS the system is asked about the whole bundle, for a certificate and not just any signature', async () => {
    await config(FEED);
    const asked: string[] = [];
    const run: RunProgram = async (program, args) => {
      asked.push([program, ...args].join(' '));
      return true;
    };
    expect((await read('darwin', run)).signed).toBe(true);
    expect(asked).toEqual([
      '/usr/bin/codesign --verify --strict --test-requirement =anchor apple generic /Applications/Switchyard.app',
    ]);
    expect((await read('darwin')).signed).toBe(false);
  });
});
