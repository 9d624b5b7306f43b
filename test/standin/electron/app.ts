import { EventEmitter } from 'node:events';
import { existsSync, mkdirSync, readFileSync, rmSync, unwatchFile, watchFile, writeFileSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import path from 'node:path';
import { launchChromium } from '../cdp.ts';
import { allowed, PreventableEvent } from './events.ts';
import { startSchemeServer } from './scheme-server.ts';
import { __standin, chromium, state } from './state.ts';
import { contentsOfTarget, watchDownloads } from './web-contents.ts';

interface Start {
  readonly appPath: string;
  readonly name: string;
  readonly version: string;
  readonly switches: readonly string[];
  readonly load: () => Promise<void>;
}

class App extends EventEmitter {
  readonly commandLine = {
    appendSwitch: (name: string, value = '') => void state.switches.set(name, value),
    appendArgument: () => undefined,
    hasSwitch: (name: string) => state.switches.has(name),
    getSwitchValue: (name: string) => state.switches.get(name) ?? '',
    removeSwitch: (name: string) => void state.switches.delete(name),
  };
  isPackaged = false;
  #start: Start | null = null;
  #setReady: () => void = () => undefined;
  readonly #ready = new Promise<void>((resolve) => {
    this.#setReady = resolve;
  });
  #lock: string | null = null;

  whenReady(): Promise<void> {
    return this.#ready;
  }

  isReady(): boolean {
    return state.ready;
  }

  getName(): string {
    return this.#start?.name ?? 'Electron';
  }

  getVersion(): string {
    return this.#start?.version ?? '0.0.0';
  }

  getAppPath(): string {
    return this.#start?.appPath ?? process.cwd();
  }

  getLocale(): string {
    return process.env.STANDIN_LOCALE ?? 'en-US';
  }

  getPath(name: string): string {
    const known = state.paths.get(name);
    if (known) {
      mkdirSync(known, { recursive: true });
      return known;
    }
    const home = homedir();
    const appData = process.env.XDG_CONFIG_HOME ?? path.join(home, '.config');
    const userData = state.paths.get('userData') ?? path.join(appData, this.getName());
    const places: Record<string, string> = {
      home,
      appData,
      userData,
      sessionData: userData,
      temp: tmpdir(),
      exe: process.execPath,
      logs: path.join(userData, 'logs'),
      downloads: path.join(home, 'Downloads'),
    };
    const place = places[name];
    if (!place) throw new Error(`Failed to get '${name}' path`);
    if (name === 'userData' || name === 'logs') mkdirSync(place, { recursive: true });
    return place;
  }

  setPath(name: string, place: string): void {
    state.paths.set(name, place);
  }

  setLoginItemSettings(settings: unknown): void {
    __standin.logins.push(settings);
  }

  /** A lock by process id in the data folder; the second instance leaves a note that the first one watches. */
  requestSingleInstanceLock(): boolean {
    const lock = path.join(this.getPath('userData'), 'standin.lock');
    const note = `${lock}.note`;
    try {
      const holder = Number(readFileSync(lock, 'utf8'));
      process.kill(holder, 0);
      writeFileSync(note, JSON.stringify(process.argv));
      return false;
    } catch {
      writeFileSync(lock, String(process.pid));
    }
    this.#lock = lock;
    watchFile(note, { interval: 50 }, () => {
      if (!existsSync(note)) return;
      const argv = JSON.parse(readFileSync(note, 'utf8')) as string[];
      rmSync(note, { force: true });
      this.emit('second-instance', new PreventableEvent(), argv, process.cwd(), null);
    });
    return true;
  }

  hasSingleInstanceLock(): boolean {
    return this.#lock !== null;
  }

  releaseSingleInstanceLock(): void {
    if (!this.#lock) return;
    unwatchFile(`${this.#lock}.note`);
    rmSync(this.#lock, { force: true });
    this.#lock = null;
  }

  focus(): void {}

  quit(): void {
    if (state.exiting) return;
    setImmediate(() => {
      if (!allowed(this, 'before-quit')) return;
      state.quitting = true;
      for (const window of [...state.windows.values()]) {
        window.close();
        if (!window.isDestroyed()) {
          state.quitting = false;
          return;
        }
      }
      if (allowed(this, 'will-quit')) this.exit(0);
      else state.quitting = false;
    });
  }

  exit(code = 0): void {
    if (state.exiting) return;
    state.exiting = true;
    this.releaseSingleInstanceLock();
    for (const window of [...state.windows.values()]) window.destroy();
    this.emit('quit', new PreventableEvent(), code);
    const child = state.chromium?.child;
    if (!child || child.exitCode !== null) process.exit(code);
    child.once('exit', () => process.exit(code));
    setTimeout(() => child.kill('SIGKILL'), 1500);
    void chromium()
      .cdp.send('Browser.close')
      .catch(() => child.kill('SIGKILL'));
  }

  _begin(start: Start): void {
    this.#start = start;
  }

  _becomeReady(): void {
    state.ready = true;
    this.emit('will-finish-launching');
    this.#setReady();
    this.emit('ready', new PreventableEvent(), {});
  }
}

export const app = new App();

/** Switches that mean something to Electron or to this process, and nothing to Chromium. */
const OWN = new Set([
  'inspect',
  'remote-debugging-port',
  'user-data-dir',
  'no-sandbox',
  'data-dir',
  'port',
  'engine',
  'hidden',
  'new-admin-token',
]);

/** Runs the app's main module, starts Chromium, then emits `ready`. */
export async function boot(start: Start): Promise<void> {
  app._begin(start);
  for (const one of start.switches) {
    const [name = '', value = ''] = one.slice(2).split(/=(.*)/s);
    state.switches.set(name, value);
    if (name === 'user-data-dir') state.paths.set('userData', value);
  }
  await start.load();
  if (state.exiting) return;
  const passed = [...state.switches]
    .filter(([name]) => !OWN.has(name) && !name.startsWith('no-'))
    .map(([name, value]) => (value === '' ? `--${name}` : `--${name}=${value}`));
  state.chromium = await launchChromium(passed);
  const { cdp, endpoint } = state.chromium;
  cdp.on('disconnected', () => {
    if (!state.exiting) process.exit(1);
  });
  cdp.on('Target.targetDestroyed', ({ targetId }: { targetId: string }) => contentsOfTarget(targetId)?._gone());
  cdp.on('Target.targetCrashed', ({ targetId, status }: { targetId: string; status: string }) =>
    contentsOfTarget(targetId)?._crashed(status),
  );
  cdp.on(
    'Target.targetCreated',
    ({ targetInfo }: { targetInfo: { type: string; openerId?: string; targetId: string } }) => {
      if (targetInfo.type === 'page' && targetInfo.openerId) contentsOfTarget(targetInfo.openerId)?._opened(targetInfo);
    },
  );
  await cdp.send('Target.setDiscoverTargets', { discover: true });
  await watchDownloads();
  const targets = (await cdp.send('Target.getTargets')).targetInfos as { type: string; targetId: string }[];
  state.firstTarget = targets.find((target) => target.type === 'page')?.targetId ?? null;
  await startSchemeServer();
  process.stderr.write(`\nDevTools listening on ${endpoint}\n`); // what Playwright waits for
  app._becomeReady();
}
