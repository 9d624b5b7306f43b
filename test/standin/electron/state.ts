import type { Chromium } from '../cdp.ts';
import type { BrowserWindow } from './browser-window.ts';
import type { WebContents } from './web-contents.ts';

/** A menu as the tray holds it; see menu.ts. */
interface Items {
  readonly items: readonly {
    readonly id?: string | undefined;
    readonly label: string;
    readonly type: string;
    readonly checked: boolean;
    readonly enabled: boolean;
    readonly visible: boolean;
    readonly submenu?: Items | undefined;
    click(): void;
  }[];
}

/** The one process-wide state behind the module, as Electron has it too. */
export const state = {
  ready: false,
  quitting: false,
  exiting: false,
  chromium: null as Chromium | null,
  schemePort: 0,
  firstTarget: null as string | null,
  nextId: 1,
  windows: new Map<number, BrowserWindow>(),
  contents: new Map<number, WebContents>(),
  switches: new Map<string, string>(),
  paths: new Map<string, string>(),
};

export function chromium(): Chromium {
  if (!state.chromium) throw new Error('the browser of the Electron stand-in has not started');
  return state.chromium;
}

/** What tests read and drive. */
export const __standin = {
  trays: [] as { menu: Items | null; toolTip: string; emit(event: string): boolean }[],
  dialogs: { asked: [] as { kind: string; options: unknown }[], answers: [] as unknown[] },
  notifications: [] as { title: string; body: string; emit(event: string): boolean }[],
  opened: [] as string[],
  logins: [] as unknown[],
  utilities: [] as { pid: number | undefined; serviceName: string }[],

  /** Clicks the item at a path of labels or ids in the newest tray's menu. */
  clickTray(...way: readonly string[]): void {
    let menu = __standin.trays.at(-1)?.menu ?? null;
    let item: Items['items'][number] | undefined;
    for (const step of way) {
      item = menu?.items.find((one) => one.label === step || one.id === step);
      if (!item) throw new Error(`no tray item "${step}" among ${menu?.items.map((one) => one.label).join(', ')}`);
      menu = item.submenu ?? null;
    }
    if (!item?.enabled) throw new Error('the tray item is disabled');
    item.click();
  },

  /** The newest tray's menu, flat: `role > policy`. */
  readTray(): { path: string; checked: boolean; enabled: boolean }[] {
    const flat = (menu: Items | null, above: string): { path: string; checked: boolean; enabled: boolean }[] =>
      (menu?.items ?? [])
        .filter((item) => item.visible && item.type !== 'separator')
        .flatMap((item) => {
          const path = above === '' ? item.label : `${above} > ${item.label}`;
          return [{ path, checked: item.checked, enabled: item.enabled }, ...flat(item.submenu ?? null, path)];
        });
    return flat(__standin.trays.at(-1)?.menu ?? null, '');
  },
};
