import { describe, expect, it } from 'vitest';
import { BudgetService } from '../../main/cloud/budget-service.ts';
import { CloudCatalogue } from '../../main/cloud/catalogue.ts';
import { CloudRoom } from '../../main/cloud/desk.ts';
import { KeyPush } from '../../main/cloud/key-push.ts';
import type { AgentPort } from '../../main/cloud/ports.ts';
import type { NodeId } from '../../main/domain/ids.ts';
import { defaultRoleSettings, ROLE_IDS, type RoleId, type RoleSettings } from '../../main/domain/roles.ts';
import { BudgetView, CloudView } from '../../preload/contract/cloud.ts';
import { ask, refusal } from '../budget/driver.ts';

function make() {
  const clock = { nowMs: () => 0, wallMs: () => 1_790_000_000_000.5, after: () => () => undefined };
  const nodes: NodeId[] = ['a' as NodeId];
  const agents: AgentPort = {
    ready: () => nodes.map((node) => ({ node, name: 'alpha' })),
    name: () => 'alpha',
    send: () => true,
    sendBinary: (_, __, sent) => {
      sent();
      return true;
    },
  };
  const budget = new BudgetService({
    clock,
    random: () => 0.5,
    store: { load: () => null, save: () => undefined },
    onChange: () => undefined,
  });
  const keys = new KeyPush({
    clock,
    agents,
    store: { load: () => null, save: () => undefined },
    events: { record: () => undefined },
    roles: () =>
      Object.fromEntries(ROLE_IDS.map((role) => [role, defaultRoleSettings(role)])) as Record<RoleId, RoleSettings>,
    baseUrl: () => null,
    onChange: () => undefined,
    onKeyApplied: () => undefined,
  });
  const catalogue = new CloudCatalogue({
    clock,
    agents,
    status: (node) => keys.status(node),
    holds: (node) => keys.holds(node),
  });
  const room = new CloudRoom({
    clock,
    budget,
    keys,
    catalogue,
    projectName: (id) => `project ${id}`,
    projectCaps: { change: async () => undefined },
    remember: () => ({ can: false, note: null }),
  });
  return { room, budget, keys, nodes };
}

describe('the desk of the cloud', () => {
  it('shows the way from no agent over no key to an accepted key', async () => {
    const { room, keys, nodes } = make();
    const state = () => CloudView.parse(room.status()).state;
    const node = nodes.pop();
    expect(state()).toBe('no-agent');
    nodes.push(node as NodeId);
    expect(state()).toBe('key-missing');
    expect(room.status().reason.code).toBe('key_none');
    await room.pushKey(Buffer.from('sk-or-v1-0123456789'), {});
    expect(CloudView.parse(room.status()).holders).toMatchObject([{ nodeName: 'alpha', state: 'pending' }]);
    expect(room.status().reason.code).toBe('key_pending');
    keys.onAck('a' as NodeId, { t: 'cloud-ack', push: 1, result: 'applied', reason: null });
    keys.onStatus('a' as NodeId, {
      t: 'cloud-status',
      push: 1,
      keyPush: 1,
      key: 'held',
      keyRefused: false,
      remembered: false,
      canRemember: false,
      baseUrl: 'https://openrouter.ai/api/v1',
      account: null,
      offers: [],
      notOffered: [],
      catalogueAtWallMs: null,
    });
    expect(CloudView.parse(room.status())).toMatchObject({
      state: 'on',
      reason: { sentence: 'The key is held by 1 agent.' },
      lastPush: { number: 1 },
    });
    expect(room.status().holders[0]?.baseUrl).toBe('https://openrouter.ai/api/v1');
    expect(JSON.stringify(room.status())).not.toContain('0123456789');
    await room.pause();
    expect(state()).toBe('paused');
  });

  it('calls an agent without a key fresh until a key was given, and only then one that lost it', async () => {
    const { room, keys } = make();
    const empty = {
      t: 'cloud-status' as const,
      push: 0,
      keyPush: null,
      key: 'missing' as const,
      keyRefused: false,
      remembered: false,
      canRemember: false,
      baseUrl: 'https://eu.example/api/v1',
      account: null,
      offers: [],
      notOffered: [],
      catalogueAtWallMs: null,
    } satisfies Parameters<KeyPush['onStatus']>[1];
    const holder = () => CloudView.parse(room.status()).holders[0];
    expect(holder()?.baseUrl).toBeNull();
    keys.onStatus('a' as NodeId, empty);
    expect(holder()).toMatchObject({
      state: 'key-missing',
      reason: { code: 'key_none', sentence: 'No key was given yet.' },
      baseUrl: 'https://eu.example/api/v1',
    });
    await room.pushKey(Buffer.from('sk-or-v1-0123456789'), {});
    keys.onAck('a' as NodeId, { t: 'cloud-ack', push: 1, result: 'applied', reason: null });
    expect(holder()?.reason?.code).toBe('key_pending'); // what it said was said before the push
    keys.onStatus('a' as NodeId, { ...empty, push: 1 });
    expect(holder()?.reason?.code).toBe('cloud_key_missing');
    await room.forget(null);
    keys.onStatus('a' as NodeId, { ...empty, push: 2 });
    expect(holder()?.reason?.code).toBe('key_forgotten');
    expect(CloudView.parse(room.status())).toMatchObject({
      state: 'key-missing',
      reason: { code: 'key_forgotten' },
      lastPush: null,
    });
  });

  it('calls the latency unknown, and names what it assumes, until a call was measured', async () => {
    const { room, budget } = make();
    expect(BudgetView.parse(room.budget())).toMatchObject({ latencyMs: null, assumedLatencyMs: 2000 });
    const first = budget.budget.acquire(ask('x'), 0);
    if (!first.granted) throw new Error(first.reason);
    budget.ended(first.permit, { kind: 'success', latencyMs: 1000, costUsd: 0 });
    // 0.8 x 2000 + 0.2 x 1000
    expect(BudgetView.parse(room.budget())).toMatchObject({ latencyMs: 1800, assumedLatencyMs: null });
  });

  it('shows the budget with cuts, shares and spending', async () => {
    const { room, budget } = make();
    await room.setOverride(8);
    await expect(room.setOverride(9999)).rejects.toMatchObject({ code: 'invalid_request' });
    budget.setCaps('role', 'embedding', { dayUsd: 5, monthUsd: null });
    const first = budget.budget.acquire(ask('x', { estimateUsd: 0.5 }), 0);
    budget.budget.acquire(ask('y'), 0);
    if (!first.granted) throw new Error(first.reason);
    budget.ended(first.permit, { kind: 'refused', refusal: refusal(), costUsd: 0.25 });
    const view = BudgetView.parse(room.budget());
    expect(view).toMatchObject({
      ceiling: 8,
      effective: 4,
      state: 'cooling',
      source: 'override',
      overrideMax: 256,
      cuts: [{ from: 8, to: 4 }],
      cooldowns: [{ fromMs: view.cuts[0]?.atMs }],
      steps: [],
      shares: [{ name: 'project A', held: 1 }],
      spendByRole: [{ id: 'embedding', dayUsd: 0.25, dayCapUsd: 5 }],
    });
    expect(room.spentUsd('embedding')).toEqual({ dayUsd: 0.25, monthUsd: 0.25 });
    expect(room.spentUsd('rlm')).toEqual({ dayUsd: 0, monthUsd: 0 });
  });
});
