import { EventEmitter } from 'node:events';
import { PreventableEvent } from './events.ts';
import { __standin } from './state.ts';

/** What the app shows or asks outside its window: recorded, and answered by the test where an answer is needed. */
export class Notification extends EventEmitter {
  readonly title: string;
  readonly body: string;

  static isSupported(): boolean {
    return true;
  }

  constructor(options: { readonly title?: string; readonly body?: string } = {}) {
    super();
    this.title = options.title ?? '';
    this.body = options.body ?? '';
  }

  show(): void {
    __standin.notifications.push(this);
    this.emit('show', new PreventableEvent());
  }

  close(): void {
    this.emit('close', new PreventableEvent());
  }
}

interface MessageBox {
  readonly cancelId?: number;
  readonly defaultId?: number;
}

export const dialog = {
  showMessageBox: async (...args: unknown[]) => {
    const options = (args.at(-1) ?? {}) as MessageBox;
    __standin.dialogs.asked.push({ kind: 'showMessageBox', options });
    const answer = __standin.dialogs.answers.shift();
    const response = typeof answer === 'number' ? answer : (options.cancelId ?? options.defaultId ?? 0);
    return { response, checkboxChecked: false };
  },
  showErrorBox: (title: string, content: string) => {
    __standin.dialogs.asked.push({ kind: 'showErrorBox', options: { title, content } });
  },
};

export const shell = {
  openExternal: async (url: string) => {
    __standin.opened.push(url);
  },
};

class PowerMonitor extends EventEmitter {
  isOnBatteryPower(): boolean {
    return false;
  }
}
export const powerMonitor = new PowerMonitor();

class NativeTheme extends EventEmitter {
  themeSource = 'system';
  shouldUseDarkColors = false;
}
export const nativeTheme = new NativeTheme();

const display = {
  id: 1,
  scaleFactor: 1,
  bounds: { x: 0, y: 0, width: 1920, height: 1080 },
  workArea: { x: 0, y: 0, width: 1920, height: 1080 },
};
export const screen = Object.assign(new EventEmitter(), {
  getPrimaryDisplay: () => display,
  getAllDisplays: () => [display],
});
