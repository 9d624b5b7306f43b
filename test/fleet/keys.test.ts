import { describe, expect, it } from 'vitest';
import type { NewEvent } from '../../main/domain/events.ts';
import type { NodeId } from '../../main/domain/ids.ts';
import type { NodeKeys } from '../../main/fleet/announced-key.ts';
import { FleetNode, type NodeTarget } from '../../main/fleet/fleet-node.ts';
import { SimClock } from '../gate/sim-clock.ts';
import { FakeLink, heartbeat } from './fake-link.ts';

const [A, B, C] = ['aa', 'bb', 'cc'].map((byte) => byte.repeat(32)) as [string, string, string];

function machine(target: Partial<NodeTarget> = {}) {
  const clock = new SimClock();
  const links: FakeLink[] = [];
  const events: NewEvent[] = [];
  const kept: NodeKeys[] = [];
  const store = { works: true };
  const node = new FleetNode({
    id: 'n1' as NodeId,
    name: 'machine',
    controller: 'c1',
    clock,
    random: () => 0.5,
    events: { record: (event) => events.push(event) },
    makeLink: (options) => {
      const link = new FakeLink(options);
      links.push(link);
      return link;
    },
    onChange: () => undefined,
    onKeys: async (keys) => {
      if (!store.works) throw new Error('the disk is full');
      kept.push(keys);
    },
  });
  node.connect({ address: '10.0.0.1', fingerprint: A, key: new Uint8Array(32), ...target });
  const last = () => {
    const link = links.at(-1);
    if (!link) throw new Error('not dialled');
    return link;
  };
  const beat = async (fingerprint?: string) => {
    last().options.handlers.onHeartbeat(heartbeat(fingerprint === undefined ? {} : { fingerprint }));
    await clock.settle();
  };
  const up = async (fingerprint?: string) => {
    last().up(heartbeat(fingerprint === undefined ? {} : { fingerprint }));
    await clock.settle();
  };
  const again = async () => {
    last().lose('closed');
    await clock.advance(1000);
  };
  return { node, links, last, events, kept, store, clock, beat, up, again };
}

describe('the key that a node announces', () => {
  it('is kept, then acknowledged once a session, and both are taken at the next dial', async () => {
    const { last, kept, beat, up, again } = machine();
    await up(A);
    expect(kept).toEqual([]);
    await beat(B);
    await beat(B);
    expect(kept).toEqual([{ fingerprint: A, nextFingerprint: B }]);
    expect(last().acknowledged).toEqual([B]);
    await again();
    expect(last().options).toMatchObject({ fingerprint: A, nextFingerprint: B });
    await up(B); // the agent may have been restarted, and forgotten who knows
    expect(last().acknowledged).toEqual([B]);
    expect(kept).toHaveLength(1);
  });

  it('is not acknowledged while it cannot be kept, and is when it can', async () => {
    const { last, store, beat, up, node } = machine();
    store.works = false;
    await up(B);
    expect(last().acknowledged).toEqual([]);
    expect(node.target?.nextFingerprint ?? null).toBeNull();
    store.works = true;
    await beat(B);
    expect(last().acknowledged).toEqual([B]);
  });

  it('is the only one from its first use on', async () => {
    const { last, kept, events, up, again, node } = machine({ nextFingerprint: B });
    last().options.handlers.onNextUsed?.();
    await up(B);
    expect(kept).toEqual([{ fingerprint: B, nextFingerprint: null }]);
    expect(node.target).toMatchObject({ fingerprint: B, nextFingerprint: null });
    expect(last().acknowledged).toEqual([]);
    expect(events.map(({ says }) => says.code)).toEqual(['node_key_changed']);
    await again();
    expect(last().options).toMatchObject({ fingerprint: B, nextFingerprint: null });
  });

  it('holds no longer when it is withdrawn, or when a later session still begins with the present key', async () => {
    const { last, kept, beat, up, again } = machine({ nextFingerprint: B });
    await up(C);
    await beat(C);
    expect(kept).toEqual([]);
    await again(); // begins with A once more: B was never taken
    await up(C);
    await beat(A);
    expect(kept).toEqual([
      { fingerprint: A, nextFingerprint: C },
      { fingerprint: A, nextFingerprint: null },
    ]);
    expect(last().acknowledged).toEqual([C]);
  });

  it('is not given up for a further one in the session in which it was acknowledged: the agent may show it by now', async () => {
    const { last, kept, beat, up, again, node } = machine();
    await up(A);
    await beat(B); // acknowledged, and taken by the agent
    await beat(C); // it changes its key once more
    expect(last().acknowledged).toEqual([B]);
    expect(node.target).toMatchObject({ fingerprint: A, nextFingerprint: B });
    await again(); // shows B while another control plane keeps C waiting
    expect(last().options).toMatchObject({ fingerprint: A, nextFingerprint: B });
    last().options.handlers.onNextUsed?.();
    await up(C);
    expect(kept.at(-1)).toEqual({ fingerprint: B, nextFingerprint: C });
    expect(last().acknowledged).toEqual([C]);
  });

  it('is not given up either in a session that began just before the agent took it', async () => {
    const { last, kept, up, again, node } = machine();
    await up(B); // kept and acknowledged; the agent waits for another control plane
    await again(); // proves itself with A; then the other one has heard of B too, and the agent takes it
    await up(C); // its next key is on the way before its first heartbeat here
    expect(last().acknowledged).toEqual([]);
    await again(); // shows B
    expect(last().options).toMatchObject({ fingerprint: A, nextFingerprint: B });
    last().options.handlers.onNextUsed?.();
    await up(C);
    expect(kept.at(-1)).toEqual({ fingerprint: B, nextFingerprint: C });
    expect(node.target).toMatchObject({ fingerprint: B, nextFingerprint: C });
    expect(last().acknowledged).toEqual([C]);
  });

  it('is nothing that an agent without the announcement has', async () => {
    const { last, kept, up } = machine({ nextFingerprint: B });
    await up();
    expect(kept).toEqual([]);
    expect(last().acknowledged).toEqual([]);
  });
});
