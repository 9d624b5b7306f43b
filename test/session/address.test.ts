import { expect, it } from 'vitest';
import { formatAddress, parseAddress } from '../../main/fleet/address.ts';

it.each([
  ['box', 'box', 7412, 'box:7412'],
  ['Box.local:8000', 'box.local', 8000, 'box.local:8000'],
  [' 10.0.0.7:7412 ', '10.0.0.7', 7412, '10.0.0.7:7412'],
  ['::1', '::1', 7412, '[::1]:7412'],
  ['[2001:DB8::1]:9', '2001:db8::1', 9, '[2001:db8::1]:9'],
  ['fe80::1%eth0', 'fe80::1%eth0', 7412, '[fe80::1%eth0]:7412'],
  ['[fe80::1%25eth0]:7412', 'fe80::1%eth0', 7412, '[fe80::1%eth0]:7412'],
  ['[fe80::1%eth0]', 'fe80::1%eth0', 7412, '[fe80::1%eth0]:7412'],
  ['[fe80::1%25]:1', 'fe80::1%25', 1, '[fe80::1%25]:1'],
])('%s is %s, port %i', (typed, host, port, canonical) => {
  const address = parseAddress(typed);
  expect(address).toEqual({ host, port });
  expect(formatAddress(address)).toBe(canonical);
  expect(parseAddress(canonical)).toEqual(address);
});

it.each([
  '',
  'a b',
  'box:0',
  'box:65536',
  'box:',
  ':7412',
  'http://box',
  'user@box',
  'box/path',
  '10.1',
  '1.2.3.4.5',
  '256.1.1.1',
  '[::1',
  '[10.0.0.1]:1',
  'fe80::1%',
  '[fe80::1%a%b]:1',
  'x'.repeat(300),
])('%j is no address', (typed) => {
  expect(() => parseAddress(typed)).toThrow(expect.objectContaining({ code: 'invalid_address' }));
});
