import { describe, expect, it } from 'vitest';
import type { NewEvent } from '../../main/domain/events.ts';
import type { NodeId } from '../../main/domain/ids.ts';
import { FleetRegistry } from '../../main/fleet/registry.ts';
import type { NodeRecord, NodeStore } from '../../main/store/ports.ts';
import { SimClock } from '../gate/sim-clock.ts';
import { FakeLink } from './fake-link.ts';

const FINGERPRINT = 'ab'.repeat(32);
const N1 = 'n1' as NodeId;
const OLD = '10.0.0.1:7412';
const NEW = '10.0.0.40:7412';

/** A fleet of one stored node that has been dialled once. */
function fleet(address = OLD) {
  const clock = new SimClock();
  const links: FakeLink[] = [];
  const events: NewEvent[] = [];
  let record: NodeRecord = {
    id: N1,
    name: 'workstation',
    address,
    manual: true,
    embedded: false,
    fingerprint: FINGERPRINT,
    nextFingerprint: null,
    wish: 'serve',
    addedAtMs: 0,
  };
  const store: Partial<NodeStore> = {
    list: () => [record],
    get: () => record,
    key: () => new Uint8Array(32),
    update: async (_id, change) => {
      record = { ...record, ...change };
    },
  };
  const registry = new FleetRegistry({
    controller: 'c1',
    clock,
    random: () => 0.5,
    events: { record: (event) => events.push(event) },
    store: store as NodeStore,
    pair: async () => {
      throw new Error('not paired here');
    },
    makeLink: (options) => {
      const link = new FakeLink(options);
      links.push(link);
      return link;
    },
  });
  registry.start();
  const found = (at: string, fingerprint = FINGERPRINT) => registry.foundAt(N1, at, fingerprint);
  const dialled = () => links.map(({ options }) => options.address);
  return { clock, links, events, registry, found, dialled, stored: () => record.address };
}

describe('a paired node that is seen at another address', () => {
  it('is dialled there while its session is down; what is proved there is remembered', async () => {
    const { clock, links, found, dialled, stored, registry } = fleet();
    links[0]?.refuse('node_unreachable');
    await clock.settle();
    found(NEW);
    expect(dialled()).toEqual([OLD, NEW]);
    expect(stored()).toBe(OLD);
    links[1]?.up();
    await clock.settle();
    expect(registry.nodes()[0]?.state).toBe('ready');
    expect(stored()).toBe(NEW);
    expect(registry.nodes()[0]?.target?.address).toBe(NEW);
  });

  it('is dialled there at once also when its old address now belongs to another machine', async () => {
    const { clock, links, found, dialled, registry } = fleet();
    found(NEW);
    expect(dialled()).toEqual([OLD]);
    links[0]?.refuse('identity_changed');
    await clock.advance(300);
    expect(dialled()).toEqual([OLD, NEW]);
    links[1]?.up();
    await clock.settle();
    expect(registry.nodes()[0]?.state).toBe('ready');
  });

  it('keeps its running session, and is dialled at the new address when that is lost', async () => {
    const { clock, links, found, dialled } = fleet();
    links[0]?.up();
    await clock.settle();
    found(NEW);
    await clock.advance(10_000);
    expect(dialled()).toEqual([OLD]);
    links[0]?.lose('silent');
    await clock.advance(500);
    expect(dialled()).toEqual([OLD, NEW]);
  });

  it('keeps a name that a person gave, also when it is reached elsewhere', async () => {
    const { clock, links, found, stored } = fleet('gpu-box.example:7412');
    links[0]?.refuse('node_unreachable');
    await clock.settle();
    found(NEW);
    links[1]?.up();
    await clock.settle();
    expect(stored()).toBe('gpu-box.example:7412');
  });

  it('is looked for at its former address too when the new one fails', async () => {
    const { clock, links, found, dialled } = fleet();
    links[0]?.refuse('node_unreachable');
    await clock.settle();
    found(NEW);
    links[1]?.up();
    await clock.settle();
    links[1]?.lose('closed');
    for (let i = 0; i < 3; i++) {
      await clock.advance(5_000);
      links.at(-1)?.refuse('node_unreachable');
      await clock.settle();
    }
    expect(new Set(dialled().slice(2))).toEqual(new Set([OLD, NEW]));
  });
});

describe('a liar on the network', () => {
  it('with another fingerprint is not even dialled', async () => {
    const { clock, links, found, dialled } = fleet();
    links[0]?.refuse('node_unreachable');
    await clock.settle();
    found(NEW, 'cd'.repeat(32));
    expect(dialled()).toEqual([OLD]);
  });

  it('that cannot prove itself changes nothing: no state, no event, no address', async () => {
    const { clock, links, found, events, registry, stored } = fleet();
    links[0]?.refuse('node_unreachable');
    await clock.settle();
    const before = { state: registry.nodes()[0]?.state, problem: registry.nodes()[0]?.problem, told: events.length };
    found(NEW);
    links[1]?.refuse('identity_changed');
    await clock.settle();
    const node = registry.nodes()[0];
    expect({ state: node?.state, problem: node?.problem, told: events.length }).toEqual(before);
    expect(stored()).toBe(OLD);
  });

  it('that announces a hundred addresses cannot keep the true one from being dialled', async () => {
    const { clock, links, found, dialled } = fleet();
    for (let i = 0; i < 100; i++) {
      found(`10.0.1.${i}:7412`);
      links.at(-1)?.refuse('node_unreachable');
      await clock.settle();
    }
    for (let i = 0; i < 10; i++) {
      await clock.advance(5_000);
      links.at(-1)?.refuse('node_unreachable');
      await clock.settle();
    }
    expect(dialled().slice(101)).toContain(OLD);
  });
});
