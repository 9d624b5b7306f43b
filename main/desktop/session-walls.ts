import type { Session, WebContents, WebPreferences } from 'electron';
import { isOwnPage, mayOpenOutside, mayRequest } from './policy.ts';

/** In memory only: no cookie, cache or storage of the console outlives the app. */
export const PARTITION = 'switchyard-console';

/** Every preference is written out, so that a changed default of Electron changes nothing here. */
export function webPreferences(preload: string, packaged: boolean): WebPreferences {
  return {
    preload,
    partition: PARTITION,
    sandbox: true,
    contextIsolation: true,
    webSecurity: true,
    nodeIntegration: false,
    nodeIntegrationInWorker: false,
    nodeIntegrationInSubFrames: false,
    webviewTag: false,
    plugins: false,
    webgl: false,
    navigateOnDragDrop: false,
    spellcheck: false,
    allowRunningInsecureContent: false,
    experimentalFeatures: false,
    enableDeprecatedPaste: false,
    devTools: !packaged,
  };
}

/** Denies every permission and every request but the console's own files; downloads only what the console offers itself. */
export function closeSession(session: Session): void {
  session.setPermissionRequestHandler((_contents, _permission, answer) => answer(false));
  session.setPermissionCheckHandler(() => false);
  session.setDevicePermissionHandler(() => false);
  session.setDisplayMediaRequestHandler((_request, answer) => answer({}));
  session.webRequest.onBeforeRequest((details, answer) => answer({ cancel: !mayRequest(details.url) }));
  session.on('will-download', (event, item) => {
    if (!item.getURL().startsWith('data:')) event.preventDefault();
  });
}

/** Keeps a window on the console: no other page, no window of its own, no webview. */
export function closeContents(contents: WebContents, openOutside: (url: string) => void): void {
  const stay = (event: { readonly url: string; preventDefault(): void }) => {
    if (!isOwnPage(event.url)) event.preventDefault();
  };
  contents.on('will-navigate', stay);
  contents.on('will-frame-navigate', stay);
  contents.on('will-redirect', stay);
  contents.on('will-attach-webview', (event) => event.preventDefault());
  contents.setWindowOpenHandler(({ url }) => {
    if (mayOpenOutside(url)) openOutside(url);
    return { action: 'deny' };
  });
}
