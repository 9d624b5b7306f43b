import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { afterEach, describe, expect, it } from 'vitest';
import { Announcer } from '../../agent/discovery/announcer.ts';
import { BroadcastResponder } from '../../agent/discovery/responder.ts';
import type { Link } from '../../agent/wire/discovery/interfaces.ts';
import type { MdnsLink, MdnsOptions, PublishedService } from '../../agent/wire/discovery/mdns.ts';
import { encodeQuery, parseAnswer } from '../../agent/wire/discovery/messages.ts';
import { SimClock } from '../gate/sim-clock.ts';
import { freePorts } from './lab.ts';

const ID = 'a1'.repeat(16);
const hint = { id: ID, fp: ID.repeat(2) };
const link = (name: string, address: string): Link => ({
  name,
  address,
  family: 4,
  prefix: 24,
  everybody: null,
  virtual: false,
});

describe('the announcer', () => {
  /** Sockets it opened, as the test plays them. */
  function announcer() {
    const clock = new SimClock();
    const open: { options: MdnsOptions; published: PublishedService | null; closed: boolean }[] = [];
    const notes: [string, boolean][] = [];
    const made = new Announcer({
      clock,
      hint,
      name: 'workstation',
      agentPort: 7412,
      onNote: (code, holds) => notes.push([code, holds]),
      openLink: (options) => {
        const socket: (typeof open)[number] = { options, published: null, closed: false };
        open.push(socket);
        const fake: Pick<MdnsLink, 'publish' | 'query' | 'close'> = {
          publish: (service) => {
            socket.published = service;
          },
          query: () => {},
          close: async () => {
            socket.closed = true;
          },
        };
        return fake as MdnsLink;
      },
    });
    const live = () => open.filter(({ closed }) => !closed).map(({ options }) => options.address);
    return { made, clock, open, notes, live };
  }

  it('has one instance per interface, and tells version, id and fingerprint and nothing else', () => {
    const { made, open, live } = announcer();
    made.setLinks([link('eth0', '10.77.0.1'), link('eth0', '10.77.0.9'), link('tun0', '10.99.0.1')]);
    expect(live()).toEqual(['10.77.0.1', '10.99.0.1']);
    for (const { published } of open) {
      expect(published).toEqual({
        instance: 'workstation (a1a1a1a1)',
        host: 'switchyard-a1a1a1a1a1a1.local',
        port: 7412,
        txt: { v: '1', id: ID, fp: ID.repeat(2) },
      });
    }
  });

  it('announces anew on every interface when one address changes: each tells all of them', () => {
    const { made, open, live } = announcer();
    made.setLinks([link('eth0', '10.77.0.1'), link('eth1', '10.88.0.1')]);
    made.setLinks([link('eth0', '10.77.0.40'), link('eth1', '10.88.0.1')]);
    expect(live()).toEqual(['10.77.0.40', '10.88.0.1']);
    expect(open).toHaveLength(4);
  });

  it('opens the sockets again 15 s after the port was found held, told once however often the error repeats', async () => {
    const { made, clock, open, notes, live } = announcer();
    made.setLinks([link('eth0', '10.77.0.1')]);
    for (let i = 0; i < 5; i++) open[0]?.options.onTrouble('held');
    await clock.advance(14_999);
    expect(open).toHaveLength(1);
    await clock.advance(1);
    expect(open).toHaveLength(2);
    expect(live()).toEqual(['10.77.0.1']);
    expect(notes).toEqual([
      ['discovery_port_held', true],
      ['discovery_port_held', false],
    ]);
  });

  it('takes another name at most every 10 s, whatever a neighbour does', async () => {
    const { made, clock, open } = announcer();
    made.setLinks([link('eth0', '10.77.0.1')]);
    const clash = () => {
      const taken = { instance: made.instance, port: 1, txt: { id: 'b2'.repeat(16) }, gone: false };
      open.at(-1)?.options.onAnnounced([taken], '10.77.0.66');
    };
    for (let i = 0; i < 5; i++) clash();
    expect(made.instance).toBe('workstation (a1a1a1a1-2)');
    await clock.advance(10_000);
    clash();
    expect(made.instance).toBe('workstation (a1a1a1a1-3)');
  });

  it('is not disturbed by its own voice from another interface', () => {
    const { made, open } = announcer();
    made.setLinks([link('eth0', '10.77.0.1'), link('eth1', '10.88.0.1')]);
    const own = { instance: made.instance, port: 7412, txt: { id: ID }, gone: false };
    for (const { options } of open) options.onAnnounced([own], '10.77.0.1');
    expect(made.instance).toBe('workstation (a1a1a1a1)');
  });
});

describe('the responder', () => {
  const stops: (() => void)[] = [];
  afterEach(() => {
    for (const stop of stops.splice(0)) stop();
  });

  async function responder(links: readonly Link[]) {
    const clock = new SimClock();
    const { queryPort } = await freePorts();
    const listening = Promise.withResolvers<void>();
    const made = new BroadcastResponder({
      clock,
      hint,
      name: 'workstation',
      agentPort: 7412,
      families: [4],
      port: queryPort,
      onNote: () => listening.resolve(),
    });
    made.setLinks(links);
    made.start();
    await listening.promise;
    const asker = createSocket('udp4');
    await once(asker.bind(0, '127.0.0.1'), 'listening');
    const nonces: string[] = [];
    asker.on('message', (bytes) => nonces.push(parseAnswer(bytes)?.nonce ?? 'no answer'));
    stops.push(() => {
      made.stop();
      asker.close();
    });
    const ask = (nonce: string) => asker.send(encodeQuery(nonce), queryPort, '127.0.0.1');
    return { clock, nonces, ask, port: queryPort };
  }
  const FLOOD = '00'.repeat(8);
  const LAST = 'ff'.repeat(8);
  const loopback = { ...link('lo', '127.0.0.1'), prefix: 8 };

  it('answers 32 times a second and no more', async () => {
    const { clock, nonces, ask } = await responder([loopback]);
    for (let i = 0; i < 60; i++) ask(FLOOD);
    await expect.poll(() => nonces.length).toBe(32);
    await clock.advance(1_000);
    ask(LAST);
    // Datagrams of one pair of loopback sockets keep their order: all of the flood has been looked at.
    await expect.poll(() => nonces.at(-1)).toBe(LAST);
    expect(nonces).toHaveLength(33);
  });

  it.runIf(process.platform === 'linux')('answers nobody who is not on its links', async () => {
    const { nonces, ask, port } = await responder([{ ...loopback, prefix: 32 }]);
    const stranger = createSocket('udp4');
    await once(stranger.bind(0, '127.0.0.2'), 'listening');
    let answered = 0;
    stranger.on('message', () => {
      answered += 1;
    });
    stops.push(() => stranger.close());
    await new Promise((resolve) => stranger.send(encodeQuery(FLOOD), port, '127.0.0.1', resolve));
    ask(LAST);
    // The stranger's query was in the queue before: when this one is answered, that one has been looked at.
    await expect.poll(() => nonces).toEqual([LAST]);
    await new Promise((resolve) => setImmediate(resolve));
    expect(answered).toBe(0);
  });
});
