import { app } from './app.ts';
import { BrowserWindow } from './browser-window.ts';
import { ipcMain } from './ipc-main.ts';
import { Menu, MenuItem, Tray } from './menu.ts';
import { nativeImage } from './native-image.ts';
import { dialog, Notification, nativeTheme, powerMonitor, screen, shell } from './outside.ts';
import { safeStorage } from './safe-storage.ts';
import { protocol } from './scheme-server.ts';
import { session } from './session.ts';
import { __standin } from './state.ts';
import { utilityProcess } from './utility-process.ts';
import { WebContents } from './web-contents.ts';

// The runtime quits on a signal, unless the app listens for it: a handler of the app takes the place of the runtime's.
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  const quit = () => app.quit();
  process.on(signal, quit);
  const giveWay = (name: string | symbol) => {
    if (name !== signal) return;
    process.off('newListener', giveWay);
    // Not before the other one is there: without any listener Node lets go of the signal, and it kills again.
    queueMicrotask(() => process.off(signal, quit));
  };
  process.on('newListener', giveWay);
}

const electron = {
  app,
  BrowserWindow,
  dialog,
  ipcMain,
  Menu,
  MenuItem,
  Notification,
  nativeImage,
  nativeTheme,
  powerMonitor,
  protocol,
  safeStorage,
  screen,
  session,
  shell,
  Tray,
  utilityProcess,
  webContents: WebContents,
  __standin,
};

export {
  __standin,
  app,
  BrowserWindow,
  dialog,
  ipcMain,
  Menu,
  MenuItem,
  Notification,
  nativeImage,
  nativeTheme,
  powerMonitor,
  protocol,
  safeStorage,
  screen,
  session,
  shell,
  Tray,
  utilityProcess,
  WebContents as webContents,
};
export default electron;
