import type { NetworkInterfaceInfo } from 'node:os';
import { describe, expect, it } from 'vitest';
import { addressesToType, howToPair } from '../../agent/next-step.ts';

const four = (address: string, internal = false): NetworkInterfaceInfo => ({
  address,
  netmask: '255.255.255.0',
  family: 'IPv4',
  mac: '02:00:00:00:00:01',
  internal,
  cidr: `${address}/24`,
});
const interfaces = () => ({
  docker0: [four('172.17.0.1')],
  lo: [four('127.0.0.1', true)],
  eth0: [four('192.0.2.20')],
  wlan0: [four('198.51.100.7')],
  eth1: [four('203.0.113.9')],
});

describe('what to type in the console', () => {
  it('is an address of the machine, those of real networks first, with the port where it is not the usual one', () => {
    const real = ['192.0.2.20', '198.51.100.7', '203.0.113.9'];
    expect(addressesToType({ host: '0.0.0.0', port: 7412 }, interfaces)).toEqual(real);
    expect(addressesToType({ host: '::', port: 7500 }, interfaces)).toEqual(real.map((address) => `${address}:7500`));
    const few = () => ({ docker0: [four('172.17.0.1')], eth0: [four('192.0.2.20')] });
    expect(addressesToType({ host: '0.0.0.0', port: 7412 }, few)).toEqual(['192.0.2.20', '172.17.0.1']);
  });

  it('is where it listens, if that is one address', () => {
    expect(addressesToType({ host: '127.0.0.1', port: 40_000 }, interfaces)).toEqual(['127.0.0.1:40000']);
    expect(addressesToType({ host: 'fe80::1', port: 7412 }, interfaces)).toEqual(['[fe80::1]:7412']);
  });

  it('is said in a sentence, also where the machine tells no address', () => {
    expect(howToPair(['192.0.2.20', '198.51.100.7'])).toBe(
      'To pair it: in the console Fleet > Add machine, type 192.0.2.20 or 198.51.100.7 and the join code.',
    );
    expect(howToPair(addressesToType({ host: '0.0.0.0', port: 7412 }, () => ({})))).toContain(
      'the address of this machine',
    );
  });
});
