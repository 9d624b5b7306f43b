import { createSystemClock } from '../../main/platform/clock.ts';
import { SqliteStore } from '../../main/store/client.ts';
import { key32, nodeRecord } from './support-records.ts';

// Writes configuration as fast as it can and says on stdout what was acknowledged, until it is killed.
const [, , folder = '', round = '0'] = process.argv;
const store = new SqliteStore({
  dataFolder: folder,
  workerUrl: new URL('../../main/store/worker.ts', import.meta.url),
  clock: createSystemClock(),
});
await store.start();
process.stdout.write('started\n');
for (let number = Number(round) * 1_000_000; ; number += 1) {
  // Both halves must always agree; a reader that finds them apart has found a torn document.
  const half = String(number).repeat(400);
  store.events.record({
    id: `e${number}`,
    atMs: Date.now(),
    severity: 'info',
    source: 'app',
    code: 'c',
    sentence: half,
    needsPerson: false,
  });
  await Promise.all([
    store.settings.put('counter', { number, left: half, right: half }),
    store.nodes.add(nodeRecord(`n${number % 7}`, { name: String(number) }), key32(number % 251)),
  ]);
  process.stdout.write(`${number}\n`);
}
