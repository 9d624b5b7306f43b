import type { BrowserWindow, BrowserWindowConstructorOptions, Screen } from 'electron';
import type { PageId } from '../../preload/contract.ts';
import type { ConsoleIpc } from './ipc.ts';
import { APP_ORIGIN } from './policy.ts';
import type { After } from './ports.ts';
import { closeContents, webPreferences } from './session-walls.ts';
import { placeWindow, readWindowState, SMALLEST, writeWindowState } from './window-state.ts';

export interface WindowPorts {
  readonly makeWindow: (options: BrowserWindowConstructorOptions) => BrowserWindow;
  readonly screen: Pick<Screen, 'getAllDisplays'>;
  readonly ipc: ConsoleIpc;
  readonly after: After;
  readonly nowMs: () => number;
  readonly preload: string;
  readonly icon: string;
  readonly packaged: boolean;
  readonly dark: () => boolean;
  readonly stateFile: string;
  readonly openOutside: (url: string) => void;
  /** The person closed the window; true lets it go. */
  readonly mayClose: () => boolean;
}

/** A page that crashes this often within the span is not loaded again by itself. */
const MOST_CRASHES = 3;
const CRASH_SPAN_MS = 60_000;
const RELOAD_MS = 300;

/** The one window. It may be hidden, reloaded or crashed: nothing durable lives in it. */
export class ConsoleWindow {
  readonly #ports: WindowPorts;
  #window: BrowserWindow | null = null;
  #crashes: number[] = [];
  /** Where to go once the page has loaded. */
  #wanted: readonly [PageId, string | null] | null = null;
  #loaded = false;

  constructor(ports: WindowPorts) {
    this.#ports = ports;
  }

  /** Makes the window and loads the console; `hidden` leaves it unseen, as at login. */
  start(hidden: boolean): void {
    const { ipc, screen, stateFile, packaged, preload } = this.#ports;
    const place = placeWindow(
      readWindowState(stateFile),
      screen.getAllDisplays().map((display) => display.workArea),
    );
    const window = this.#ports.makeWindow({
      x: place.x,
      y: place.y,
      width: place.width,
      height: place.height,
      minWidth: SMALLEST.width,
      minHeight: SMALLEST.height,
      show: false,
      title: 'Switchyard',
      icon: this.#ports.icon,
      autoHideMenuBar: true,
      backgroundColor: this.#ports.dark() ? '#151513' : '#fbfbfa',
      webPreferences: webPreferences(preload, packaged),
    });
    this.#window = window;
    const contents = window.webContents;
    closeContents(contents, this.#ports.openOutside);
    ipc.admit(contents);
    if (place.maximized) window.maximize();
    window.once('ready-to-show', () => {
      if (!hidden) window.show();
    });
    for (const event of ['hide', 'minimize'] as const) window.on(event as 'hide', () => ipc.setHidden(contents, true));
    for (const event of ['show', 'restore'] as const) window.on(event as 'show', () => ipc.setHidden(contents, false));
    window.on('close', (event) => {
      this.#save();
      if (!this.#ports.mayClose()) event.preventDefault();
    });
    window.on('closed', () => {
      ipc.dismiss(contents);
      this.#window = null;
    });
    contents.on('did-finish-load', () => {
      this.#loaded = true;
      if (this.#wanted) ipc.show(contents, ...this.#wanted);
      this.#wanted = null;
    });
    contents.on('did-start-navigation', (details) => {
      if (!details.isMainFrame || details.isSameDocument) return;
      this.#loaded = false;
      ipc.forget(contents);
    });
    contents.on('render-process-gone', () => {
      this.#loaded = false;
      ipc.forget(contents);
      this.#reload(window);
    });
    void window.loadURL(`${APP_ORIGIN}/index.html`).catch(() => undefined);
  }

  /** Brings it to the front, at a page if one is named. */
  open(page: PageId | null, target: string | null): void {
    const window = this.#window;
    if (!window) return;
    if (window.isMinimized()) window.restore();
    window.show();
    window.focus();
    if (page === null) return;
    if (this.#loaded) this.#ports.ipc.show(window.webContents, page, target);
    else this.#wanted = [page, target];
  }

  hide(): void {
    this.#window?.hide();
  }

  /** Closes for good, past the question. */
  destroy(): void {
    this.#save();
    this.#window?.destroy();
  }

  #reload(window: BrowserWindow): void {
    const nowMs = this.#ports.nowMs();
    this.#crashes = [...this.#crashes.filter((at) => nowMs - at < CRASH_SPAN_MS), nowMs];
    if (this.#crashes.length > MOST_CRASHES) return;
    this.#ports.after(RELOAD_MS, () => {
      if (!window.isDestroyed()) void window.loadURL(`${APP_ORIGIN}/index.html`).catch(() => undefined);
    });
  }

  #save(): void {
    const window = this.#window;
    if (!window || window.isDestroyed()) return;
    const { x, y, width, height } = window.getNormalBounds();
    void writeWindowState(this.#ports.stateFile, { x, y, width, height, maximized: window.isMaximized() });
  }
}
