import { expect, it } from 'vitest';
import type { EngineReport } from '../../agent/wire/control.ts';
import type { NodeId } from '../../main/domain/ids.ts';
import { ProbeWatch } from '../../main/fleet/probe-watch.ts';

const NODE = 'n1' as NodeId;

const engine = (kind: EngineReport['kind'], change: Partial<EngineReport> = {}): EngineReport => ({
  engine: kind,
  kind,
  version: null,
  address: '',
  reach: 'loopback',
  state: 'ready',
  reason: null,
  processMark: null,
  slots: 1,
  running: 0,
  queued: null,
  foreign: 0,
  errorsTotal: 0,
  probesAnswered: 0,
  models: [],
  ...change,
});

it('an engine is back when it has answered a new probe, and not because its node is', () => {
  const watch = new ProbeWatch();
  const look = (pulls: boolean, probesAnswered: number) =>
    watch.look(NODE, pulls, [engine('llama.cpp', { probesAnswered })]);
  expect(look(true, 3)).toEqual([]);
  expect(look(false, 3)).toEqual([]);
  expect(look(true, 3)).toEqual([]);
  expect(look(true, 4)).toEqual([{ slotPool: 'n1/llama.cpp', ok: true }]);
});

it.each(['openrouter', 'builtin'] as const)('%s, which nobody probes, is back with its node, once', (kind) => {
  const watch = new ProbeWatch();
  const look = (pulls: boolean, change: Partial<EngineReport> = {}) => watch.look(NODE, pulls, [engine(kind, change)]);
  expect(look(true)).toEqual([]);
  expect(look(false)).toEqual([]);
  expect(look(false)).toEqual([]);
  // Its agent was started again and has no key yet: it is back when it can be used.
  expect(look(true, { state: 'error' })).toEqual([{ slotPool: `n1/${kind}`, ok: false }]);
  expect(look(true)).toEqual([{ slotPool: `n1/${kind}`, ok: true }]);
  expect(look(true)).toEqual([]);
});
