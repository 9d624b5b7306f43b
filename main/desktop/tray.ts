import type { Menu, NativeImage, Tray } from 'electron';
import type { Standing } from './standing.ts';
import { menuFingerprint, statusLine, type TrayActions, trayTemplate } from './tray-menu.ts';
import type { Language } from './words.ts';

export interface TrayPorts {
  readonly makeTray: () => Tray;
  readonly buildMenu: typeof Menu.buildFromTemplate;
  readonly act: TrayActions;
}

/** The icon beside the clock. Always a context menu, because on Linux that is all there may be. */
export class TrayService {
  readonly #ports: TrayPorts;
  #tray: Tray | null = null;
  #shown = '';
  #standing: Standing | null = null;
  #language: Language;

  constructor(ports: TrayPorts, language: Language) {
    this.#ports = ports;
    this.#language = language;
  }

  /** @returns whether there is a tray; where there is none, closing the window must ask. */
  start(): boolean {
    try {
      this.#tray = this.#ports.makeTray();
    } catch {
      return false;
    }
    this.#tray.on('click', () => this.#ports.act.open('overview', null));
    this.#render();
    return true;
  }

  stop(): void {
    this.#tray?.destroy();
    this.#tray = null;
  }

  update(standing: Standing): void {
    this.#standing = standing;
    this.#render();
  }

  setLanguage(language: Language): void {
    this.#language = language;
    this.#render();
  }

  /** Draws the menu again even when nothing changed: a refused click has moved its mark. */
  redraw(): void {
    this.#shown = '';
    this.#render();
  }

  #render(): void {
    if (!this.#tray) return;
    const template = trayTemplate(this.#standing, this.#language, this.#ports.act);
    const fingerprint = menuFingerprint(template);
    if (fingerprint === this.#shown) return;
    this.#shown = fingerprint;
    this.#tray.setToolTip(`Switchyard. ${statusLine(this.#standing, this.#language)}`);
    this.#tray.setContextMenu(this.#ports.buildMenu(template));
  }
}

/** A picture for the tray; a template image on macOS follows the menu bar's colour. */
export function trayImage(image: NativeImage, platform: string): NativeImage {
  if (platform === 'darwin') image.setTemplateImage(true);
  return image;
}

/** GNOME shows no tray icons of its own, whatever `Tray` says. */
export function trayCanBeSeen(platform: string, desktop: string | undefined): boolean {
  if (platform !== 'linux') return true;
  return !(desktop ?? '').split(':').some((name) => name.toLowerCase() === 'gnome');
}
