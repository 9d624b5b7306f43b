import type { NetworkInterfaceInfo } from 'node:os';
import { describe, expect, it } from 'vitest';
import type { NodeId } from '../../main/domain/ids.ts';
import { posixCommand, powershellCommand } from '../../main/enrolment/commands.ts';
import { meetingAddress } from '../../main/enrolment/interfaces.ts';
import { makeToken, tokenMatches } from '../../main/enrolment/token.ts';
import type { CatalogueEntry } from '../../main/fleet/catalogue.ts';
import { Newcomers } from '../../main/house-enrolment.ts';
import { ManualClock } from '../gateway/manual-clock.ts';

const info = (address: string, change: Partial<NetworkInterfaceInfo> = {}): NetworkInterfaceInfo =>
  ({
    address,
    netmask: '',
    family: address.includes(':') ? 'IPv6' : 'IPv4',
    mac: '02:00:00:00:00:01',
    internal: false,
    cidr: `${address}/24`,
    ...change,
  }) as NetworkInterfaceInfo;
const LOOPBACK = { lo: [info('127.0.0.1', { internal: true }), info('::1', { internal: true })] };

describe('a token', () => {
  it('is 16 random bytes, and only itself', () => {
    const token = makeToken((count) => Uint8Array.from({ length: count }, (_, at) => at));
    expect(token).toBe('AAECAwQFBgcICQoLDA0ODw');
    expect(tokenMatches(token, token)).toBe(true);
    for (const other of ['', `${token}=`, token.slice(1), token.toLowerCase(), 'AAECAwQFBgcICQoLDA0ODg'])
      expect(tokenMatches(other, token)).toBe(false);
  });
});

describe('a command', () => {
  const meeting = { address: '10.0.0.2', port: 40_001, token: 'TOKEN', pin: 'PIN=' };

  it('is one line, word for word', () => {
    expect(posixCommand(meeting)).toBe(
      `f=$(mktemp) && curl -fsS --proto '=https' -k --pinnedpubkey 'sha256//PIN=' -o "$f" 'https://10.0.0.2:40001/e/TOKEN/sh' && sh "$f" 'https://10.0.0.2:40001/e/TOKEN' 'sha256//PIN='; rm -f "$f"`,
    );
    expect(powershellCommand(meeting)).toBe(
      "$f = \"$env:TEMP\\switchyard-join.ps1\"; curl.exe -fsS --proto '=https' -k --pinnedpubkey 'sha256//PIN=' -o $f 'https://10.0.0.2:40001/e/TOKEN/ps1'; if ($LASTEXITCODE -eq 0) { powershell -NoProfile -ExecutionPolicy Bypass -File $f 'https://10.0.0.2:40001/e/TOKEN' 'sha256//PIN=' }; Remove-Item -Force -ErrorAction SilentlyContinue $f",
    );
  });

  it('writes an IPv6 address in brackets', () => {
    expect(posixCommand({ ...meeting, address: 'fd00::2' })).toContain("'https://[fd00::2]:40001/e/TOKEN/sh'");
  });
});

describe('the address that a machine is met at', () => {
  const network = (found: NodeJS.Dict<NetworkInterfaceInfo[]>, routed: string | null = null) => ({
    interfaces: () => found,
    defaultAddress: async () => routed,
  });
  const both = { ...LOOPBACK, tun0: [info('10.8.0.2')], eth0: [info('10.0.0.2'), info('fe80::1'), info('fd00::2')] };

  it('is that of the default route, else that of the first real link', async () => {
    expect(await meetingAddress(network(both, '10.8.0.2'), null)).toBe('10.8.0.2');
    expect(await meetingAddress(network(both), null)).toBe('10.0.0.2');
    expect(await meetingAddress(network({ ...LOOPBACK, eth0: [info('fe80::1'), info('fd00::2')] }), null)).toBe(
      'fd00::2',
    );
  });

  it('can be chosen, among those of this computer that another machine can reach', async () => {
    expect(await meetingAddress(network(both, '10.8.0.2'), 'FD00::2')).toBe('fd00::2');
    for (const chosen of ['10.0.0.3', '127.0.0.1', 'fe80::1', '0.0.0.0', 'localhost'])
      await expect(meetingAddress(network(both), chosen)).rejects.toMatchObject({
        code: 'invalid_address',
        message: expect.stringContaining('10.8.0.2, 10.0.0.2, fd00::2'),
      });
  });

  it('is loopback only where there is nothing else, and none without any', async () => {
    expect(await meetingAddress(network(LOOPBACK), null)).toBe('127.0.0.1');
    expect(await meetingAddress(network({ ...LOOPBACK, eth0: [info('fe80::1')] }), null)).toBe('127.0.0.1');
    await expect(meetingAddress(network({}), null)).rejects.toMatchObject({
      code: 'invalid_address',
      message: expect.stringContaining('no network address'),
    });
  });
});

describe('the base weight of a machine that has joined', () => {
  function house() {
    const clock = new ManualClock();
    const stored = new Map<string, number>();
    const events: string[] = [];
    const entries: CatalogueEntry[] = [];
    let broken = false;
    const newcomers = new Newcomers({
      clock,
      events: { record: ({ says, needsPerson }) => void events.push(`${says.code} ${needsPerson}`) },
      store: {
        baseWeight: (provider) => stored.get(provider) ?? 1,
        setBaseWeight: async (provider, _node, weight) => {
          if (broken) throw new Error('disk');
          stored.set(provider, weight ?? 1);
        },
      },
      entries: () => entries,
      refresh: () => newcomers.look(),
    });
    const see = (id: string, node: string, kind: 'local' | 'cloud' = 'local') => {
      entries.push({ provider: { id, node, kind } } as unknown as CatalogueEntry);
      newcomers.look();
    };
    const fail = () => {
      broken = true;
    };
    return { clock, stored, events, newcomers, see, fail };
  }

  it('is given to each of its providers when it is first seen, and to nobody else’s', async () => {
    const { clock, stored, newcomers, see } = house();
    see('other', 'n2');
    newcomers.weigh('n1' as NodeId, 'n1', 2.5);
    see('chat', 'n1');
    see('cloud', 'n1', 'cloud');
    expect([...stored]).toEqual([['chat', 2.5]]);
    stored.set('chat', 4); // by the operator, a moment later
    newcomers.look();
    clock.advance(10 * 60_000);
    see('embed', 'n1');
    expect([...stored]).toEqual([
      ['chat', 4],
      ['embed', 2.5],
    ]);
    clock.advance(1);
    see('late', 'n1');
    expect(stored.has('late')).toBe(false);
  });

  it('that cannot be stored is an event that needs a person', async () => {
    const { events, newcomers, see, fail } = house();
    fail();
    newcomers.weigh('n1' as NodeId, 'n1', 2);
    see('chat', 'n1');
    await expect.poll(() => events).toEqual(['enrolment_weight_lost true']);
  });
});
