import { contextBridge, type IpcRendererEvent, ipcRenderer } from 'electron';
import type { ConsoleBridge } from './contract/bridge.ts';
import { CHANNELS } from './contract/channels.ts';
import type { PageId } from './contract/names.ts';
import type { TopicUpdate } from './contract/topics.ts';

/** One listener on a channel; the event object, which leads back to ipcRenderer, never crosses into the page. */
function listen<Args extends readonly unknown[]>(channel: string, listener: (...args: Args) => void): () => void {
  const forward = (_event: IpcRendererEvent, ...args: unknown[]) => listener(...(args as unknown as Args));
  ipcRenderer.on(channel, forward);
  return () => {
    ipcRenderer.off(channel, forward);
  };
}

const bridge: ConsoleBridge = {
  call: (name, input) => ipcRenderer.invoke(CHANNELS.call, name, input),
  pushCloudKey: async (bytes, push) => {
    try {
      return await ipcRenderer.invoke(CHANNELS.cloudKey, bytes, push);
    } finally {
      bytes.fill(0); // this side's copy; the page zeroes its own
    }
  },
  want: (topics) => ipcRenderer.send(CHANNELS.want, topics),
  onUpdate: (listener) => listen<[TopicUpdate]>(CHANNELS.update, listener),
  onShow: (listener) => listen<[PageId, string | null]>(CHANNELS.show, listener),
};

contextBridge.exposeInMainWorld('switchyard', bridge);
