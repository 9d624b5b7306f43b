import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { type LlamaServer, startLlama } from '../engines/llama.ts';
import { encoderModel, quantised } from '../engines/models.ts';
import { type RecordingProxy, startProxy } from '../engines/proxy.ts';
import { describeWithLlama } from '../engines/suite.ts';
import {
  type Agent,
  admin,
  type ControlPlane,
  removeTemporaryFolders,
  startAgent,
  startControlPlane,
} from '../support/processes.ts';

interface Machine {
  server: LlamaServer;
  readonly proxy: RecordingProxy;
  readonly model: string;
  readonly args: readonly string[];
}

interface VerdictRow {
  readonly providerId: string;
  readonly model: string;
  readonly verdict: string;
  readonly minCosine: number | null;
  readonly worstProbe: { readonly probe: string } | null;
  readonly checks: readonly { readonly check: string; readonly state: string; readonly figure: number | null }[];
  readonly running: boolean;
}

async function machine(model: string, ...args: string[]): Promise<Machine> {
  const all = ['--embeddings', ...args];
  const server = await startLlama({ model, args: all });
  return { server, proxy: await startProxy(server.url), model, args: all };
}

function cosine(a: readonly number[], b: readonly number[]): number {
  const dot = (x: readonly number[], y: readonly number[]) =>
    x.reduce((sum, value, at) => sum + value * (y[at] ?? 0), 0);
  return dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b));
}

/** Texts that only production sends begin so; no probe does. */
const MARK = 'marked text number';

await describeWithLlama('a fleet of encoders of which only some agree', () => {
  const machines: Record<string, Machine> = {};
  let agent: Agent;
  let plane: ControlPlane;
  let operator: ReturnType<typeof admin>;
  const verdicts = async () =>
    (await operator.get<{ verdicts: VerdictRow[] }>('gate')).verdicts.filter(({ providerId }) =>
      providerId.startsWith('embedding~'),
    );
  const verdictOf = async (name: string) => {
    const { engines, id } = await engineOf(name);
    const row = (await verdicts()).find(({ providerId }) => providerId.includes(encodeURIComponent(engines)));
    if (!row) throw new Error(`no verdict for ${name} among ${id}`);
    return row;
  };
  const engineOf = async (name: string) => {
    const { nodes } = await operator.get<{ nodes: { id: string }[] }>('nodes');
    const id = nodes[0]?.id ?? '';
    const { engines } = await operator.get<{ engines: { id: string; address: string }[] }>(`nodes/${id}`);
    const port = String(machines[name]?.proxy.port);
    return { id, engines: engines.find(({ address }) => address.endsWith(`:${port}`))?.id ?? '?' };
  };
  const embed = async (texts: readonly string[]) => {
    const response = await fetch(`${plane.endpoint}/v1/embeddings`, {
      method: 'POST',
      headers: { authorization: `Bearer ${plane.apiKey}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'embedding', input: texts, encoding_format: 'float' }),
    });
    const answer = (await response.json()) as { data?: { embedding: number[] }[]; error?: { code: string } };
    return {
      status: response.status,
      vectors: answer.data?.map(({ embedding }) => embedding) ?? [],
      code: answer.error?.code,
    };
  };
  const own = async (name: string, texts: readonly string[]) => {
    const response = await fetch(`${machines[name]?.server.url}/v1/embeddings`, {
      method: 'POST',
      body: JSON.stringify({ input: texts }),
    });
    return ((await response.json()) as { data: { embedding: number[] }[] }).data.map(({ embedding }) => embedding);
  };

  beforeAll(async () => {
    const founder = encoderModel();
    machines.founder = await machine(founder);
    machines.q8 = await machine(await quantised(founder, 'Q8_0'));
    machines.q4 = await machine(await quantised(founder, 'Q4_0'));
    machines.cls = await machine(founder, '--pooling', 'cls');
    machines.other = await machine(encoderModel({ seed: 7 }));
    machines.wide = await machine(encoderModel({ dim: 512, heads: 8 }));
    agent = await startAgent({ engines: Object.values(machines).map(({ proxy }) => proxy.url) });
    plane = await startControlPlane();
    operator = admin(plane, plane.adminToken);
    await operator.post('nodes', { address: agent.listen, joinCode: agent.joinCode });
    await vi.waitUntil(
      async () => {
        const { founders } = await operator
          .get<{ founders: { ready: boolean }[] }>('spaces/candidates?role=embedding')
          .catch(() => ({ founders: [] }));
        return founders.filter(({ ready }) => ready).length === 6;
      },
      { timeout: 60_000, interval: 200 },
    );
  });

  afterAll(async () => {
    await plane?.stop();
    await agent?.stop();
    for (const { proxy, server } of Object.values(machines)) {
      await proxy.stop();
      await server.stop();
    }
    removeTemporaryFolders();
  });

  it('asks which of several encoders founds the space, and serves nobody before', async () => {
    expect(await embed(['too early'])).toMatchObject({ status: 503, code: 'space_unfounded' });
    const { founders } = await operator.get<{ founders: { providerId: string; ready: boolean }[] }>(
      'spaces/candidates?role=embedding',
    );
    expect(founders).toHaveLength(6);
    const { engines } = await engineOf('founder');
    const founder = founders.find(({ providerId }) => providerId.includes(encodeURIComponent(engines)));
    await operator.post('spaces', { role: 'embedding', founder: founder?.providerId, confirm: true });
    await vi.waitUntil(
      async () => {
        const rows = await verdicts();
        return rows.length >= 5 && rows.every(({ verdict, running }) => verdict !== 'unverified' && !running);
      },
      { timeout: 80_000, interval: 200 },
    );
  });

  it('lets the founder and its Q8_0 pass', async () => {
    expect(await verdictOf('founder')).toMatchObject({ verdict: 'pass' });
    const q8 = await verdictOf('q8');
    expect(q8.verdict).toBe('pass');
    expect(q8.minCosine).toBeGreaterThan(0.99);
    expect(q8.minCosine).toBeLessThan(1);
  });

  it('refuses Q4_0, other pooling and another model of equal width, each with its minimum and worst probe', async () => {
    for (const name of ['q4', 'cls', 'other']) {
      const row = await verdictOf(name);
      expect(row.verdict, name).toBe('vector-incompatible');
      expect(row.minCosine, name).toBeLessThan(0.99);
      expect(row.worstProbe?.probe, name).toBeTruthy();
    }
  });

  it('refuses a model of another width', async () => {
    // It is no provider of the role any more: the space has another width. What it was found to be stays visible, if it was looked at.
    const { providers } = await operator.get<{ providers: { id: string }[] }>('providers?role=embedding');
    const { engines } = await engineOf('wide');
    const wide = providers.find(({ id }) => id.includes(encodeURIComponent(engines)));
    const row = (await verdicts()).find(({ providerId }) => providerId.includes(encodeURIComponent(engines)));
    expect(wide === undefined || row?.verdict === 'dimension-mismatch').toBe(true);
    expect(row?.verdict).toBe('dimension-mismatch');
  });

  it('serves 300 texts while the refused engines see nothing but probes', async () => {
    const texts = Array.from({ length: 300 }, (_, at) => `${MARK} ${at}`);
    const { status, vectors } = await embed(texts);
    expect(status).toBe(200);
    const expected = await own('founder', texts.slice(0, 20));
    expected.forEach((vector, at) => {
      expect(cosine(vector, vectors[at] ?? [])).toBeGreaterThan(0.99);
    });
    const probes = JSON.parse(readFileSync(new URL('../../assets/probes.json', import.meta.url), 'utf8')) as {
      probes: { text: string }[];
    };
    expect(machines.q4?.proxy.texts()).toContain(probes.probes[0]?.text);
    for (const name of ['q4', 'cls', 'other', 'wide']) {
      expect(
        machines[name]?.proxy.texts().some((text) => text.startsWith(MARK)),
        name,
      ).toBe(false);
    }
  });

  it('lets no vector of a passing server reach a client once it was restarted with another pooling on the same port', async () => {
    const { q8, founder } = machines;
    if (!q8 || !founder) throw new Error('not started');
    const texts = Array.from({ length: 40 }, (_, at) => `${MARK} again ${at}`);
    const expected = await own('founder', texts);
    let restarted = false;
    let wrong = 0;
    let answered = 0;
    let over = false;
    const traffic = (async () => {
      while (!over) {
        const began = restarted;
        const { vectors } = await embed(texts);
        if (vectors.length === 0 || !began) continue;
        answered += 1;
        vectors.forEach((vector, at) => {
          if (cosine(vector, expected[at] ?? []) < 0.99) wrong += 1;
        });
      }
    })();
    await vi.waitUntil(() => q8.proxy.texts().some((text) => text.startsWith(`${MARK} again`)), { timeout: 20_000 });
    await q8.server.stop();
    q8.server = await startLlama({ model: q8.model, args: [...q8.args, '--pooling', 'cls'], port: q8.server.port });
    restarted = true;
    await vi.waitUntil(async () => (await verdictOf('q8')).verdict === 'vector-incompatible', {
      timeout: 60_000,
      interval: 200,
    });
    await vi.waitUntil(() => answered >= 5, { timeout: 30_000 });
    over = true;
    await traffic;
    expect(wrong).toBe(0);
  });
});
