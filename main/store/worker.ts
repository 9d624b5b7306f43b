import { parentPort, workerData } from 'node:worker_threads';
import { SwitchyardError } from '../domain/errors.ts';
import { DatabaseHost } from './database-host.ts';
import type { WorkerCall, WorkerReply, WorkerSettings } from './worker-api.ts';
import { createWorkerApi } from './worker-calls.ts';

// The store's thread: one call after the other, each answered once. Given by the code that starts it, not by a person.
const settings = workerData as WorkerSettings;
const port = parentPort;
if (!port) throw new Error('The store worker runs as a thread.');

const host = new DatabaseHost(settings);
const api = createWorkerApi(host, settings.writer) as unknown as Readonly<
  Record<string, (...args: readonly unknown[]) => unknown>
>;

port.on('message', ({ id, method, args }: WorkerCall) => {
  let reply: WorkerReply;
  try {
    reply = { id, value: api[method]?.(...args), fault: host.fault };
  } catch (error) {
    // A foreign message may quote values, so it stays here.
    const ours = error instanceof SwitchyardError ? error : new SwitchyardError('internal_error');
    reply = { id, error: { code: ours.code, sentence: ours.message, says: ours.says }, fault: host.fault };
  }
  port.postMessage(reply);
  if (method === 'close') port.close();
});
