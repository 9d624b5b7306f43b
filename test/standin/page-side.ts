import { type Codec, makeCodec } from './codec.ts';

/** Name of the world that the preload runs in. */
export const WORLD = 'Electron Isolated Context';
/** The binding by which the preload's world speaks to this process, and the function by which it is spoken to. */
export const TO_NODE = '__standinToNode';
export const FROM_NODE = '__standinFromNode';

interface ContextBridge {
  expose(key: string, api: unknown): void;
}
type Tagged = Record<string, unknown>;

/**
 * One half of the context bridge; the other half runs in the page's own world. The halves share the document alone and call each
 * other through events under a name that no page can guess. Functions become proxies, promises are settled across, the rest is
 * copied. Stringified into the page: names nothing outside itself.
 */
function bridgeHalf(token: string, side: 'page' | 'preload', codec: Codec): ContextBridge {
  const other = side === 'page' ? 'preload' : 'page';
  const own = new Map<number, (...args: unknown[]) => unknown>();
  const numbers = new WeakMap<object, number>();
  const proxies = new Map<number, (...args: unknown[]) => unknown>();
  const waiting = new Map<number, [(value: unknown) => void, (error: unknown) => void]>();
  const page = document;
  let lastNumber = 0;
  let answer: string | undefined;

  const send = (message: object): Tagged => {
    answer = undefined;
    page.dispatchEvent(new CustomEvent(`${token}:${other}`, { detail: pack(message) }));
    if (answer === undefined) throw new Error('the other world does not answer');
    return unpack(answer) as Tagged;
  };
  const callAcross = (message: object): unknown => {
    const { ok, value } = send(message);
    if (ok) return value;
    throw value;
  };
  const pack = (value: unknown): string =>
    codec.encode(value, (one) => {
      if (typeof one === 'function') {
        let number = numbers.get(one);
        if (number === undefined) {
          lastNumber += 1;
          number = lastNumber;
          numbers.set(one, number);
          own.set(number, one as (...args: unknown[]) => unknown);
        }
        return { $: 'F', v: number };
      }
      if (one instanceof Promise) {
        lastNumber += 1;
        const number = lastNumber;
        one.then(
          (value) => send({ do: 'settle', number, ok: true, value }),
          (error) => send({ do: 'settle', number, ok: false, value: error }),
        );
        return { $: 'P', v: number };
      }
      return undefined;
    });
  const unpack = (text: string): unknown =>
    codec.decode(text, (tagged) => {
      const number = Number(tagged.v);
      if (tagged.$ === 'P') return new Promise((resolve, reject) => waiting.set(number, [resolve, reject]));
      let proxy = proxies.get(number);
      if (!proxy) {
        proxy = (...args) => callAcross({ do: 'call', number, args });
        proxies.set(number, proxy);
      }
      return proxy;
    });
  const freeze = (value: unknown): unknown => {
    if (value !== null && typeof value === 'object' && !ArrayBuffer.isView(value)) {
      for (const one of Object.values(value)) freeze(one);
      Object.freeze(value);
    }
    return value;
  };
  const work = (message: Tagged): unknown => {
    const number = Number(message.number);
    if (message.do === 'call') return own.get(number)?.(...(message.args as unknown[]));
    if (message.do === 'settle') {
      const settle = waiting.get(number);
      waiting.delete(number);
      settle?.[message.ok ? 0 : 1](message.value);
      return undefined;
    }
    const key = String(message.key);
    if (Object.hasOwn(globalThis, key))
      throw new Error('Cannot bind an API on top of an existing property on the window object');
    Object.defineProperty(globalThis, key, { value: freeze(message.api), enumerable: true });
    return undefined;
  };
  page.addEventListener(`${token}:${side}`, (event) => {
    let reply: string;
    try {
      reply = pack({ ok: true, value: work(unpack((event as CustomEvent<string>).detail) as Tagged) });
    } catch (error) {
      reply = pack({ ok: false, value: error instanceof Error ? error : new Error(String(error)) });
    }
    page.dispatchEvent(new CustomEvent(`${token}:${other}:answer`, { detail: reply }));
  });
  page.addEventListener(`${token}:${side}:answer`, (event) => {
    answer = (event as CustomEvent<string>).detail;
  });
  return { expose: (key, api) => void callAcross({ do: 'expose', key, api }) };
}

interface PreloadNames {
  readonly toNode: string;
  readonly fromNode: string;
}
type Preload = (require: (name: string) => unknown, module: { exports: object }, exports: object) => void;

/** What a sandboxed preload finds: `require('electron')` with contextBridge and ipcRenderer. Stringified as above. */
function runPreload(bridge: ContextBridge, codec: Codec, names: PreloadNames, preload: Preload): void {
  const scope = globalThis as unknown as Record<string, unknown>;
  const toNode = scope[names.toNode] as (text: string) => void;
  delete scope[names.toNode];
  type Listener = (event: object, ...args: unknown[]) => void;
  const listeners = new Map<string, Listener[]>();
  const waiting = new Map<number, [(value: unknown) => void, (error: Error) => void, string]>();
  let lastCall = 0;
  const unsupported = (what: string) => () => {
    throw new Error(`the Electron stand-in has no ${what}`);
  };
  const ipcRenderer = {
    invoke: (channel: string, ...args: unknown[]) =>
      new Promise((resolve, reject) => {
        lastCall += 1;
        const text = codec.encode({ do: 'invoke', call: lastCall, channel, args });
        waiting.set(lastCall, [resolve, reject, channel]);
        toNode(text);
      }),
    send: (channel: string, ...args: unknown[]) => toNode(codec.encode({ do: 'send', channel, args })),
    on: (channel: string, listener: Listener) => {
      listeners.set(channel, [...(listeners.get(channel) ?? []), listener]);
      return ipcRenderer;
    },
    off: (channel: string, listener: Listener) => {
      listeners.set(
        channel,
        (listeners.get(channel) ?? []).filter((one) => one !== listener),
      );
      return ipcRenderer;
    },
    sendSync: unsupported('ipcRenderer.sendSync'),
    postMessage: unsupported('ipcRenderer.postMessage'),
  };
  Object.defineProperty(scope, names.fromNode, {
    value: (batch: readonly string[]) => {
      for (const text of batch) {
        const message = codec.decode(text) as Tagged;
        if (message.do === 'event') {
          for (const listener of listeners.get(String(message.channel)) ?? [])
            listener({}, ...(message.args as unknown[]));
          continue;
        }
        const call = waiting.get(Number(message.call));
        waiting.delete(Number(message.call));
        if (!call) continue;
        const [resolve, reject, channel] = call;
        if (message.ok) resolve(message.value);
        else reject(new Error(`Error invoking remote method '${channel}': ${message.error}`));
      }
    },
  });
  const modules: Record<string, unknown> = {
    electron: {
      ipcRenderer,
      contextBridge: { exposeInMainWorld: (key: string, api: unknown) => bridge.expose(key, api) },
    },
  };
  const module = { exports: {} };
  try {
    preload(
      (name) => {
        const found = modules[name];
        if (!found) throw new Error(`module not found: ${name}`); // a sandboxed preload can load nothing else either
        return found;
      },
      module,
      module.exports,
    );
  } catch (error) {
    toNode(codec.encode({ do: 'preload-error', error }));
  }
}

/**
 * `window.open` as Electron answers it where the app denies every window: the app is asked, the page gets null. A popup that is made
 * and closed again would share the page's thread, and a debugger that had not let it go on yet would stop both.
 */
function askBeforeOpening(token: string): void {
  window.open = (url) => {
    const detail = new URL(String(url ?? 'about:blank'), document.baseURI).href;
    document.dispatchEvent(new CustomEvent(`${token}:open`, { detail }));
    return null;
  };
}

/** The preload's side of it. */
function passOnOpening(token: string, codec: Codec, toNodeName: string): void {
  const toNode = (globalThis as unknown as Record<string, (text: string) => void>)[toNodeName];
  document.addEventListener(`${token}:open`, (event) => {
    toNode?.(codec.encode({ do: 'open', channel: '', args: [String((event as CustomEvent).detail)] }));
  });
}

const topOnly = 'if (window !== window.top) return;';

export const pageWorldSource = (token: string): string =>
  `(() => { ${topOnly} (${bridgeHalf})(${JSON.stringify(token)}, 'page', (${makeCodec})());
(${askBeforeOpening})(${JSON.stringify(token)}); })();`;

export const preloadWorldSource = (token: string, code: string): string =>
  `(() => { ${topOnly} const codec = (${makeCodec})(); const bridge = (${bridgeHalf})(${JSON.stringify(token)}, 'preload', codec);
(${passOnOpening})(${JSON.stringify(token)}, codec, ${JSON.stringify(TO_NODE)});
(${runPreload})(bridge, codec, ${JSON.stringify({ toNode: TO_NODE, fromNode: FROM_NODE })}, function (require, module, exports) {
${code}
}); })();`;
