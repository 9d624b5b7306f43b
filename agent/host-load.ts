import { readFile } from 'node:fs/promises';
import os from 'node:os';
import type { Heartbeat } from './wire/control.ts';

type HostReport = Heartbeat['host'];

interface CpuTimes {
  readonly busy: number;
  readonly total: number;
}

/** Load of this machine from the system's own counters; runs no program and costs less than a millisecond. */
export class HostLoad {
  #last: CpuTimes | null = null;

  /** CPU use is measured between two calls: null at the first. */
  async read(): Promise<HostReport> {
    const now = cpuTimes();
    const before = this.#last;
    this.#last = now;
    const elapsed = before === null ? 0 : now.total - before.total;
    const memoryTotalBytes = os.totalmem();
    return {
      cpuPercent: before === null || elapsed <= 0 ? null : clampPercent(((now.busy - before.busy) / elapsed) * 100),
      memoryUsedBytes: memoryTotalBytes - (await availableBytes()),
      memoryTotalBytes,
      uptimeS: os.uptime(),
    };
  }
}

const clampPercent = (value: number) => Math.min(100, Math.max(0, value));

function cpuTimes(): CpuTimes {
  let busy = 0;
  let total = 0;
  for (const { times } of os.cpus()) {
    const used = times.user + times.nice + times.sys + times.irq;
    busy += used;
    total += used + times.idle;
  }
  return { busy, total };
}

/** Linux counts file caches as used in `freemem`; MemAvailable is what a new model could have. */
async function availableBytes(): Promise<number> {
  if (process.platform !== 'linux') return os.freemem();
  const info = await readFile('/proc/meminfo', 'utf8').catch(() => '');
  const match = /^MemAvailable:\s+(\d+) kB/m.exec(info);
  return match === null ? os.freemem() : Number(match[1]) * 1024;
}
