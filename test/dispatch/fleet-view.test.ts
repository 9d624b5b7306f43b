import { describe, expect, it } from 'vitest';
import { keepUnchanged } from '../../main/dispatch/fleet-view.ts';
import type { SpaceId } from '../../main/domain/ids.ts';
import { provider } from '../router/support.ts';

describe('what the router is given after a heartbeat', () => {
  const list = (change: Parameters<typeof provider>[1] = {}) => [provider('a'), provider('b', change)];

  it('is the very same list when nothing it looks at has changed', () => {
    const before = list();
    expect(keepUnchanged(before, list())).toBe(before);
  });

  it('has new objects only for the providers that changed', () => {
    const before = list();
    const kept = keepUnchanged(before, list({ foreign: 2 }));
    expect(kept).not.toBe(before);
    expect(kept[0]).toBe(before[0]);
    expect(kept[1]).toMatchObject({ foreign: 2 });
  });

  it('sees a verdict that changed, and a list that became shorter or changed its order', () => {
    const space = 'embedding-1' as SpaceId;
    const before = list({ spaces: new Map([[space, 'pass']]) });
    expect(keepUnchanged(before, list({ spaces: new Map([[space, 'unstable']]) }))).not.toBe(before);
    expect(keepUnchanged(before, list({ spaces: new Map([[space, 'pass']]) }).slice(0, 1))).toHaveLength(1);
    expect(keepUnchanged(before, [...before].reverse())).toEqual([...before].reverse());
  });

  it('takes a date of a check that only the noise of two clocks moved for the same, and a later check for another', () => {
    const before = list({ verifiedAtMs: 1000 });
    expect(keepUnchanged(before, list({ verifiedAtMs: 1000.7 }))).toBe(before);
    expect(keepUnchanged(before, list({ verifiedAtMs: 1400 }))).not.toBe(before);
    expect(keepUnchanged(before, list({ verifiedAtMs: null }))).not.toBe(before);
  });
});
