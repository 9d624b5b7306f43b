import { afterAll, beforeAll, expect, it } from 'vitest';
import { Yard } from '../chaos/fleet.ts';
import { OllamaStandIn } from '../engines/stand-ins/ollama.ts';
import { removeTemporaryFolders } from '../support/processes.ts';

const MODEL = 'chat:8b';
const MACHINES = ['one', 'other'] as const;

interface Chosen {
  readonly step: string;
  readonly name?: string;
  readonly why?: { readonly code: string };
}

const engines = MACHINES.map(() => new OllamaStandIn({ models: [{ name: MODEL, kind: 'chat', trained: 4096 }] }));
let yard: Yard;

beforeAll(async () => {
  for (const engine of engines) await engine.start();
  yard = await Yard.start();
  for (const [at, name] of MACHINES.entries()) await yard.add(name, [engines[at]?.url ?? '']);
  await yard.ready('code-assistant', 2);
});
afterAll(async () => {
  await yard?.stop();
  for (const engine of engines) await engine.stop();
  removeTemporaryFolders();
});

/** In the memory of this one alone, as Ollama does with what was used or has not been used for long. */
async function loadedOn(machine: number): Promise<void> {
  for (const [at, engine] of engines.entries()) {
    engine.loaded.clear();
    if (at === machine) engine.loaded.set(MODEL, '{}');
    engine.loads = 0;
  }
  await expect
    .poll(async () => {
      const ids = await Promise.all(MACHINES.map((name) => yard.node(name)));
      const views = await Promise.all(
        ids.map(({ id }) =>
          yard.operator.get<{ engines: { models: { model: string; loaded: boolean }[] }[] }>(`nodes/${id}`),
        ),
      );
      return views.map(({ engines: all }) =>
        all.some(({ models }) => models.some(({ model, loaded }) => model === MODEL && loaded)),
      );
    })
    .toEqual(MACHINES.map((_, at) => at === machine));
}

it.each([0, 1])('of two machines with one model the one that has it loaded is asked (machine %i)', async (machine) => {
  await loadedOn(machine);
  for (let conversation = 0; conversation < 6; conversation++) {
    // Another conversation each time: the machine that answered the last one has no claim on it.
    const messages = [{ role: 'user', content: `conversation ${conversation} with ${MACHINES[machine]}` }];
    const response = await yard.post('/v1/chat/completions', { model: 'code-assistant', messages, max_tokens: 4 });
    expect(response.status).toBe(200);
    await response.arrayBuffer();
    const id = response.headers.get('x-request-id');
    const { steps } = await yard.operator.get<{ steps: Chosen[] }>(`requests/${id}`);
    const chosen = steps.find(({ step }) => step === 'chosen');
    expect(chosen?.name).toBe(`${MODEL} on ${MACHINES[machine]}`);
    expect(chosen?.why?.code).toBe('loaded');
  }
  expect(engines.map(({ loads }) => loads)).toEqual([0, 0]); // nobody had to read it from the disk
});
