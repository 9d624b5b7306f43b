import { EventEmitter } from 'node:events';
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import electron from './electron/index.ts';

// The stand-in may have less than Electron, never more: a name that only it has would pass here and fail on a real desktop.
const declared = readFileSync(new URL('../../node_modules/electron/electron.d.ts', import.meta.url), 'utf8');

function membersOf(name: string): ReadonlySet<string> {
  const bodies = declared.matchAll(
    new RegExp(`^  (?:class|interface) ${name}(?: extends [^{]*)? \\{\\n([^]*?)^  \\}`, 'gm'),
  );
  const names = [...bodies].flatMap(([, body = '']) =>
    [...body.matchAll(/^ {4}(?:static |readonly |get |set )*([a-zA-Z]\w*)\??[(?:<]/gm)].map(
      ([, member = '']) => member,
    ),
  );
  return new Set(names);
}

/** For tests alone: what is recorded, read back by `__standin`. */
const RECORDS: Readonly<Record<string, readonly string[]>> = { Tray: ['image', 'menu', 'toolTip'] };
const BUILT_IN = new Set<unknown>([Object.prototype, Function.prototype, EventEmitter, EventEmitter.prototype, null]);

function offered(thing: object): string[] {
  const names = new Set<string>();
  for (let at: object | null = thing; !BUILT_IN.has(at); at = Object.getPrototypeOf(at)) {
    for (const name of Object.getOwnPropertyNames(at)) {
      if (!/^_|^(length|name|prototype|constructor)$/.test(name)) names.add(name);
    }
  }
  const emitter = new Set([...Object.getOwnPropertyNames(new EventEmitter()), 'domain']);
  return [...names].filter((name) => !emitter.has(name));
}

describe('the stand-in offers nothing that Electron does not have', () => {
  const { BrowserWindow, Menu, Notification, Tray, webContents, session } = electron;
  it.each([
    ['App', [electron.app]],
    ['CommandLine', [electron.app.commandLine]],
    ['BrowserWindow', [BrowserWindow, BrowserWindow.prototype]],
    ['WebContents', [webContents, webContents.prototype]],
    ['Session', [session.defaultSession]],
    ['WebRequest', [session.defaultSession.webRequest]],
    ['Menu', [Menu, Menu.prototype]],
    ['Tray', [Tray.prototype]],
    ['Notification', [Notification, Notification.prototype]],
    ['IpcMain', [electron.ipcMain]],
    ['Protocol', [electron.protocol]],
    ['SafeStorage', [electron.safeStorage]],
    ['PowerMonitor', [electron.powerMonitor]],
    ['Shell', [electron.shell]],
    ['Dialog', [electron.dialog]],
    ['Screen', [electron.screen]],
    ['NativeTheme', [electron.nativeTheme]],
    ['NativeImage', [electron.nativeImage, electron.nativeImage.createEmpty()]],
    ['UtilityProcess', [electron.utilityProcess]],
  ] as const)('%s', (name, things) => {
    const known = membersOf(name);
    expect(known.size).toBeGreaterThan(1);
    const unknown = things
      .flatMap((thing) => offered(thing))
      .filter((member) => !known.has(member) && !RECORDS[name]?.includes(member));
    expect(unknown).toEqual([]);
  });

  it('as modules', () => {
    const modules = new Set([...declared.matchAll(/^ {4}(?:const|class) (\w+)/gm)].map(([, name]) => name));
    expect(Object.keys(electron).filter((name) => name !== '__standin' && !modules.has(name))).toEqual([]);
  });
});
