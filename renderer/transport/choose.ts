import type { ConsoleBridge } from '../../preload/contract.ts';
import { BrowserTransport } from './browser.ts';
import { IpcTransport } from './ipc.ts';
import type { Transport } from './port.ts';

/** The bridge where a preload script put one, else HTTP to the page's own origin. */
export function chooseTransport(page: Window & typeof globalThis & { readonly switchyard?: ConsoleBridge }): Transport {
  if (page.switchyard) return new IpcTransport(page.switchyard);
  return new BrowserTransport({
    location: page.location,
    replaceHash: (hash) => page.history.replaceState(null, '', page.location.pathname + hash),
    storage: page.sessionStorage,
    fetch: (input, init) => page.fetch(input, init),
    openSocket: (url, protocols) => new page.WebSocket(url, protocols),
    after: (delayMs, callback) => {
      const timer = page.setTimeout(callback, delayMs);
      return () => page.clearTimeout(timer);
    },
    onVisible: (listener) => {
      const tell = () => listener(!page.document.hidden);
      page.document.addEventListener('visibilitychange', tell);
      return () => page.document.removeEventListener('visibilitychange', tell);
    },
    onHash: (listener) => {
      page.addEventListener('hashchange', listener);
      return () => page.removeEventListener('hashchange', listener);
    },
  });
}
