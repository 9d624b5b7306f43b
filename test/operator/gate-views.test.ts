import { describe, expect, it } from 'vitest';
import { verdictViews } from '../../main/operator/gate-views.ts';
import type { House } from '../../main/operator/house.ts';

const NODE = 'a1b2c3d4e5f60718a1b2c3d4e5f60718';
const at = (node: string, model: string) => `embedding~${node}~vllm~${model}`;
const space = (id: string, founder: string, nodeName: string) => ({
  id,
  role: 'embedding',
  retiredAtMs: null,
  founder: { provider: founder, nodeName },
});
const verdict = (provider: string, of: string, kind: string) => ({
  provider,
  space: of,
  kind,
  checks: [],
  regime: 'local',
});

function rows(nodes: Readonly<Record<string, string>>, verdicts: readonly object[]) {
  const current = space('now', at(NODE, 'bge'), 'gpu-one');
  const house = {
    routed: () => [],
    fleet: { get: (id: string) => (nodes[id] === undefined ? undefined : { name: nodes[id] }) },
    gate: {
      spaces: () => [current, space('kept', at(NODE, 'old'), 'gpu-one')],
      roleSpace: () => ({ state: 'founded', space: current }),
      verdicts: () => verdicts,
    },
  } as unknown as House;
  return verdictViews(house).map(({ title, nodeName, spaceId }) => [title, nodeName, spaceId]);
}

describe('an encoder that serves its role no more', () => {
  it('bears the name of its machine, and is gone only where its machine is', () => {
    const found = [verdict(at(NODE, 'bge'), 'now', 'pass')];
    // The model is not among those that the role names.
    expect(rows({ [NODE]: 'gpu-one' }, found)).toEqual([['bge on gpu-one', 'gpu-one', 'now']]);
    expect(rows({}, found)).toEqual([['bge (not in the fleet now)', 'gpu-one', 'now']]);
    // Nobody remembers the name of one that founded nothing.
    expect(rows({}, [verdict(at(NODE, 'other'), 'now', 'pass')])).toEqual([
      ['other (not in the fleet now)', 'a1b2c3d4', 'now'],
    ]);
  });

  it('is listed in a space that is kept only where it answers in it', () => {
    const found = [
      verdict(at(NODE, 'old'), 'kept', 'pass'),
      verdict(at(NODE, 'bge'), 'kept', 'dimension-mismatch'),
      verdict(at(NODE, 'old'), 'now', 'dimension-mismatch'),
    ];
    expect(rows({ [NODE]: 'gpu-one' }, found).map(([title, , of]) => [title, of])).toEqual([
      ['old on gpu-one', 'kept'],
      ['old on gpu-one', 'now'],
    ]);
  });
});
