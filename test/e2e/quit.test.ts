import { afterAll, afterEach, expect, it } from 'vitest';
import { type PacedEngine, startPaced } from '../engines/paced.ts';
import { CloudHouse } from '../support/cloud.ts';
import { removeTemporaryFolders } from '../support/processes.ts';

let house: CloudHouse | null = null;
let engine: PacedEngine | null = null;

afterEach(async () => {
  await house?.stop();
  await engine?.stop();
});
afterAll(removeTemporaryFolders);

it('a quit waits 10 s for a stream that does not end, and no longer', { timeout: 60_000 }, async () => {
  engine = await startPaced({ task: 'chat', rate: 2, answerTokens: 500 });
  house = await CloudHouse.start({ agents: [{ engines: [engine.url] }], key: null });
  await house.ready('code-assistant', 'local');
  const { plane } = house;
  const answer = await fetch(`${plane.endpoint}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${plane.apiKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      model: 'code-assistant:local',
      stream: true,
      max_tokens: 500,
      messages: [{ role: 'user', content: 'hello' }],
    }),
  });
  expect(answer.status).toBe(200);
  const text = answer.text();
  const beganAtMs = Date.now();
  plane.kill('SIGTERM');
  expect(await text).toContain('shutting_down');
  await plane.gone;
  const tookMs = Date.now() - beganAtMs;
  expect(tookMs).toBeGreaterThan(9_900);
  expect(tookMs).toBeLessThan(14_000);
});
