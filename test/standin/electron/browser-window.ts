import { EventEmitter } from 'node:events';
import { app } from './app.ts';
import { allowed, PreventableEvent } from './events.ts';
import { state } from './state.ts';
import { type Preferences, WebContents } from './web-contents.ts';

interface Bounds {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

interface WindowOptions {
  readonly x?: number;
  readonly y?: number;
  readonly width?: number;
  readonly height?: number;
  readonly show?: boolean;
  readonly title?: string;
  readonly webPreferences?: Preferences;
}

/** A window as far as an app can tell: its page is real, its frame is a record. */
export class BrowserWindow extends EventEmitter {
  readonly id = state.nextId++;
  readonly webContents: WebContents;
  #bounds: Bounds;
  #title: string;
  #visible: boolean;
  #focused = false;
  #form: 'normal' | 'minimized' | 'maximized' = 'normal';
  #destroyed = false;

  static getAllWindows(): BrowserWindow[] {
    return [...state.windows.values()];
  }

  static getFocusedWindow(): BrowserWindow | null {
    return BrowserWindow.getAllWindows().find((window) => window.isFocused()) ?? null;
  }

  static fromWebContents(contents: WebContents): BrowserWindow | null {
    return BrowserWindow.getAllWindows().find((window) => window.webContents === contents) ?? null;
  }

  static fromId(id: number): BrowserWindow | null {
    return state.windows.get(id) ?? null;
  }

  constructor(options: WindowOptions = {}) {
    super();
    if (!state.ready) throw new Error('Cannot create BrowserWindow before app is ready');
    const { x = 0, y = 0, width = 800, height = 600 } = options;
    this.#bounds = { x, y, width, height };
    this.#title = options.title ?? app.getName();
    this.#visible = options.show ?? true;
    this.webContents = new WebContents(options.webPreferences ?? {}, { width, height }, () => this.#closed());
    state.windows.set(this.id, this);
    this.webContents.once('dom-ready', () => this.emit('ready-to-show', new PreventableEvent()));
  }

  loadURL(url: string): Promise<void> {
    return this.webContents.loadURL(url);
  }

  show(): void {
    const wasVisible = this.#visible;
    this.#visible = true;
    if (!wasVisible) this.emit('show', new PreventableEvent());
    this.focus();
  }

  hide(): void {
    if (!this.#visible) return;
    this.#visible = false;
    this.#focused = false;
    this.emit('hide', new PreventableEvent());
  }

  focus(): void {
    if (this.#focused) return;
    this.#focused = true;
    this.emit('focus', new PreventableEvent());
  }

  isVisible(): boolean {
    return this.#visible && !this.#destroyed;
  }

  isFocused(): boolean {
    return this.#focused && this.#visible;
  }

  isDestroyed(): boolean {
    return this.#destroyed;
  }

  minimize(): void {
    this.#form = 'minimized';
    this.emit('minimize', new PreventableEvent());
  }

  maximize(): void {
    this.#form = 'maximized';
    this.emit('maximize', new PreventableEvent());
  }

  unmaximize(): void {
    this.#form = 'normal';
    this.emit('unmaximize', new PreventableEvent());
  }

  restore(): void {
    this.#form = 'normal';
    this.emit('restore', new PreventableEvent());
  }

  isMinimized(): boolean {
    return this.#form === 'minimized';
  }

  isMaximized(): boolean {
    return this.#form === 'maximized';
  }

  getTitle(): string {
    return this.#title;
  }

  setTitle(title: string): void {
    this.#title = title;
  }

  getBounds() {
    return { ...this.#bounds };
  }

  getNormalBounds() {
    return { ...this.#bounds };
  }

  setBounds(bounds: Partial<Bounds>): void {
    this.#bounds = { ...this.#bounds, ...bounds };
    this.emit('resize', new PreventableEvent());
  }

  close(): void {
    if (!this.#destroyed && allowed(this, 'close')) this.destroy();
  }

  destroy(): void {
    if (!this.#destroyed) this.webContents._close();
  }

  #closed(): void {
    if (this.#destroyed) return;
    this.#destroyed = true;
    state.windows.delete(this.id);
    this.emit('closed', new PreventableEvent());
    if (state.windows.size > 0 || state.quitting || state.exiting) return;
    if (app.listenerCount('window-all-closed') > 0) app.emit('window-all-closed');
    else app.quit();
  }
}
