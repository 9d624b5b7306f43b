import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { ControlPlane } from '../../main/control-plane.ts';
import { noDiscovery } from '../../main/discovery/lan-discovery.ts';
import { createSystemClock } from '../../main/platform/clock.ts';
import type { OperationName, Output } from '../../preload/contract.ts';
import { ask, exchange, type Place, placeOf } from '../enrolment/meeting.ts';
import { type Agent, removeTemporaryFolders, startAgent, temporaryFolder } from '../support/processes.ts';

/** The running core, a client that plays the script, and an agent as a process. On loopback, as if there were nothing else. */
const ending: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const end of ending.splice(0).reverse()) await end();
});
afterAll(removeTemporaryFolders);

const loopback = { address: '127.0.0.1', netmask: '255.0.0.0', mac: '00:00:00:00:00:00', internal: true };

async function plane() {
  const dataFolder = temporaryFolder('enrolment');
  const made = new ControlPlane({
    clock: createSystemClock(),
    random: Math.random,
    randomBytes,
    version: '0.0.0-test',
    shell: 'headless',
    dataFolder,
    storeWorker: new URL('../../main/store/worker.ts', import.meta.url),
    vaultKeys: {},
    port: 0,
    embeddedAgent: null,
    consoleFiles: new Map(),
    discovery: noDiscovery,
    enrolment: {
      network: {
        interfaces: () => ({ lo: [{ ...loopback, family: 'IPv4', cidr: '127.0.0.1/8' }] }),
        defaultAddress: async () => null,
      },
      files: async () => ({ sh: Buffer.from('the script'), ps1: Buffer.from(''), agent: Buffer.from('') }),
    },
  });
  const { endpoint, secrets } = await made.start();
  let stopped = false;
  const stop = async () => {
    if (!stopped) await made.stop();
    stopped = true;
  };
  ending.push(stop);
  const admin = async (method: string, route: string, body?: unknown) => {
    const response = await fetch(`${endpoint}/admin/${route}`, {
      method,
      headers: { authorization: `Bearer ${secrets.adminToken}`, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return { status: response.status, body: (await response.json()) as Record<string, unknown> };
  };
  const call = <Name extends OperationName>(name: Name, input: unknown = {}) =>
    made.call(name, input) as Promise<Output<Name>>;
  const create = async (change: object = {}) => {
    const { status, body } = await admin('POST', 'enrolments', { model: null, engine: null, ...change });
    expect(status).toBe(200);
    const place = placeOf((body as unknown as Output<'enrolments.create'>).commands.posix);
    const at = (method: string, name: string, sent?: unknown) =>
      ask(place as Place, method, `/e/${place.token}/${name}`, sent);
    return { id: (body as unknown as Output<'enrolments.create'>).enrolment.id, place, at };
  };
  return { dataFolder, admin, call, create, stop };
}

async function agent(): Promise<Agent> {
  const started = await startAgent({ name: 'attic' });
  ending.push(() => started.stop());
  return started;
}

const joinOf = (machine: Agent, change: object = {}) => ({
  v: 1,
  port: Number(machine.listen.split(':')[1]),
  joinCode: machine.joinCode,
  fingerprint: machine.fingerprint,
  ...change,
});

describe('a machine that runs its one-time command', () => {
  it('is in the fleet with its base weight; then the address is gone, and a second machine gets nothing', async () => {
    const { dataFolder, admin, call, create, stop } = await plane();
    const { place, at } = await create({ baseWeight: 2.5 });
    expect(await at('GET', 'sh')).toMatchObject({ status: 200, body: 'the script' });
    expect(JSON.parse((await at('GET', 'options')).body)).toMatchObject({ v: 1, model: null, engine: null });
    const step = { v: 1, code: 'service', state: 'done', percent: null, detail: 'already' };
    expect((await at('POST', 'step', step)).status).toBe(204);
    expect((await call('enrolments.list')).enrolments).toMatchObject([
      {
        state: 'running',
        nodeId: null,
        steps: [{ code: 'service', state: 'done', detail: { code: 'enrol_already' } }],
      },
    ]);

    const machine = await agent();
    const stranger = await agent();
    // The code of one machine with the key of another: nothing is paired, and the command holds.
    expect(await at('POST', 'join', joinOf(machine, { fingerprint: stranger.fingerprint }))).toMatchObject({
      status: 409,
      body: '{"state":"failed","code":"identity_changed"}',
    });
    expect(await at('POST', 'join', joinOf(machine, { joinCode: stranger.joinCode }))).toMatchObject({
      status: 409,
      body: '{"state":"failed","code":"join_refused"}',
    });
    expect((await call('nodes.list')).nodes).toEqual([]);
    expect((await call('enrolments.list')).enrolments).toMatchObject([
      { state: 'failed', steps: [{}, { code: 'join', detail: { code: 'join_refused' } }] },
    ]);

    expect(await at('POST', 'join', joinOf(machine))).toMatchObject({ status: 200, body: '{"state":"joined"}' });
    const [node] = (await call('nodes.list')).nodes;
    expect((await call('enrolments.list')).enrolments).toMatchObject([{ state: 'joined', nodeId: node?.id }]);
    await expect(at('POST', 'join', joinOf(stranger))).rejects.toThrow();
    await expect(at('GET', 'sh')).rejects.toThrow();
    await expect
      .poll(async () => (await call('nodes.list')).nodes.map(({ name, state }) => [name, state]))
      .toEqual([['attic', 'ready']]);
    await expect
      .poll(async () => (await call('providers.list')).providers.map(({ weight, nodeId }) => [nodeId, weight?.base]))
      .toEqual([[node?.id, 2.5]]);

    const told = ((await admin('GET', 'events')).body.events as { code: string; sentence: string }[]).map(
      ({ code }) => code,
    );
    for (const code of ['enrolment_made', 'enrolment_failed', 'node_paired', 'enrolment_joined'])
      expect(told).toContain(code);
    await stop();
    // Neither the token nor the machine's code was kept anywhere.
    const store = readFileSync(path.join(dataFolder, 'switchyard.db'), 'latin1');
    expect(store).toContain('enrolment_joined');
    for (const secret of [place.token, machine.joinCode]) expect(store.includes(secret)).toBe(false);
  });

  it('finds nothing any more when the command was withdrawn, or the control plane stopped', async () => {
    const { admin, create, stop } = await plane();
    const [withdrawn, open] = [await create(), await create()];
    const nothing = await exchange(open.place, 'GET / HTTP/1.1\r\nhost: x\r\n\r\n');
    expect(await exchange(open.place, `GET /e/${withdrawn.place.token}/sh HTTP/1.1\r\nhost: x\r\n\r\n`)).toBe(nothing);
    expect((await admin('DELETE', `enrolments/${withdrawn.id}`)).status).toBe(200);
    expect((await admin('DELETE', `enrolments/${withdrawn.id}`)).body).toMatchObject({
      error: { code: 'enrolment_not_found' },
    });
    await expect(withdrawn.at('GET', 'sh')).rejects.toThrow();
    expect((await open.at('GET', 'sh')).status).toBe(200);
    await stop();
    await expect(open.at('GET', 'sh')).rejects.toThrow();
  });
});
