import { describe, expect, it } from 'vitest';
import { Admission, addressGroup } from '../../agent/session/admission.ts';
import { ManualClock } from './manual-clock.ts';

const MINUTE = 60_000;

it.each([
  ['192.168.1.7', '192.168.1.7'],
  ['::ffff:192.168.1.7', '192.168.1.7'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
  ['2001:db8:1:2::9', '2001:db8:1:2::/64'],
  ['2001:0DB8:1:2:ffff::', '2001:db8:1:2::/64'],
  ['fe80::1%eth0', 'fe80:0:0:0::/64'],
  ['::1', '0:0:0:0::/64'],
])('%s counts as %s', (address, group) => {
  expect(addressGroup(address)).toBe(group);
});

describe('admission', () => {
  it('lets four of an address and sixteen in all in, and gives a place back once', () => {
    const admission = new Admission(new ManualClock());
    const places = Array.from({ length: 4 }, () => admission.admit('10.0.0.1'));
    expect(places.includes(null)).toBe(false);
    expect(admission.admit('::ffff:10.0.0.1')).toBeNull();
    for (const address of ['10.0.0.2', '10.0.0.3', '10.0.0.4']) {
      for (let count = 0; count < 4; count += 1) expect(admission.admit(address)).not.toBeNull();
    }
    expect(admission.admit('10.0.0.5')).toBeNull();
    places[0]?.();
    places[0]?.();
    expect(admission.unproved).toBe(15);
    expect(admission.admit('10.0.0.5')).not.toBeNull();
    expect(admission.admit('10.0.0.5')).toBeNull();
  });

  it('shuts a /64 out with its fifth wrong code, for 30 minutes', () => {
    const clock = new ManualClock();
    const admission = new Admission(clock);
    for (let guess = 1; guess <= 5; guess += 1) {
      expect(admission.isShutOut('2001:db8::1')).toBe(false);
      admission.wrongCode(`2001:db8::${guess}`);
    }
    expect(admission.isShutOut('2001:db8::ffff')).toBe(true);
    expect(admission.isShutOut('2001:db8:0:1::1')).toBe(false);
    clock.advance(30 * MINUTE - 1);
    expect(admission.isShutOut('2001:db8::1')).toBe(true);
    clock.advance(1);
    expect(admission.isShutOut('2001:db8::1')).toBe(false);
  });

  it('forgets wrong codes after a right one, and after 30 minutes', () => {
    const clock = new ManualClock();
    const admission = new Admission(clock);
    for (let guess = 0; guess < 4; guess += 1) admission.wrongCode('10.0.0.1');
    admission.rightCode('10.0.0.1');
    for (let guess = 0; guess < 4; guess += 1) admission.wrongCode('10.0.0.1');
    clock.advance(30 * MINUTE);
    admission.wrongCode('10.0.0.1');
    expect(admission.isShutOut('10.0.0.1')).toBe(false);
  });
});
