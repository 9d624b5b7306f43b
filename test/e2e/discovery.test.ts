import { afterEach, expect, it } from 'vitest';
import { describeWithNetworks, Lab, type PlaneProcess } from '../discovery/netns.ts';
import { removeTemporaryFolders } from '../support/processes.ts';

let lab = new Lab();
afterEach(async () => {
  await lab.remove();
  lab = new Lab();
  removeTemporaryFolders();
});

const AGENT = '10.77.0.1:7412';

/** Port on which agents answer broadcast queries: held on a machine, mDNS alone is left to find its agent. */
const QUERY_PORT = 7412;

/** Two machines on one LAN, without any route beyond it. */
function lan() {
  const lan = lab.switch('lan');
  const a = lab.machine('a');
  const b = lab.machine('b');
  lan.connect(a, 'eth0', '10.77.0.1/24');
  lan.connect(b, 'eth0', '10.77.0.2/24');
  return { lan, a, b };
}

/** A second network of both, or of one machine and a stranger, that looks like a tunnel. */
function vpn() {
  const net = lab.switch('vpn');
  const gateway = lab.machine('gw');
  net.connect(gateway, 'eth0', '10.99.0.254/24');
  return net;
}

/** Milliseconds until the control plane shows what `fits`; it counts from when both programs were ready. */
async function until<Shown>(look: () => Promise<Shown>, fits: (shown: Shown) => boolean, withinMs: number) {
  const from = performance.now();
  let last: Shown;
  do {
    last = await look();
    if (fits(last)) return last;
    await new Promise((resolve) => setTimeout(resolve, 25));
  } while (performance.now() - from < withinMs);
  throw new Error(`not within ${withinMs} ms: ${JSON.stringify(last)}`);
}

const found = (plane: PlaneProcess, count = 1) => until(plane.found, (list) => list.length >= count, 2_000);
const ready = (plane: PlaneProcess, withinMs: number) =>
  until(plane.nodes, (nodes) => nodes[0]?.state === 'ready', withinMs);

describeWithNetworks('an agent on the network', () => {
  it('is found without a default route, by mDNS alone', async () => {
    const { a, b } = lan();
    await a.hold(QUERY_PORT);
    await a.agent('box');
    const plane = await b.plane();
    expect(await found(plane)).toMatchObject([{ name: 'box', address: AGENT, paired: false }]);
  });

  it('is found by mDNS alone when both have their default route over the LAN and the agent comes second', async () => {
    const { a, b } = lan();
    await a.hold(QUERY_PORT);
    for (const machine of [a, b]) machine.ip('route', 'add', 'default', 'via', '10.77.0.254', 'dev', 'eth0');
    const plane = await b.plane();
    await a.agent('box');
    expect(await found(plane)).toMatchObject([{ address: AGENT }]);
  });

  it("is found on the LAN by mDNS alone when the agent's VPN owns the default route", async () => {
    const { a, b } = lan();
    await a.hold(QUERY_PORT);
    vpn().connect(a, 'tun7', '10.99.0.1/24');
    a.ip('route', 'add', 'default', 'via', '10.99.0.254');
    await a.agent('box');
    expect(await found(await b.plane())).toMatchObject([{ address: AGENT }]);
  });

  it("is found on the LAN by mDNS alone when the control plane's VPN owns the default route", async () => {
    const { a, b } = lan();
    await a.hold(QUERY_PORT);
    vpn().connect(b, 'tun7', '10.99.0.2/24');
    b.ip('route', 'add', 'default', 'via', '10.99.0.254');
    await a.agent('box');
    expect(await found(await b.plane())).toMatchObject([{ address: AGENT }]);
  });

  it('that is on the LAN and on the VPN too is one machine, at its address of the LAN', async () => {
    const { a, b } = lan();
    const net = vpn();
    net.connect(a, 'tun7', '10.99.0.1/24');
    net.connect(b, 'tun7', '10.99.0.2/24');
    for (const machine of [a, b]) machine.ip('route', 'add', 'default', 'via', '10.99.0.254');
    await a.agent('box');
    const plane = await b.plane();
    await found(plane);
    // Both links answer all the time; the choice must hold once each was heard.
    const from = performance.now();
    while (performance.now() - from < 2_000) {
      expect(await plane.found()).toMatchObject([{ address: AGENT }]);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  });

  it('is found while its port 5353 is held and a VPN owns its default route, lives, and says so to the control plane', async () => {
    const { a, b } = lan();
    vpn().connect(a, 'tun7', '10.99.0.1/24');
    a.ip('route', 'add', 'default', 'via', '10.99.0.254');
    await a.hold(5353);
    const agent = await a.agent('box');
    const plane = await b.plane();
    expect(await found(plane)).toMatchObject([{ address: AGENT }]);
    await plane.call('POST', 'nodes', { address: AGENT, joinCode: agent.joinCode });
    await ready(plane, 10_000);
    await until(() => plane.call<object>('GET', 'events'), told('discovery_port_held'), 5_000);
    expect(agent.alive()).toBe(true);
  });

  it('is found by a control plane whose port 5353 is held and whose VPN owns the default route, which says so', async () => {
    const { a, b } = lan();
    vpn().connect(b, 'tun7', '10.99.0.2/24');
    b.ip('route', 'add', 'default', 'via', '10.99.0.254');
    await b.hold(5353);
    await a.agent('box');
    const plane = await b.plane();
    expect(await found(plane)).toMatchObject([{ address: AGENT }]);
    await until(() => plane.call<object>('GET', 'discovery'), told('discovery_port_held'), 2_000);
    expect(plane.alive()).toBe(true);
  });

  it('is found where the switch drops multicast', async () => {
    const { lan: net, a, b } = lan();
    for (const port of ['p1', 'p2']) net.machine.exec('bridge', 'link', 'set', 'dev', port, 'mcast_flood', 'off');
    await a.agent('box');
    expect(await found(await b.plane())).toMatchObject([{ address: AGENT }]);
  });

  it('is found beside another of the same name', async () => {
    const { lan: net, a, b } = lan();
    const c = lab.machine('c');
    net.connect(c, 'eth0', '10.77.0.3/24');
    await Promise.all([a.agent('box'), c.agent('box')]);
    const shown = await found(await b.plane(), 2);
    expect(shown.map(({ name, address }) => [name, address]).sort()).toEqual([
      ['box', AGENT],
      ['box', '10.77.0.3:7412'],
    ]);
  });

  it('is found and paired where there is nothing but link-local IPv6, its zone kept', async () => {
    const net = lab.switch('lan');
    const [a, b] = [lab.machine('a'), lab.machine('b')];
    net.connect(a, 'eth0', 'fe80::a/64');
    net.connect(b, 'eth0', 'fe80::b/64');
    const agent = await a.agent('box', ['--listen', '[::]:7412']);
    const plane = await b.plane();
    const addresses = (await found(plane)).map(({ address }) => address);
    expect(addresses[0]).toMatch(/^\[fe80::[0-9a-f:]+%eth0\]:7412$/);
    await plane.call('POST', 'nodes', { address: addresses[0], joinCode: agent.joinCode });
    await ready(plane, 10_000);
  });

  it('is not announced with --no-advertise, nor looked for with --no-discovery', async () => {
    const { lan: net, a, b } = lan();
    const c = lab.machine('c');
    net.connect(c, 'eth0', '10.77.0.3/24');
    await Promise.all([a.agent('silent', ['--no-advertise']), c.agent('box')]);
    const blind = await b.plane(undefined, '', ['--no-discovery']);
    const plane = await b.plane();
    await found(plane);
    expect((await plane.found()).map(({ name }) => name)).toEqual(['box']);
    expect(await blind.call('GET', 'discovery')).toEqual({ searching: false, problem: null, found: [] });
  });
});

describeWithNetworks('a paired machine', () => {
  it('is ready within 10 s over a routed link that carries no multicast, and is there after the control plane was killed', async () => {
    const near = lab.switch('near');
    const far = lab.switch('far');
    const [a, b, router] = [lab.machine('a'), lab.machine('b'), lab.machine('r')];
    near.connect(a, 'eth0', '10.77.0.1/24');
    near.connect(router, 'eth0', '10.77.0.254/24');
    far.connect(router, 'eth1', '10.88.0.254/24');
    far.connect(b, 'eth0', '10.88.0.2/24');
    router.exec('sh', '-c', 'echo 1 > /proc/sys/net/ipv4/ip_forward');
    a.ip('route', 'add', 'default', 'via', '10.77.0.254');
    b.ip('route', 'add', 'default', 'via', '10.88.0.254');
    const agent = await a.agent('box', ['--engine', await a.engine(9931)]);
    const plane = await b.plane();
    await plane.call('POST', 'nodes', { address: '10.77.0.1', joinCode: agent.joinCode });
    await ready(plane, 10_000);
    expect(await plane.found()).toEqual([]);
    expect(await plane.chat('are you there?')).toMatchObject({ choices: [{ finish_reason: expect.any(String) }] });
    await plane.kill('SIGKILL');
    const again = await b.plane(plane.dataDir, plane.adminToken);
    await ready(again, 10_000);
    expect(await again.nodes()).toMatchObject([{ address: AGENT }]);
  });

  it('whose agent was killed is not ready within 15 s, although it is still listed as seen', async () => {
    const { a, b } = lan();
    const agent = await a.agent('box');
    const plane = await b.plane();
    await found(plane);
    await plane.call('POST', 'nodes', { address: AGENT, joinCode: agent.joinCode });
    await ready(plane, 10_000);
    await agent.kill('SIGKILL');
    await until(plane.nodes, (nodes) => nodes[0]?.state !== 'ready', 15_000);
    expect(await plane.found()).toHaveLength(1);
  });

  it('whose address changes is announced anew, found there and made ready again, and remembered there', async () => {
    const { a, b } = lan();
    const agent = await a.agent('box');
    const plane = await b.plane();
    await plane.call('POST', 'nodes', { address: AGENT, joinCode: agent.joinCode });
    await ready(plane, 10_000);
    a.ip('addr', 'del', '10.77.0.1/24', 'dev', 'eth0');
    a.ip('addr', 'add', '10.77.0.40/24', 'brd', '+', 'dev', 'eth0');
    const moved = '10.77.0.40:7412';
    // The old session ends by silence after 15 s; announcing anew takes the 2 s of the watch.
    await until(plane.nodes, (nodes) => nodes[0]?.state === 'ready' && nodes[0].address === moved, 40_000);
    await plane.kill('SIGKILL');
    const again = await b.plane(plane.dataDir, plane.adminToken, ['--no-discovery']);
    await ready(again, 10_000);
    expect(await again.nodes()).toMatchObject([{ address: moved }]);
  }, 120_000);
});

const told = (code: string) => (answer: object) => JSON.stringify(answer).includes(`"${code}"`);
