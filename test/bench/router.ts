import { parseArgs } from 'node:util';
import type { PriorityClass } from '../../main/domain/classes.ts';
import { RouterCore } from '../../main/router/core.ts';
import type { RouterItem } from '../../main/router/types.ts';
import { item, ok, Permits, provider } from '../router/support.ts';

/**
 * Router core alone: dispatches per CPU second with 100 and 1,000 providers, and memory per queued item. Prints JSON lines.
 *
 *   node --expose-gc test/bench/router.ts [--seconds 2] [--only NAME]
 */
const { values } = parseArgs({
  options: { seconds: { type: 'string', default: '2' }, only: { type: 'string', default: '' } },
});
const seconds = Number(values.seconds);

/** CPU time of this process, garbage collection included: the figure does not hang on what else the machine does. */
function cpuSeconds(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
}

const CLASSES: readonly PriorityClass[] = ['interactive', 'normal', 'batch'];

function coreWith(count: number, slots: number, queueBound: number): RouterCore {
  const router = new RouterCore({ permits: new Permits(), settings: { queueBound } });
  const fleet = Array.from({ length: count }, (_, n) =>
    provider(`n${n}`, { slots, tokensPerSecond: 20 + (n % 50), ttftMs: 100 + (n % 7) * 40, contextTokens: 32_768 }),
  );
  router.setProviders(fleet, 0);
  return router;
}

function next(n: number): RouterItem {
  return item(`r${n}`, {
    project: `p${n % 8}`,
    class: CLASSES[n % 3] ?? 'normal',
    costTokens: 200 + (n % 900),
    conversation: n % 4 === 0 ? `c${n % 1000}` : null,
  });
}

/**
 * Every call of the loop ends one attempt, submits one item and decides: one dispatch. `busyShare` of the slots stay taken, so
 * that a choice is among the rest.
 */
function dispatchRate(count: number, busyShare: number): number {
  const slots = 4;
  const router = coreWith(count, slots, 4_000_000);
  const running: number[] = [];
  let n = 0;
  let nowMs = 0;
  let dispatched = 0;
  const decide = (): void => {
    for (const decision of router.decide(nowMs)) {
      if (decision.kind !== 'dispatch') continue;
      running.push(decision.attempt);
      dispatched += 1;
    }
  };
  // A full fleet keeps a backlog; a partly idle one has exactly the running work it should have.
  const start = busyShare === 1 ? count * slots + 200 : Math.max(1, Math.floor(count * slots * busyShare));
  for (; n < start; n += 1) {
    router.submit(next(n), nowMs);
    decide();
  }
  let at = 0;
  const turn = (): void => {
    nowMs += 0.01;
    at = (at + 7) % running.length;
    const attempt = running[at];
    running[at] = running.at(-1) ?? 0;
    running.pop();
    if (attempt !== undefined) router.attemptEnded(attempt, ok, nowMs);
    router.submit(next(n), nowMs);
    n += 1;
    decide();
    router.nextWakeMs(nowMs);
  };
  for (let warm = 0; warm < 20_000; warm += 1) turn();
  dispatched = 0;
  const begin = cpuSeconds();
  let now = begin;
  while (now < begin + seconds) {
    for (let burst = 0; burst < 200; burst += 1) turn();
    now = cpuSeconds();
  }
  return dispatched / (now - begin);
}

function queuedBytes(count: number): number {
  const router = coreWith(10, 1, 4 * count);
  for (let n = 0; n < 10; n += 1) router.submit(next(n), 0);
  router.decide(0);
  globalThis.gc?.();
  const before = process.memoryUsage().heapUsed;
  for (let n = 10; n < count + 10; n += 1) router.submit(next(n), 1);
  globalThis.gc?.();
  const bytes = process.memoryUsage().heapUsed - before;
  if (router.snapshot(2).roles.every(({ oldestMs }) => oldestMs === null)) throw new Error('nothing is queued');
  return bytes;
}

const rows = [
  ['dispatches_per_s_100_providers_full', 100_000, () => dispatchRate(100, 1)],
  ['dispatches_per_s_100_providers_half_busy', 100_000, () => dispatchRate(100, 0.5)],
  ['dispatches_per_s_100_providers_idle', 100_000, () => dispatchRate(100, 0.01)],
  ['dispatches_per_s_1000_providers_full', 20_000, () => dispatchRate(1000, 1)],
  ['dispatches_per_s_1000_providers_half_busy', 20_000, () => dispatchRate(1000, 0.5)],
  ['dispatches_per_s_1000_providers_idle', 20_000, () => dispatchRate(1000, 0.01)],
  ['bytes_of_100000_queued_items', 100_000_000, () => queuedBytes(100_000)],
] as const;

for (const [name, goal, measure] of rows) {
  if (name.includes(values.only)) console.log(JSON.stringify({ name, goal, value: Math.round(measure()) }));
}
