import { EventEmitter } from 'node:events';
import { existsSync } from 'node:fs';
import type { NativeImage } from './native-image.ts';
import { __standin } from './state.ts';

interface ItemOptions {
  readonly id?: string;
  readonly label?: string;
  readonly type?: 'normal' | 'separator' | 'submenu' | 'checkbox' | 'radio';
  readonly checked?: boolean;
  readonly enabled?: boolean;
  readonly visible?: boolean;
  readonly submenu?: readonly ItemOptions[] | Menu;
  readonly click?: (item: MenuItem) => void;
}

export class MenuItem {
  readonly id: string | undefined;
  readonly label: string;
  readonly type: NonNullable<ItemOptions['type']>;
  checked: boolean;
  enabled: boolean;
  visible: boolean;
  readonly submenu: Menu | undefined;
  readonly click: () => void;

  constructor(options: ItemOptions) {
    this.id = options.id;
    this.label = options.label ?? '';
    this.type = options.type ?? (options.submenu ? 'submenu' : 'normal');
    this.checked = options.checked ?? false;
    this.enabled = options.enabled ?? true;
    this.visible = options.visible ?? true;
    const { submenu } = options;
    this.submenu =
      submenu === undefined ? undefined : submenu instanceof Menu ? submenu : Menu.buildFromTemplate(submenu);
    this.click = () => {
      if (this.type === 'checkbox') this.checked = !this.checked;
      if (this.type === 'radio') this.checked = true;
      options.click?.(this);
    };
  }
}

export class Menu extends EventEmitter {
  static #application: Menu | null = null;
  readonly items: MenuItem[] = [];

  static buildFromTemplate(template: readonly ItemOptions[]): Menu {
    const menu = new Menu();
    for (const item of template) menu.append(new MenuItem(item));
    return menu;
  }

  static setApplicationMenu(menu: Menu | null): void {
    Menu.#application = menu;
  }

  static getApplicationMenu(): Menu | null {
    return Menu.#application;
  }

  append(item: MenuItem): void {
    this.items.push(item);
  }

  getMenuItemById(id: string): MenuItem | null {
    for (const item of this.items) {
      const found = item.id === id ? item : (item.submenu?.getMenuItemById(id) ?? null);
      if (found) return found;
    }
    return null;
  }
}

export class Tray extends EventEmitter {
  image: unknown;
  menu: Menu | null = null;
  toolTip = '';
  #destroyed = false;

  constructor(image: NativeImage | string) {
    super();
    if (typeof image === 'string' ? !existsSync(image) : image.isEmpty()) throw new Error('Failed to load image');
    this.image = image;
    __standin.trays.push(this);
  }

  setImage(image: unknown): void {
    this.image = image;
  }

  setToolTip(toolTip: string): void {
    this.toolTip = toolTip;
  }

  setContextMenu(menu: Menu | null): void {
    this.menu = menu;
  }

  isDestroyed(): boolean {
    return this.#destroyed;
  }

  destroy(): void {
    this.#destroyed = true;
    const at = __standin.trays.indexOf(this);
    if (at >= 0) __standin.trays.splice(at, 1);
  }
}
