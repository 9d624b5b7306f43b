// Loaded into a process that is measured (`node --import`): on SIGUSR2 it writes what its event loop has suffered since the last
// time into the folder SWITCHYARD_BENCH_STATS, and begins anew. A file, because the process knows nothing of the bench.
import { renameSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { constants, monitorEventLoopDelay, PerformanceObserver } from 'node:perf_hooks';

const RESOLUTION_MS = 5;
const folder = process.env.SWITCHYARD_BENCH_STATS;
if (folder) {
  const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  delay.enable();
  /** Collections since the last time: of the young generation, and of everything. */
  const none = () => ({ count: 0, ms: 0, maxMs: 0 });
  const nothing = () => ({ young: none(), whole: none() });
  let gc = nothing();
  new PerformanceObserver((list) => {
    for (const { detail, duration } of list.getEntries()) {
      const of = detail.kind === constants.NODE_PERFORMANCE_GC_MINOR ? gc.young : gc.whole;
      of.count += 1;
      of.ms += duration;
      of.maxMs = Math.max(of.maxMs, duration);
    }
  }).observe({ entryTypes: ['gc'] });
  const overMs = (value) => Math.max(0, value / 1e6 - RESOLUTION_MS);
  process.on('SIGUSR2', () => {
    const { user, system } = process.cpuUsage();
    const told = {
      stallMaxMs: overMs(delay.max),
      stallP99Ms: overMs(delay.percentile(99)),
      cpuMs: (user + system) / 1000,
      heapUsedBytes: process.memoryUsage().heapUsed,
      gc,
    };
    delay.reset();
    gc = nothing();
    const file = path.join(folder, `${process.pid}.json`);
    writeFileSync(`${file}.part`, JSON.stringify(told));
    renameSync(`${file}.part`, file);
  });
}
