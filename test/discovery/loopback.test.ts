import { createSocket } from 'node:dgram';
import { afterEach, describe, expect, it } from 'vitest';
import { MdnsLink } from '../../agent/wire/discovery/mdns.ts';
import { instanceName } from '../../agent/wire/discovery/messages.ts';
import { advertise, discover, freePorts, hold } from './lab.ts';

const A = 'a1'.repeat(16);
const B = 'b2'.repeat(16);
const stops: (() => unknown)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});

function agent(lab: Parameters<typeof advertise>[0], parts: Parameters<typeof advertise>[1]) {
  const made = advertise(lab, parts);
  stops.push(() => made.advertiser.stop());
  return made;
}
function plane(lab: Parameters<typeof discover>[0]) {
  const made = discover(lab);
  stops.push(() => made.discovery.stop());
  return made;
}

describe('an agent and a control plane on one link', () => {
  it('find each other by mDNS alone, whoever comes first', async () => {
    const lab = await freePorts();
    const early = plane({ ...lab, queryPort: lab.queryPort + 1 });
    agent(lab, { id: A });
    const late = plane({ ...lab, queryPort: lab.queryPort + 1 });
    for (const { discovery } of [early, late]) {
      await expect
        .poll(() => discovery.found())
        .toMatchObject([{ id: A, name: 'workstation', address: '127.0.0.1:7412', fingerprint: A.repeat(2) }]);
      expect(discovery.problem).toBeNull();
    }
    expect(late.hints[0]).toEqual({ id: A, fingerprint: A.repeat(2), address: '127.0.0.1:7412' });
  });

  it('find each other by broadcast while another program holds the mDNS port, and both say what is wrong', async () => {
    const lab = await freePorts();
    const holder = await hold(lab.mdnsPort);
    stops.push(() => holder.close());
    const { notes, advertiser } = agent(lab, { id: A });
    const { discovery, events } = plane(lab);
    await expect.poll(() => discovery.found().map(({ id }) => id)).toEqual([A]);
    await expect.poll(() => discovery.problem?.code).toBe('discovery_port_held');
    expect(events.map(({ says }) => says.code)).toEqual(['discovery_port_held']);
    await expect.poll(() => advertiser.notes().map(({ code }) => code)).toEqual(['discovery_port_held']);
    expect(notes).toHaveLength(1);
  });

  it('part when the agent stops: its goodbye is heard', async () => {
    const lab = await freePorts();
    const { advertiser } = agent(lab, { id: A });
    const { discovery } = plane({ ...lab, queryPort: lab.queryPort + 1 });
    await expect.poll(() => discovery.found()).toHaveLength(1);
    await advertiser.stop();
    await expect.poll(() => discovery.found()).toHaveLength(0);
  });

  it('are two when two agents bear one name', async () => {
    const lab = await freePorts();
    agent(lab, { id: A });
    agent(lab, { id: B });
    const { discovery } = plane(lab);
    await expect
      .poll(() => discovery.found().map(({ id, name }) => [id, name]))
      .toEqual([
        [A, 'workstation'],
        [B, 'workstation'],
      ]);
  });

  it('find each other although a neighbour announces under the very name of the agent, which takes another', async () => {
    const lab = await freePorts();
    const heard = new Set<string>();
    const neighbour = new MdnsLink({
      address: '127.0.0.1',
      port: lab.mdnsPort,
      onAnnounced: (all) => {
        for (const { instance, txt } of all) if (txt.id === A) heard.add(instance);
      },
      onTrouble: () => {},
    });
    stops.push(() => neighbour.close());
    neighbour.publish({
      instance: instanceName('workstation', A),
      host: 'neighbour.local',
      port: 1,
      txt: { v: '1', id: B, fp: B.repeat(2) },
    });
    const { advertiser, notes } = agent(lab, { id: A });
    const { discovery } = plane({ ...lab, queryPort: lab.queryPort + 1 });
    await expect.poll(() => discovery.found().map(({ id }) => id)).toContain(A);
    await expect.poll(() => notes.map(({ code }) => code)).toEqual(['discovery_name_taken']);
    expect(advertiser.notes()).toHaveLength(1);
    await expect.poll(() => [...heard]).toContain('workstation (a1a1a1a1-2)');
  });

  it('do not when the agent listens on loopback alone while the link is another, or discovery is off', async () => {
    const lab = await freePorts();
    agent(lab, { id: A, host: '192.0.2.1' });
    agent(lab, { id: B });
    const { discovery } = plane(lab);
    await expect.poll(() => discovery.found().map(({ id }) => id)).toEqual([B]);
    discovery.setEnabled(false);
    expect(discovery.searching).toBe(false);
    expect(discovery.found()).toEqual([]);
    discovery.setEnabled(true);
    await expect.poll(() => discovery.found().map(({ id }) => id)).toEqual([B]);
  });
});

describe('what anybody may send', () => {
  it('does not disturb: datagrams that are no DNS, no query, no answer', async () => {
    const lab = await freePorts();
    agent(lab, { id: A });
    const { discovery } = plane(lab);
    const stranger = createSocket('udp4');
    stops.push(() => stranger.close());
    for (const port of [lab.mdnsPort, lab.queryPort]) {
      for (const size of [0, 1, 12, 512, 1400]) stranger.send(Buffer.alloc(size, 0xff), port, '127.0.0.1');
    }
    await expect.poll(() => discovery.found()).toHaveLength(1);
  });
});
