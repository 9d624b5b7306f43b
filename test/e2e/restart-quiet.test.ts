import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TeiStandIn } from '../engines/stand-ins/tei.ts';
import { HashVectors } from '../engines/stand-ins/vectors.ts';
import { CloudHouse, until } from '../support/cloud.ts';
import { admin, type ControlPlane, removeTemporaryFolders, startControlPlane } from '../support/processes.ts';

interface EventRow {
  readonly id: string;
  readonly code: string;
  readonly severity: string;
  readonly needsPerson: boolean;
}
interface VerdictRow {
  readonly providerId: string;
  readonly verdict: string;
  readonly running: boolean;
  readonly checkedAtMs: number | null;
}
const BAD = ['dimension-mismatch', 'vector-incompatible'];
afterAll(removeTemporaryFolders);

describe('a control plane that is started again while its machines run on', () => {
  const good = new TeiStandIn({ vectors: new HashVectors(64) });
  const wide = new TeiStandIn({ vectors: new HashVectors(96) });
  const other = new TeiStandIn({ vectors: new HashVectors(64, 'another') });
  const engines = [good, wide, other];
  let house: CloudHouse;
  let plane: ControlPlane;
  let operator: ReturnType<typeof admin>;
  const told = new Set<string>();

  const events = async () => (await operator.get<{ events: EventRow[] }>('events?limit=1000')).events;
  const verdicts = async () =>
    (await operator.get<{ verdicts: VerdictRow[] }>('gate')).verdicts.filter(({ providerId }) =>
      providerId.startsWith('embedding~'),
    );
  const holding = async () =>
    (await operator.get<{ holders: { state: string }[] }>('cloud')).holders.filter(({ state }) => state === 'accepted')
      .length;
  /** Every bad encoder has been looked at again since then. */
  const checkedSince = async (atMs: number) => {
    const bad = (await verdicts()).filter(({ verdict, running }) => BAD.includes(verdict) && !running);
    return bad.filter(({ checkedAtMs }) => (checkedAtMs ?? 0) > atMs).length === 2;
  };
  const remember = async () => {
    for (const { id } of await events()) told.add(id);
  };
  /** @returns when it answered again */
  const again = async (how: NodeJS.Signals) => {
    plane.kill(how);
    await plane.gone;
    const beganAtMs = Date.now();
    plane = await startControlPlane({ dataDir: plane.dataDir });
    operator = admin(plane, house.plane.adminToken);
    return beganAtMs;
  };
  const news = async () =>
    (await events())
      .filter(({ id }) => !told.has(id))
      .map(({ code }) => code)
      .reverse();

  beforeAll(async () => {
    for (const engine of engines) await engine.start();
    house = await CloudHouse.start({
      agents: [
        { name: 'alpha', engines: [good.url] },
        { name: 'beta', engines: [wide.url, other.url] },
      ],
      roles: { 'code-embedding': { enabled: false } },
    });
    ({ plane, operator } = house);
    const founders = async () =>
      (
        await operator
          .get<{ founders: { providerId: string; ready: boolean }[] }>('spaces/candidates?role=embedding')
          .catch(() => ({ founders: [] }))
      ).founders.filter(({ ready }) => ready);
    await until(async () => (await founders()).length === 3);
    const founder = (await founders()).find(({ providerId }) =>
      decodeURIComponent(providerId).includes(`:${good.port}`),
    );
    await operator.post('spaces', { role: 'embedding', founder: founder?.providerId, confirm: true });
    await until(() => checkedSince(0));
  });
  afterAll(async () => {
    await plane?.stop();
    await house?.stop();
    for (const engine of engines) await engine.stop();
  });

  it('told of the bad encoder once, of one that serves another width without alarm, and of the key not at all', async () => {
    const rows = await events();
    expect(rows.filter(({ needsPerson }) => needsPerson).map(({ code }) => code)).toContain(
      'verdict_vector_incompatible',
    );
    expect(
      rows.filter(({ code }) => code === 'verdict_dimension_mismatch').every(({ severity }) => severity === 'info'),
    ).toBe(true);
    expect(rows.some(({ code }) => code.endsWith('_key_agent'))).toBe(false);
  });

  it.each(['SIGTERM', 'SIGKILL'] as const)('says after %s that it serves, and nothing else', async (how) => {
    await until(async () => (await verdicts()).every(({ running }) => !running));
    await remember();
    const beganAtMs = await again(how);
    await until(async () => (await holding()) === 2 && (await checkedSince(beganAtMs)));
    expect(await news()).toEqual(['started']);
  });

  it('calls nobody while the second agent is late', async () => {
    await remember();
    const beta = house.agents[1];
    beta?.kill('SIGSTOP');
    await again('SIGTERM');
    await until(async () => (await holding()) === 1);
    beta?.kill('SIGCONT');
    await until(async () => (await holding()) === 2);
    const alarms = (await events()).filter(({ id, needsPerson }) => needsPerson && !told.has(id));
    expect(alarms).toEqual([]);
  });
});

describe('a control plane that is started again with the agent of its own machine', () => {
  let plane: ControlPlane;
  afterAll(() => plane?.stop());

  it('tells of no machine that stopped: it was stopped with it', async () => {
    plane = await startControlPlane({ args: ['--no-discovery'] });
    const token = plane.adminToken;
    const operator = () => admin(plane, token);
    const isUp = async () => {
      const { nodes } = await operator().get<{ nodes: { state: string }[] }>('nodes');
      return nodes.some(({ state }) => state === 'ready' || state === 'degraded');
    };
    await until(isUp);
    plane.kill('SIGTERM');
    await plane.gone;
    plane = await startControlPlane({ dataDir: plane.dataDir, args: ['--no-discovery'] });
    await until(isUp);
    const { events } = await operator().get<{ events: EventRow[] }>('events?limit=1000');
    expect(events.filter(({ code }) => code === 'started')).toHaveLength(2);
    expect(events.filter(({ severity }) => severity !== 'info')).toEqual([]);
  });
});
