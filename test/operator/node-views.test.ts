import { expect, it } from 'vitest';
import type { FleetNode } from '../../main/fleet/fleet-node.ts';
import type { House } from '../../main/operator/house.ts';
import { nodeDetail } from '../../main/operator/node-views.ts';
import { NodeView } from '../../preload/contract/fleet.ts';

const gpu = { index: 0, uuid: 'u', name: 'A100', utilisationPercent: 80, memoryUsedBytes: 5, memoryTotalBytes: 9 };
const node = (over: object) =>
  ({
    id: 'n1',
    name: 'lab',
    state: 'ready',
    stateSinceMs: 0,
    problem: null,
    target: null,
    welcome: null,
    heartbeatAtMs: 5,
    opener: {},
    heartbeat: {
      host: { cpuPercent: 12, memoryUsedBytes: 3, memoryTotalBytes: 7, uptimeS: 60 },
      gpus: [{ ...gpu, temperatureC: 60, powerW: 200 }],
      controllers: 1,
      engines: [
        {
          ...{
            engine: 'e',
            kind: 'ollama',
            version: '1',
            address: 'a',
            reach: 'loopback',
            state: 'ready',
            reason: null,
          },
          ...{ slots: 2, running: 1, queued: 0, foreign: 0, errorsTotal: 0, processMark: null },
          models: [{ model: 'm', aliases: [], tokensPerSecond: 72.4 }],
        },
      ],
    },
    ...over,
  }) as unknown as FleetNode;

const house = {
  clock: { nowMs: () => 10, wallMs: () => 10 },
  fleet: { record: () => undefined, embedded: null },
  app: { version: '1' },
  routed: () => [],
  router: () => ({ providers: [] }),
  cloud: { status: () => ({ lastPush: null }) },
  series: { read: () => ({ atMs: [], series: new Map() }) },
} as unknown as House;

function shown(over: object) {
  const { node: view, engines } = nodeDetail(node(over), house);
  const { running, slots, queued, foreign, tokensPerSecond, cpuPercent, memoryUsedBytes, memoryTotalBytes } =
    NodeView.parse(view);
  const figures = [running, slots, queued, foreign, tokensPerSecond, cpuPercent, memoryUsedBytes];
  return { figures, memoryTotalBytes, load: view.gpus[0]?.utilisationPercent, engine: engines[0]?.state };
}

it('what a machine did when it was last heard is not told as what it does', () => {
  const known = { memoryTotalBytes: 7, load: 80, engine: 'ready' };
  expect(shown({})).toEqual({ figures: [1, 2, 0, 0, 72.4, 12, 3], ...known });
  const away = {
    figures: [null, null, null, null, null, null, null],
    memoryTotalBytes: 7,
    load: null,
    engine: 'unreachable',
  };
  expect(shown({ state: 'unreachable', opener: null })).toEqual(away);
  // Out of service and gone, or not heard since this computer slept.
  expect(shown({ state: 'maintenance', opener: null })).toEqual(away);
  expect(shown({ state: 'unknown' })).toEqual(away);
});
