import { EventEmitter } from 'node:events';
import type { WebContents } from 'electron';
import { describe, expect, it } from 'vitest';
import { ConsoleIpc, type IpcPorts } from '../../main/desktop/ipc.ts';
import type { DesktopPlane } from '../../main/desktop/ports.ts';
import { SwitchyardError } from '../../main/domain/errors.ts';
import { type Answer, CHANNELS, type TopicUpdate } from '../../preload/contract.ts';

type Handler = (event: object, ...args: unknown[]) => Promise<Answer>;
type Call = DesktopPlane['call'];

function rig(call: Call = async () => 'value') {
  const handlers = new Map<string, Handler>();
  const listeners = new Map<string, (event: object, ...args: unknown[]) => void>();
  const pushed: { bytes: string; buffer: Buffer }[] = [];
  const subscribed: (readonly string[])[] = [];
  let tell: (update: TopicUpdate) => void = () => undefined;
  const plane: DesktopPlane = {
    call,
    pushCloudKey: async (buffer) => {
      pushed.push({ bytes: buffer.toString('latin1'), buffer });
    },
    topics: {
      subscribe: (topics, listener) => {
        subscribed.push(topics);
        tell = listener;
        return () => undefined;
      },
    },
    onPower: () => undefined,
  };
  const ipcMain = {
    handle: (channel: string, handler: Handler) => handlers.set(channel, handler),
    on: (channel: string, listener: (event: object) => void) => listeners.set(channel, listener),
    removeHandler: (channel: string) => handlers.delete(channel),
    removeAllListeners: (channel: string) => listeners.delete(channel),
  } as unknown as IpcPorts['ipcMain'];
  let flush: () => void = () => undefined;
  const ipc = new ConsoleIpc({
    ipcMain,
    plane: Promise.resolve(plane),
    after: (_delay, callback) => {
      flush = callback;
      return () => undefined;
    },
  });
  ipc.start();
  const sent: unknown[][] = [];
  const contents = Object.assign(new EventEmitter(), {
    isDestroyed: () => false,
    send: (...args: unknown[]) => sent.push(args),
  }) as unknown as WebContents;
  ipc.admit(contents);
  const frame = { parent: null, origin: 'app://bundle' };
  const event = (over: object = {}) => ({ sender: contents, senderFrame: frame, ...over });
  return {
    ipc,
    contents,
    frame,
    event,
    pushed,
    subscribed,
    sent,
    tell: (update: TopicUpdate) => tell(update),
    flush: () => flush(),
    invoke: (channel: string, from: object, ...args: unknown[]) => handlers.get(channel)?.(from, ...args),
    post: (channel: string, from: object, ...args: unknown[]) => listeners.get(channel)?.(from, ...args),
  };
}

describe('a message over IPC', () => {
  it('counts only from the main frame of an admitted window on our own origin', async () => {
    const { invoke, event, contents } = rig();
    const refused = { ok: false, code: 'forbidden_origin', detail: null };
    expect(await invoke(CHANNELS.call, event(), 'roles.list', {})).toEqual({ ok: true, value: 'value' });
    for (const from of [
      event({ senderFrame: null }),
      event({ senderFrame: { parent: {}, origin: 'app://bundle' } }),
      event({ senderFrame: { parent: null, origin: 'https://evil.example' } }),
      event({ senderFrame: { parent: null, origin: 'app://bundle.evil' } }),
      event({ sender: { ...contents } }),
    ])
      expect(await invoke(CHANNELS.call, from, 'roles.list', {})).toEqual(refused);
  });

  it('is answered by a code of ours; foreign words never pass', async () => {
    const foreign = rig(async () => {
      throw new Error('ENOENT: /home/ada/secret');
    });
    expect(await foreign.invoke(CHANNELS.call, foreign.event(), 'x', {})).toEqual({
      ok: false,
      code: 'internal_error',
      detail: null,
    });
    const ours = rig(async () => {
      throw new SwitchyardError('node_not_found');
    });
    expect(await ours.invoke(CHANNELS.call, ours.event(), 'x', {})).toEqual({
      ok: false,
      code: 'node_not_found',
      detail: null,
    });
    const more = rig(async () => {
      throw new SwitchyardError('no_provider', 'lab-box is asleep.');
    });
    expect(await more.invoke(CHANNELS.call, more.event(), 'x', {})).toMatchObject({ detail: 'lab-box is asleep.' });
    const odd = rig();
    expect(await odd.invoke(CHANNELS.call, odd.event(), { toString: () => 'x' }, {})).toMatchObject({
      code: 'invalid_request',
    });
  });

  it('is dropped once its window is dismissed', async () => {
    const { ipc, contents, invoke, event } = rig();
    ipc.dismiss(contents);
    expect(await invoke(CHANNELS.call, event(), 'roles.list', {})).toMatchObject({ code: 'forbidden_origin' });
  });
});

describe('the cloud key over IPC', () => {
  it('is passed on as bytes and zeroed on both sides', async () => {
    const { invoke, event, pushed } = rig(async () => ({ state: 'on' }));
    const bytes = new TextEncoder().encode('sk-or-v1-canary');
    expect(await invoke(CHANNELS.cloudKey, event(), bytes, {})).toEqual({ ok: true, value: { state: 'on' } });
    expect(pushed.map((one) => one.bytes)).toEqual(['sk-or-v1-canary']);
    expect([...bytes].every((byte) => byte === 0)).toBe(true);
    expect(pushed[0]?.buffer.every((byte) => byte === 0)).toBe(true);
  });

  it('is refused as a string, too long, or with members nobody knows, and zeroed all the same', async () => {
    const { invoke, event, pushed } = rig();
    expect(await invoke(CHANNELS.cloudKey, event(), 'sk-or-v1', {})).toMatchObject({ code: 'invalid_cloud_key' });
    expect(await invoke(CHANNELS.cloudKey, event(), new Uint8Array(10_000).fill(65), {})).toMatchObject({
      code: 'invalid_cloud_key',
    });
    const bytes = new Uint8Array(20).fill(65);
    expect(await invoke(CHANNELS.cloudKey, event(), bytes, { to: 'x' })).toMatchObject({ code: 'invalid_request' });
    expect([...bytes].every((byte) => byte === 0)).toBe(true);
    expect(pushed).toEqual([]);
  });
});

describe('topics over IPC', () => {
  const settle = () => new Promise((resolve) => setImmediate(resolve));

  it('are sent to the window that wants them, and not once its page is gone', async () => {
    const { post, event, subscribed, tell, sent, ipc, contents } = rig();
    post(CHANNELS.want, event(), ['nodes', 'no-such-topic', '__proto__']);
    await settle();
    expect(subscribed).toEqual([['nodes']]);
    tell({ topic: 'nodes', type: 'snapshot', rows: [] });
    expect(sent).toEqual([[CHANNELS.update, { topic: 'nodes', type: 'snapshot', rows: [] }]]);
    ipc.forget(contents);
    post(CHANNELS.want, event({ senderFrame: null }), ['nodes']);
    await settle();
    expect(subscribed).toHaveLength(1);
  });

  it('wait while the window is hidden', async () => {
    const { post, event, tell, sent, ipc, contents, flush } = rig();
    post(CHANNELS.want, event(), ['budget']);
    await settle();
    ipc.setHidden(contents, true);
    tell({ topic: 'budget', type: 'value', value: { inFlight: 1 } as never });
    tell({ topic: 'budget', type: 'value', value: { inFlight: 2 } as never });
    expect(sent).toEqual([]);
    ipc.setHidden(contents, false);
    flush();
    expect(sent).toEqual([[CHANNELS.update, { topic: 'budget', type: 'value', value: { inFlight: 2 } }]]);
  });
});
