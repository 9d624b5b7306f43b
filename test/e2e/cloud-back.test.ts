import { setTimeout as wait } from 'node:timers/promises';
import { afterAll, afterEach, expect, it } from 'vitest';
import { CloudHouse, until } from '../support/cloud.ts';
import { removeTemporaryFolders } from '../support/processes.ts';

let house: CloudHouse | null = null;

afterEach(async () => {
  house?.agents[0]?.kill('SIGCONT');
  await house?.stop();
});
afterAll(removeTemporaryFolders);

it('the cloud of a machine that fell silent with a call in flight is back with the machine', {
  timeout: 120_000,
}, async () => {
  const started = await CloudHouse.start({
    standIn: { latencyMs: 50 },
    roles: { 'code-assistant': { policy: 'cloud' } },
  });
  house = started;
  await started.ready('code-assistant', 'cloud');
  const [agent] = started.agents;
  const state = async () => (await started.operator.get<{ nodes: { state: string }[] }>('nodes')).nodes[0]?.state;
  await started.standIn.order({ latencyMs: 60_000 });
  const lost = started.chat('code-assistant');
  await until(async () => (await started.standIn.books()).running === 1);
  agent?.kill('SIGSTOP');
  await until(async () => (await state()) === 'unreachable', 40_000);
  await started.standIn.order({ latencyMs: 50 });
  // Its permit is back after 5 s.
  await wait(5500);
  agent?.kill('SIGCONT');
  await until(async () => (await state()) === 'ready', 20_000);
  const backAtMs = Date.now();
  expect((await started.chat('code-assistant')).status).toBe(200);
  expect(Date.now() - backAtMs).toBeLessThan(4000);
  await lost;
});
