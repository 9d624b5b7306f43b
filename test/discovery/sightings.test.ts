import { describe, expect, it } from 'vitest';
import { KEPT_MS, Sightings } from '../../main/discovery/sightings.ts';

const seen = (parts: Partial<Parameters<Sightings['add']>[0]> = {}) => ({
  id: 'a',
  fingerprint: 'fp-a',
  name: 'workstation',
  address: '10.77.0.1:7412',
  rank: 0,
  ...parts,
});

describe('what was seen', () => {
  it('is one entry per agent, at the address of the best link, whichever was heard first', () => {
    const sightings = new Sightings();
    sightings.add(seen({ address: '10.99.0.1:7412', rank: 1 }), 0);
    sightings.add(seen({ rank: 0 }), 10);
    sightings.add(seen({ address: '[fe80::1%eth0]:7412', rank: 2 }), 20);
    expect(sightings.list(20)).toEqual([
      { id: 'a', fingerprint: 'fp-a', name: 'workstation', address: '10.77.0.1:7412', seenAtMs: 20 },
    ]);
  });

  it('falls back to the next address when the best is not seen again, and ends when none is', () => {
    const sightings = new Sightings();
    sightings.add(seen(), 0);
    sightings.add(seen({ address: '10.99.0.1:7412', rank: 1 }), 30_000);
    expect(sightings.list(KEPT_MS + 1)[0]?.address).toBe('10.99.0.1:7412');
    expect(sightings.list(30_000 + KEPT_MS + 1)).toEqual([]);
  });

  it('forgets an address that said goodbye', () => {
    const sightings = new Sightings();
    sightings.add(seen(), 0);
    sightings.remove('a', 'fp-a', '10.77.0.1:7412');
    expect(sightings.list(0)).toEqual([]);
  });

  it('keeps the true agent beside one that lies about its fingerprint', () => {
    const sightings = new Sightings();
    sightings.add(seen({ fingerprint: 'fp-liar', address: '10.77.0.66:7412' }), 0);
    sightings.add(seen(), 1);
    expect(sightings.list(1).map(({ fingerprint }) => fingerprint)).toContain('fp-a');
  });

  it('is bounded whatever is made up, and has room again when that expires', () => {
    const sightings = new Sightings();
    for (let i = 0; i < 5000; i++) sightings.add(seen({ id: `liar-${i}` }), 0);
    for (let i = 0; i < 100; i++) sightings.add(seen({ id: 'liar-1', address: `10.77.1.${i}:1` }), 0);
    expect(sightings.list(0)).toHaveLength(256);
    sightings.add(seen({ id: 'true' }), KEPT_MS + 1);
    expect(sightings.list(KEPT_MS + 1).map(({ id }) => id)).toEqual(['true']);
  });
});
