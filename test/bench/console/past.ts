import { ROLE_IDS } from '../../../main/domain/roles.ts';
import { createSystemClock } from '../../../main/platform/clock.ts';
import { SqliteStore } from '../../../main/store/client.ts';
import { TIERS } from '../../../main/telemetry/time-series.ts';

const LATENCIES = { p50: 80, p95: 240, p99: 600 } as const;

/** Writes a day of figures into a data folder through the store's own thread, as a control plane that ran would have. */
export async function writePast(dataFolder: string): Promise<void> {
  const clock = createSystemClock();
  const store = new SqliteStore({
    dataFolder,
    clock,
    workerUrl: new URL('../../../main/store/worker.ts', import.meta.url),
  });
  await store.start();
  const nowMs = clock.wallMs();
  for (const { range, stepMs, points } of TIERS) {
    const last = Math.floor(nowMs / stepMs) - 1;
    for (let at = 0; at < points; at += 1) {
      const wave = 1 + Math.sin(at / 9) * 0.8;
      const values = new Map<string, number>([
        ['alive', 1],
        ['permits.inFlight', Math.round(7 * wave)],
        ['permits.effective', at % 60 < 8 ? 8 : 16],
        ['permits.ceiling', 16],
        ['429.poolside/laguna-s-2.1', at % 60 === 0 ? 4 : 0],
        ['429.deepinfra/turbo', at % 45 === 0 ? 2 : 0],
      ]);
      for (const role of ROLE_IDS) {
        values.set(`queue.${role}`, Math.round(6 * wave));
        values.set(`finished.${role}`, 200);
        for (const [name, ms] of Object.entries(LATENCIES)) values.set(`latency.${role}.${name}`, ms * wave);
      }
      store.series.record({ range, atMs: (last - points + 1 + at) * stepMs, values });
    }
  }
  await store.stop();
}
