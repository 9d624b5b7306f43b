import { EventEmitter } from 'node:events';

// Loaded before a utility process's own module: gives it Electron's parentPort, and ends it with its parent.
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
