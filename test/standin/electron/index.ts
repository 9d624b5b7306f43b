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

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => app.quit());

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
