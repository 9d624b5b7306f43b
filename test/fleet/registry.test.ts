import { describe, expect, it } from 'vitest';
import { SwitchyardError } from '../../main/domain/errors.ts';
import type { NewEvent } from '../../main/domain/events.ts';
import type { NodeId } from '../../main/domain/ids.ts';
import type { PairAgent } from '../../main/fleet/link.ts';
import { FleetRegistry } from '../../main/fleet/registry.ts';
import type { NodeRecord, NodeStore, PendingPairingRecord } from '../../main/store/ports.ts';
import { SimClock } from '../gate/sim-clock.ts';
import { FakeLink, heartbeat } from './fake-link.ts';

class MemoryNodes implements Partial<NodeStore> {
  readonly records = new Map<NodeId, NodeRecord>();
  readonly keys = new Map<NodeId, Uint8Array>();
  readonly pendings: PendingPairingRecord[] = [];
  broken = false;

  list = () => [...this.records.values()];
  get = (id: NodeId) => this.records.get(id) ?? null;
  key = (id: NodeId) => this.keys.get(id) ?? null;
  async add(record: NodeRecord, key: Uint8Array) {
    if (this.broken) throw new SwitchyardError('store_unavailable');
    this.records.set(record.id, record);
    this.keys.set(record.id, key);
  }
  async update(id: NodeId, change: Partial<NodeRecord>) {
    if (this.broken) throw new SwitchyardError('store_unavailable');
    const before = this.records.get(id);
    if (before) this.records.set(id, { ...before, ...change });
  }
  async remove(id: NodeId) {
    if (this.broken) throw new SwitchyardError('store_unavailable');
    this.records.delete(id);
  }
  async putPending(pending: PendingPairingRecord) {
    this.pendings.push(pending);
  }
  pending = (address: string) => this.pendings.filter((each) => each.address === address);
  baseWeight = () => 1;
}

const FINGERPRINT = 'ab'.repeat(32);
const record = (id: string): NodeRecord => ({
  id: id as NodeId,
  name: id,
  address: '10.0.0.1:7412',
  manual: true,
  embedded: false,
  fingerprint: FINGERPRINT,
  nextFingerprint: null,
  wish: 'serve',
  addedAtMs: 0,
});

function fleet(stored: readonly NodeRecord[] = []) {
  const clock = new SimClock();
  const links: FakeLink[] = [];
  const events: NewEvent[] = [];
  const store = new MemoryNodes();
  for (const each of stored) {
    store.records.set(each.id, each);
    store.keys.set(each.id, new Uint8Array(32));
  }
  const pair: PairAgent = async ({ address, storePending }) => {
    await storePending({ node: 'n1', key: new Uint8Array(32), fingerprint: FINGERPRINT });
    return { node: 'n1', address, key: new Uint8Array(32), fingerprint: FINGERPRINT };
  };
  const cloud: string[] = [];
  const registry = new FleetRegistry({
    onSession: (node, change) => void cloud.push(`${node} ${change}`),
    onCloud: (node, { t }) => void cloud.push(`${node} ${t}`),
    controller: 'c1',
    clock,
    random: () => 0.5,
    events: { record: (event) => events.push(event) },
    store: store as unknown as NodeStore,
    pair,
    makeLink: (options) => {
      const link = new FakeLink(options);
      links.push(link);
      return link;
    },
  });
  const state = () => registry.nodes().map(({ state: at }) => at);
  return { clock, links, events, store, registry, state, cloud };
}

describe('a stored node', () => {
  it('is dialled at the start, unknown until its first heartbeat, then ready', async () => {
    const { registry, links, state, clock } = fleet([record('n1')]);
    registry.start();
    expect(state()).toEqual(['unknown']);
    links[0]?.up();
    await clock.settle();
    expect(state()).toEqual(['ready']);
    expect(registry.nodes()[0]?.name).toBe('workstation');
  });

  it('keeps the name that it calls itself, so that it has it before it answers after the next start', async () => {
    const first = fleet([{ ...record('n1'), name: '10.0.0.1:7412' }]);
    first.registry.start();
    expect(first.registry.nodes()[0]?.name).toBe('10.0.0.1:7412');
    first.links[0]?.up();
    await first.clock.settle();
    expect(first.store.get('n1' as NodeId)?.name).toBe('workstation');
    const second = fleet(first.store.list());
    second.registry.start();
    expect(second.registry.nodes()[0]?.name).toBe('workstation');
  });

  it('tells of each session once, whatever ends it, and hands its cloud messages on', async () => {
    const { registry, links, clock, cloud } = fleet([record('n1')]);
    registry.start();
    const ended = { t: 'cloud-ended', permit: 'p1', aborted: true, costUsd: null } as const;
    expect(registry.get('n1' as NodeId)?.lane).toBeNull();
    links[0]?.up();
    await clock.settle();
    links[0]?.options.handlers.onCloud?.(ended);
    expect(registry.get('n1' as NodeId)?.lane).toBe(links[0]);
    links[0]?.lose('closed');
    links[0]?.options.handlers.onCloud?.(ended);
    expect(registry.get('n1' as NodeId)?.lane).toBeNull();
    await clock.advance(1000);
    links[1]?.up();
    await clock.settle();
    registry.forgetLiveness();
    registry.stop();
    expect(cloud).toEqual(['n1 began', 'n1 cloud-ended', 'n1 lost', 'n1 began', 'n1 lost']);
  });

  it('is ready as a machine when it only lacks an OpenRouter key', async () => {
    const { registry, links, clock, state } = fleet([record('n1')]);
    registry.start();
    const openrouter = {
      engine: 'openrouter',
      kind: 'openrouter' as const,
      version: null,
      address: 'openrouter.ai',
      reach: 'public' as const,
      state: 'error' as const,
      reason: 'This agent holds no OpenRouter key.',
      processMark: null,
      slots: 256,
      running: 0,
      queued: null,
      foreign: 0,
      errorsTotal: 0,
      probesAnswered: 0,
      models: [],
    };
    links[0]?.up(heartbeat({ engines: [openrouter] }));
    await clock.settle();
    expect(state()).toEqual(['ready']);
  });

  it('of the same name as another is told apart by its address', async () => {
    const { registry, links, clock } = fleet([record('n1'), { ...record('n2'), address: '10.0.0.2:7412' }]);
    registry.start();
    const names = () => registry.nodes().map(({ name }) => name);
    links[0]?.up();
    await clock.settle();
    expect(names()).toEqual(['workstation', 'n2']);
    links[1]?.up();
    await clock.settle();
    expect(names()).toEqual(['workstation (10.0.0.1:7412)', 'workstation (10.0.0.2:7412)']);
  });

  it('that does not answer is unreachable, and dialled again with growing waits of at most 5 s', async () => {
    const { registry, links, state, clock } = fleet([record('n1')]);
    registry.start();
    const waits: number[] = [];
    for (let dial = 0; dial < 8; dial += 1) {
      links.at(-1)?.refuse('node_unreachable');
      const before = links.length;
      await clock.settle();
      const from = clock.nowMs();
      while (links.length === before) await clock.advance(50);
      waits.push(clock.nowMs() - from);
    }
    expect(state()).toEqual(['unreachable']);
    expect(waits[0]).toBeLessThan(1000);
    expect(Math.max(...waits)).toBeLessThanOrEqual(5000);
    expect(waits.at(-1)).toBeGreaterThan(2000);
  });

  it('that was lost is dialled again at once and ready when it answers', async () => {
    const { registry, links, state, clock } = fleet([record('n1')]);
    registry.start();
    links[0]?.up();
    await clock.settle();
    links[0]?.lose('closed');
    expect(state()).toEqual(['unreachable']);
    expect(registry.opener('n1' as NodeId)).toBeNull();
    await clock.advance(500);
    links[1]?.up();
    await clock.settle();
    expect(state()).toEqual(['ready']);
  });

  it('with another certificate is an error that a person is told once', async () => {
    const { registry, links, state, clock, events } = fleet([record('n1')]);
    registry.start();
    links[0]?.refuse('identity_changed');
    await clock.settle();
    await clock.advance(61_000);
    links[1]?.refuse('identity_changed');
    await clock.settle();
    expect(state()).toEqual(['error']);
    expect(events.filter(({ code }) => code === 'identity_changed')).toMatchObject([{ needsPerson: true }]);
  });

  it('tells once what its agent says at the beginning of each session, and again what happens anew', async () => {
    const { registry, links, clock, events } = fleet([record('n1')]);
    registry.start();
    const say = (severity: 'info' | 'warn', code: string) =>
      links.at(-1)?.options.handlers.onEvent?.({ t: 'event', severity, code, sentence: `It is ${code}.` });
    links[0]?.up();
    await clock.settle();
    say('info', 'discovery_port_held');
    say('info', 'agent_key_changed');
    links[0]?.lose('closed');
    await clock.advance(1000);
    links[1]?.up();
    say('info', 'discovery_port_held');
    say('info', 'agent_key_changed');
    say('warn', 'discovery_port_held');
    const told = events.filter(({ code }) => code !== 'node_closed').map(({ severity, code }) => `${severity} ${code}`);
    expect(told).toEqual([
      'info discovery_port_held',
      'info agent_key_changed',
      'info agent_key_changed',
      'warn discovery_port_held',
    ]);
    registry.stop();
  });

  it('with an engine that does not answer is degraded', async () => {
    const { registry, links, state, clock } = fleet([record('n1')]);
    registry.start();
    links[0]?.up(heartbeat({ engines: [{ state: 'unreachable', models: [] } as never] }));
    await clock.settle();
    expect(state()).toEqual(['degraded']);
  });

  it('keeps what the operator wishes over a restart', async () => {
    const { registry, links, state, clock, store } = fleet([record('n1')]);
    registry.start();
    links[0]?.up();
    await clock.settle();
    await registry.setWish('n1' as NodeId, 'drain');
    expect(state()).toEqual(['draining']);
    expect(store.records.get('n1' as NodeId)?.wish).toBe('drain');
  });

  it('is as before when the wish cannot be stored', async () => {
    const { registry, links, state, clock, store } = fleet([record('n1')]);
    registry.start();
    links[0]?.up();
    await clock.settle();
    store.broken = true;
    await expect(registry.setWish('n1' as NodeId, 'drain')).rejects.toMatchObject({ code: 'store_unavailable' });
    expect(state()).toEqual(['ready']);
  });

  it('whose key does not open is shown, not dropped, and a person is told', () => {
    const { registry, links, events, state, store } = fleet([record('n1')]);
    store.keys.clear();
    registry.start();
    expect(links).toEqual([]);
    expect(registry.nodes()).toHaveLength(1);
    expect(events).toMatchObject([{ says: { code: 'node_key_unreadable' }, needsPerson: true }]);
    // Not only told once: it is what is wrong with the machine until it is mended.
    expect(state()).toEqual(['error']);
    expect(registry.nodes()[0]?.problem?.code).toBe('node_key_unreadable');
  });

  it('whose key did not open is ready again once it was paired anew', async () => {
    const { registry, links, state, clock, store } = fleet([record('n1')]);
    store.keys.clear();
    registry.start();
    registry.get('n1' as NodeId)?.connect({ ...record('n1'), key: new Uint8Array(32) });
    links[0]?.up();
    await clock.settle();
    expect(state()).toEqual(['ready']);
    expect(registry.nodes()[0]?.problem).toBeNull();
  });
});

describe('after a sleep', () => {
  it('nodes are unknown and pull nothing, sessions are made anew within the jitter, then they are ready', async () => {
    const { registry, links, state, clock } = fleet([record('n1'), { ...record('n2'), address: '10.0.0.2:7412' }]);
    registry.start();
    for (const link of links) link.up();
    await clock.settle();
    registry.forgetLiveness();
    expect(state()).toEqual(['unknown', 'unknown']);
    expect(links.slice(0, 2).every(({ closed }) => closed)).toBe(true);
    await clock.advance(1000);
    for (const link of links.slice(2)) link.up();
    await clock.settle();
    expect(state()).toEqual(['ready', 'ready']);
  });
});

describe('pairing', () => {
  it('stores the node before it is dialled, and shows it', async () => {
    const { registry, links, store, clock, state } = fleet();
    await registry.add('10.0.0.9', 'CODE');
    expect(store.records.get('n1' as NodeId)).toMatchObject({
      address: '10.0.0.9',
      fingerprint: FINGERPRINT,
      manual: true,
    });
    links[0]?.up();
    await clock.settle();
    expect(state()).toEqual(['ready']);
  });

  it('that cannot be stored leaves no node behind, but the pending key with which it can be finished', async () => {
    const { registry, store, links } = fleet();
    store.broken = true;
    await expect(registry.add('10.0.0.9', 'CODE')).rejects.toMatchObject({ code: 'store_unavailable' });
    expect(registry.nodes()).toEqual([]);
    expect(links).toEqual([]);
    expect(store.pending('10.0.0.9')).toHaveLength(1);
  });

  it('again with a node that is there replaces its link', async () => {
    const { registry, links, clock } = fleet([record('n1')]);
    registry.start();
    links[0]?.up();
    await clock.settle();
    await registry.add('10.0.0.9', 'CODE');
    expect(registry.nodes()).toHaveLength(1);
    expect(links[0]?.closed).toBe(true);
    expect(registry.nodes()[0]?.target?.address).toBe('10.0.0.9');
  });
});

describe('removing', () => {
  it('asks the agent to forget this control plane and forgets the node', async () => {
    const { registry, links, clock, store } = fleet([record('n1')]);
    registry.start();
    links[0]?.up();
    await clock.settle();
    await registry.remove('n1' as NodeId);
    expect(links[0]?.forgotten).toBe(true);
    expect(store.records.size).toBe(0);
    expect(registry.nodes()).toEqual([]);
  });

  it('of a node that cannot be told says how to clean up there', async () => {
    const { registry, events } = fleet([record('n1')]);
    registry.start();
    await registry.remove('n1' as NodeId);
    expect(events.at(-1)).toMatchObject({ code: 'node_removed', severity: 'warn' });
    expect(events.at(-1)?.says.sentence).toContain('controllers rm c1');
  });
});

describe('the embedded agent', () => {
  it('is one node whatever process it runs in, and cannot be removed', async () => {
    const { registry, links, clock, state } = fleet();
    registry.attachEmbedded('self' as NodeId, {
      address: '127.0.0.1:1',
      fingerprint: FINGERPRINT,
      key: new Uint8Array(32),
    });
    links[0]?.up();
    await clock.settle();
    registry.detachEmbedded();
    expect(state()).not.toEqual(['ready']);
    registry.attachEmbedded('self' as NodeId, {
      address: '127.0.0.1:2',
      fingerprint: FINGERPRINT,
      key: new Uint8Array(32),
    });
    links[1]?.up();
    await clock.settle();
    expect(state()).toEqual(['ready']);
    await expect(registry.remove('self' as NodeId)).rejects.toMatchObject({ code: 'invalid_request' });
  });
});
