import { EventEmitter } from 'node:events';
import { readFileSync } from 'node:fs';

// Loaded before a utility process's own module: gives it Electron's parentPort and version, and ends it with its parent.
const packageFile = new URL('../../node_modules/electron/package.json', import.meta.url);
const { version } = JSON.parse(readFileSync(packageFile, 'utf8')) as { version: string };
Object.defineProperty(process, 'versions', {
  value: Object.freeze({ ...process.versions, electron: version }),
  enumerable: true,
});
const port = Object.assign(new EventEmitter(), {
  postMessage: (message: unknown) => {
    process.send?.(message);
  },
});
const held: unknown[] = [];
process.on('message', (data) => {
  // Messages that come before anybody listens are kept, as a message port does until it is started.
  if (port.listenerCount('message') === 0) held.push(data);
  else port.emit('message', { data, ports: [] });
});
port.on('newListener', (name) => {
  if (name !== 'message') return;
  process.nextTick(() => {
    for (const data of held.splice(0)) port.emit('message', { data, ports: [] });
  });
});
process.on('disconnect', () => process.exit(0));
Object.defineProperty(process, 'parentPort', { value: port });
