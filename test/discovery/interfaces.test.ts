import type { NetworkInterfaceInfo } from 'node:os';
import { describe, expect, it } from 'vitest';
import { type Link, LinkWatch, linksOf, linkTo } from '../../agent/wire/discovery/interfaces.ts';
import { SimClock } from '../gate/sim-clock.ts';

const ipv4 = (cidr: string, parts: Partial<NetworkInterfaceInfo> = {}): NetworkInterfaceInfo =>
  ({
    address: cidr.split('/')[0] ?? '',
    cidr,
    family: 'IPv4',
    netmask: '',
    mac: '02:00:00:00:00:01',
    internal: false,
    ...parts,
  }) as NetworkInterfaceInfo;
const ipv6 = (address: string, scopeid: number): NetworkInterfaceInfo => ({
  address,
  cidr: `${address}/64`,
  family: 'IPv6',
  netmask: '',
  mac: '02:00:00:00:00:01',
  internal: false,
  scopeid,
});

describe('the links of a machine', () => {
  it('are its IPv4 and link-local addresses, the zone kept, without loopback and global IPv6', () => {
    const links = linksOf(
      {
        lo: [ipv4('127.0.0.1/8', { internal: true, mac: '00:00:00:00:00:00' })],
        eth0: [ipv4('10.77.3.9/22'), ipv6('fe80::1', 2), ipv6('2001:db8::1', 0)],
      },
      { platform: 'linux' },
    );
    expect(links).toEqual([
      { name: 'eth0', address: '10.77.3.9', family: 4, prefix: 22, everybody: '10.77.3.255', virtual: false },
      { name: 'eth0', address: 'fe80::1%eth0', family: 6, prefix: 64, everybody: 'ff02::1%eth0', virtual: false },
    ]);
  });

  it('have a numeric zone on Windows', () => {
    expect(linksOf({ Ethernet: [ipv6('fe80::1', 12)] }, { platform: 'win32' })).toMatchObject([
      { address: 'fe80::1%12', everybody: 'ff02::1%12' },
    ]);
  });

  it('come real ones first, tunnels and bridges last', () => {
    const names = linksOf({
      docker0: [ipv4('172.17.0.1/16')],
      utun4: [ipv4('100.64.0.7/32', { mac: '00:00:00:00:00:00' })],
      en0: [ipv4('192.168.1.5/24')],
    }).map(({ name }) => name);
    expect(names[0]).toBe('en0');
  });

  it.each([
    ['192.168.1.5/24', '192.168.1.255'],
    ['10.0.0.77/30', '10.0.0.79'],
    ['172.16.200.1/12', '172.31.255.255'],
    ['10.0.0.1/31', null],
    ['100.64.0.7/32', null],
  ])('of %s have everybody at %s', (cidr, everybody) => {
    expect(linksOf({ eth0: [ipv4(cidr)] })[0]?.everybody).toBe(everybody);
  });
});

describe('whoever answers', () => {
  const links = linksOf({ eth0: [ipv4('10.77.0.2/24'), ipv6('fe80::2', 2)], eth1: [ipv4('10.88.0.2/24')] });

  it.each([
    ['10.77.0.200', 'eth0'],
    ['10.88.0.1', 'eth1'],
    ['fe80::9%eth0', 'eth0'],
  ])('from %s is on %s', (address, name) => {
    expect(linkTo(address, links)?.name).toBe(name);
  });

  it.each(['10.99.0.1', '8.8.8.8', 'fe80::9', 'fe80::9%eth7', '2001:db8::1', 'nonsense'])(
    'from %s is on none of them',
    (address) => {
      expect(linkTo(address, links)).toBeNull();
    },
  );
});

describe('the watch', () => {
  it('tells the links at the start and when an address moves, and not otherwise', async () => {
    const clock = new SimClock();
    const told: (readonly Link[])[] = [];
    let addresses = [ipv4('10.77.0.2/24')];
    const watch = new LinkWatch({ clock, read: () => ({ eth0: addresses }), onLinks: (links) => told.push(links) });
    watch.start();
    expect(told).toHaveLength(1);
    await clock.advance(60_000);
    expect(told).toHaveLength(1);
    addresses = [ipv4('10.77.0.40/24')];
    await clock.advance(2_000);
    expect(told.at(-1)?.[0]?.address).toBe('10.77.0.40');
    watch.stop();
    addresses = [];
    await clock.advance(60_000);
    expect(told).toHaveLength(2);
  });

  it('lives on when the system cannot say', async () => {
    const clock = new SimClock();
    let works = false;
    const told: (readonly Link[])[] = [];
    const watch = new LinkWatch({
      clock,
      read: () => {
        if (!works) throw new Error('EMFILE');
        return { eth0: [ipv4('10.77.0.2/24')] };
      },
      onLinks: (links) => told.push(links),
    });
    watch.start();
    works = true;
    await clock.advance(2_000);
    expect(told).toHaveLength(1);
    watch.stop();
  });
});
