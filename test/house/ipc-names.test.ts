import { globSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { CHANNELS, OPERATIONS } from '../../preload/contract.ts';

const sources = globSync('{main,preload,renderer,agent}/**/*.{ts,tsx}').map((file) => ({
  file: file.replaceAll('\\', '/'),
  text: readFileSync(file, 'utf8'),
}));
const filesWith = (pattern: RegExp) => sources.filter(({ text }) => pattern.test(text)).map(({ file }) => file);

describe('IPC', () => {
  it('has its channels named in one place', () => {
    expect(sources.length).toBeGreaterThan(300);
    for (const channel of Object.values(CHANNELS)) {
      expect(filesWith(new RegExp(channel.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))), channel).toEqual([
        'preload/contract/channels.ts',
      ]);
    }
  });

  it('is spoken through one wrapper on each side, and never by a channel written out', () => {
    expect(filesWith(/\bipcRenderer\b/)).toEqual(['preload/index.ts']);
    const receivers = filesWith(/\bipcMain\b/).filter((file) => file !== 'main/index.ts');
    expect(receivers).toEqual(['main/desktop/ipc.ts']);
    // `send`, `handle`, `invoke`, `on` of IPC take CHANNELS.x, never text.
    const written =
      /\b(?:ipcMain|ipcRenderer|contents|webContents)\.(?:send|invoke|handle|handleOnce|on|once)\(\s*['"`]switchyard/;
    expect(filesWith(written)).toEqual([]);
    expect(filesWith(/\bwebContents\.send\(|\bcontents\.send\(/)).toEqual(['main/desktop/ipc.ts']);
  });

  it('has no `any` in its contract, and no operation that answers with the cloud key', () => {
    const contract = sources.filter(({ file }) => file.startsWith('preload/'));
    expect(
      contract.filter(({ text }) =>
        /\bany\b(?=[;,)>\]|]| =)|z\.any\(\)/.test(text.replace(/\/\*[\s\S]*?\*\/|\/\/.*/g, '')),
      ),
    ).toEqual([]);
    expect(Object.keys(OPERATIONS).filter((name) => /push.*key|key.*get/i.test(name))).toEqual([]);
  });
});
