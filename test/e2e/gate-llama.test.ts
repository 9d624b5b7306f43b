import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import type { EngineId, NodeId } from '../../main/domain/ids.ts';
import { providerId } from '../../main/domain/ids.ts';
import type { Provider } from '../../main/domain/provider.ts';
import { defaultRoleSettings, ROLE_IDS, type RoleId, type RoleSettings } from '../../main/domain/roles.ts';
import type { Fingerprint } from '../../main/domain/verdict.ts';
import { GateService } from '../../main/gate/gate.ts';
import type { Encoder, ProbeAnswer, ProbeOptions, ProbePort } from '../../main/gate/probe-port.ts';
import { anchorTexts, parseProbeSet } from '../../main/gate/probes.ts';
import { sha256 } from '../../main/gate/service-digest.ts';
import type { Space } from '../../main/gate/space.ts';
import type { Verdict } from '../../main/gate/verdict.ts';
import { createSystemClock } from '../../main/platform/clock.ts';
import { type LlamaServer, startLlama } from '../engines/llama.ts';
import { encoderModel, quantised } from '../engines/models.ts';
import { type RecordingProxy, startProxy } from '../engines/proxy.ts';
import { describeWithLlama } from '../engines/suite.ts';
import { MemoryGateStore } from '../gate/memory-store.ts';

interface Machine {
  server: LlamaServer;
  readonly proxy: RecordingProxy;
  encoder: Encoder;
}

/** Speaks to llama.cpp as the agent's adapter does: base64 vectors, `/tokenize` with special tokens, 500 for over-long. */
class LlamaPort implements ProbePort {
  readonly machines = new Map<string, Machine>();

  async embed(provider: Provider, texts: readonly string[], { cut, signal }: ProbeOptions): Promise<ProbeAnswer> {
    const { proxy, server } = this.#machine(provider);
    const body = JSON.stringify({ input: texts, encoding_format: 'base64' });
    const response = await fetch(`${proxy.url}/v1/embeddings`, { method: 'POST', body, signal });
    const answer = (await response.json()) as {
      readonly data?: readonly { readonly index: number; readonly embedding: string }[];
      readonly error?: { readonly message: string };
    };
    if (answer.data === undefined) {
      const tooLong = answer.error?.message.includes('too large') || answer.error?.message.includes('exceed');
      const code = tooLong
        ? 'input_too_long'
        : answer.error?.message.includes('empty')
          ? 'empty_input'
          : 'engine_error';
      return { failure: { blame: tooLong ? 'caller' : 'engine', code, retryAfterMs: null } };
    }
    const rows = [...answer.data]
      .sort((a, b) => a.index - b.index)
      .map(({ embedding }) => normalised(floats(embedding).slice(0, cut ?? undefined)));
    const width = rows[0]?.length ?? 0;
    const vectors = Float32Array.from(rows.flatMap((row) => [...row]));
    return { failure: null, vectors, count: rows.length, width, fingerprint: fingerprintOf(server) };
  }

  async tokenize(provider: Provider, texts: readonly string[]): Promise<readonly number[]> {
    const { proxy } = this.#machine(provider);
    const counts: number[] = [];
    for (const content of texts) {
      const body = JSON.stringify({ content, add_special: true });
      const response = await fetch(`${proxy.url}/tokenize`, { method: 'POST', body });
      counts.push(((await response.json()) as { readonly tokens: readonly number[] }).tokens.length);
    }
    return counts;
  }

  #machine(provider: Provider): Machine {
    const machine = this.machines.get(provider.id);
    if (machine === undefined) throw new Error(`no machine for ${provider.id}`);
    return machine;
  }
}

function floats(base64: string): Float32Array {
  const bytes = Uint8Array.from(Buffer.from(base64, 'base64'));
  return new Float32Array(bytes.buffer);
}

function normalised(vector: Float32Array): Float32Array {
  const length = Math.hypot(...vector);
  return vector.map((x) => x / length);
}

function fingerprintOf(server: LlamaServer): Fingerprint {
  const processMark = String(server.pid);
  return { engine: 'llama.cpp', version: null, modelDigest: null, upstream: null, pin: null, processMark };
}

function encoderOf(name: string, server: LlamaServer, width: number, limit: number): Encoder {
  const node = `node-${name}` as NodeId;
  const engine = 'llama' as EngineId;
  const model = `model-${name}`;
  return {
    provider: {
      id: providerId('embedding', node, engine, model),
      role: 'embedding',
      kind: 'local',
      node,
      nodeName: name,
      nodeState: 'ready',
      nodePulls: true,
      engine,
      engineKind: 'llama.cpp',
      slotPool: `${node}/${engine}`,
      slots: 1,
      foreign: 0,
      model,
      aliases: [],
      present: true,
      loaded: true,
      reachable: true,
      contextTokens: limit,
      maxBatch: 32,
      baseWeight: 1,
      tokensPerSecond: null,
      ttftMs: null,
      fingerprint: fingerprintOf(server),
    },
    width,
    maxInputTokens: limit,
    tokenCounting: 'exact',
    trial: false,
  };
}

// A verification is about eighty calls; with both cores taken by other suites one lasts up to a minute.
vi.setConfig({ testTimeout: 240_000, hookTimeout: 240_000 });

const CONTEXT = 512;
const ARGS = ['--embeddings', '-c', String(CONTEXT * 4), '-b', String(CONTEXT), '-ub', String(CONTEXT)];

await describeWithLlama('the gate in front of real llama.cpp servers', () => {
  const port = new LlamaPort();
  const store = new MemoryGateStore();
  const probeSet = parseProbeSet(
    JSON.parse(readFileSync(new URL('../../assets/probes.json', import.meta.url), 'utf8')),
  );
  const gate = new GateService({
    clock: createSystemClock(),
    random: Math.random,
    store,
    port,
    probeSet,
    digest: sha256,
    timing: { foundingDelayMs: 0 },
  });
  const started: { stop(): Promise<void> }[] = [];
  let space: Space;
  let founder: Machine;
  let near: Machine;

  async function add(name: string, model: string, width: number, ...args: string[]): Promise<Machine> {
    const server = await startLlama({ model, args: [...ARGS, ...args] });
    const proxy = await startProxy(server.url);
    started.push(proxy, server);
    const machine = { server, proxy, encoder: encoderOf(name, server, width, CONTEXT) };
    port.machines.set(machine.encoder.provider.id, machine);
    return machine;
  }

  /** Waits, by the gate's own events, until something holds. */
  function settled(holds: () => boolean): Promise<void> {
    return new Promise((resolve) => {
      const unsubscribe = gate.subscribe(check);
      function check(): void {
        if (!holds()) return;
        unsubscribe();
        resolve();
      }
      check();
    });
  }

  function publish(): void {
    gate.onProviders([...port.machines.values()].map(({ encoder }) => encoder));
  }

  async function verdictOf({ encoder }: Machine): Promise<Verdict> {
    const { id } = encoder.provider;
    publish();
    await settled(() => gate.verdictFor(id, space.id) !== 'unverified');
    const verdict = gate.verdict(id, space.id);
    if (verdict === null) throw new Error('no verdict');
    report(encoder.provider.nodeName, verdict);
    return verdict;
  }

  /** Figures for people who run this suite by hand. */
  function report(name: string, verdict: Verdict): void {
    if (process.env.SWITCHYARD_FIGURES !== '1') return;
    const checks = verdict.checks.map(({ check, state, figure }) => `${check}:${state}:${figure?.toPrecision(7)}`);
    console.log(
      `${name}: ${verdict.kind} min ${verdict.minCosine} worst ${verdict.worst?.id} ${checks.join(' ')}\n  ${verdict.sentence}`,
    );
  }

  function admits({ encoder, server }: Machine): boolean {
    return gate.admit(encoder.provider.id, space.id, fingerprintOf(server));
  }

  function refused(machine: Machine): void {
    expect(admits(machine)).toBe(false);
    onlyProbes(machine);
  }

  /** Every text an engine was shown is a probe of the space. */
  function onlyProbes({ proxy }: Machine): void {
    const { base, otherTail, otherHead } = space.probes.overLimit;
    const known = new Set([...anchorTexts(space.probes).map(({ text }) => text), base, otherTail, otherHead]);
    expect(proxy.texts().filter((text) => !known.has(text))).toEqual([]);
  }

  beforeAll(async () => {
    founder = await add('founder', encoderModel(), 384);
    gate.onRoles(settings());
    await gate.start();
    publish();
    await settled(() => gate.roleSpace('embedding').state !== 'founding');
    const state = gate.roleSpace('embedding');
    if (state.state !== 'founded') throw new Error(JSON.stringify(state));
    space = state.space;
  });
  afterAll(async () => {
    await gate.stop();
    for (const one of started) await one.stop();
  });

  it('the founder passes as the process that founded, on texts up to its window', async () => {
    expect(space).toMatchObject({ width: 384, limitTokens: CONTEXT, counted: true, regime: 'local' });
    const texts = space.probes.texts.filter(({ id }) => id.startsWith('window')).map(({ text }) => text);
    expect(await port.tokenize(founder.encoder.provider, texts)).toEqual([CONTEXT - 1, CONTEXT]);
    expect(await verdictOf(founder)).toMatchObject({ kind: 'pass' });
  });

  it('Q8_0 of the founder passes', async () => {
    near = await add('q8', await quantised(encoderModel(), 'Q8_0'), 384);
    const verdict = await verdictOf(near);
    expect(verdict.kind).toBe('pass');
    expect(verdict.minCosine).toBeGreaterThan(0.999);
    expect(admits(near)).toBe(true);
    onlyProbes(near);
  });

  it('Q4_0 is refused by its smallest cosine', async () => {
    const far = await add('q4', await quantised(encoderModel(), 'Q4_0'), 384);
    const verdict = await verdictOf(far);
    expect(verdict.kind).toBe('vector-incompatible');
    expect(verdict.minCosine).toBeLessThan(0.99);
    expect(verdict.minCosine).toBeGreaterThan(0.9);
    expect(verdict.worst?.id).not.toBe('');
    refused(far);
  });

  it('another pooling is refused', async () => {
    const pooled = await add('cls', encoderModel(), 384, '--pooling', 'cls');
    const verdict = await verdictOf(pooled);
    expect(verdict.kind).toBe('vector-incompatible');
    expect(verdict.minCosine).toBeLessThan(0.5);
    refused(pooled);
  });

  it('another model of equal width is refused', async () => {
    const other = await add('seed-2', encoderModel({ seed: 2 }), 384);
    const verdict = await verdictOf(other);
    expect(verdict.kind).toBe('vector-incompatible');
    expect(verdict.minCosine).toBeLessThan(0.5);
    refused(other);
  });

  it('another width is refused after its first probe', async () => {
    const narrow = await add('narrow', encoderModel({ dim: 192 }), 192);
    expect((await verdictOf(narrow)).kind).toBe('dimension-mismatch');
    expect(narrow.proxy.texts()).toHaveLength(1);
    refused(narrow);
  });

  it('a shorter window is refused, with the remedy', async () => {
    const short = await add('short', encoderModel(), 384, '-b', '256', '-ub', '256');
    const verdict = await verdictOf(short);
    expect(verdict.kind).toBe('probe-failed');
    expect(verdict.sentence).toContain('-ub');
    refused(short);
  });

  it('an engine that answers with NaN is refused', async () => {
    const spoilt = await add('spoilt', encoderModel(), 384);
    spoilt.proxy.inject({ kind: 'vectors', spoil: 'nan' }, { path: '/v1/embeddings', times: 1 });
    const verdict = await verdictOf(spoilt);
    expect(verdict.kind).toBe('vector-incompatible');
    refused(spoilt);
  });

  it('the passing server restarted on its port with another pooling lets no answer through', async () => {
    const before = fingerprintOf(near.server);
    await near.server.stop();
    near.server = await startLlama({
      model: await quantised(encoderModel(), 'Q8_0'),
      args: [...ARGS, '--pooling', 'cls'],
      port: near.server.port,
    });
    started.push(near.server);
    // No heartbeat has said so yet: the answer itself gives the new process away.
    const now = fingerprintOf(near.server);
    expect(gate.admit(near.encoder.provider.id, space.id, now)).toBe(false);
    expect(gate.admit(near.encoder.provider.id, space.id, before)).toBe(false);
    near.encoder = encoderOf('q8', near.server, 384, CONTEXT);
    expect((await verdictOf(near)).kind).toBe('vector-incompatible');
    expect(gate.admit(near.encoder.provider.id, space.id, now)).toBe(false);
    onlyProbes(near);
  });
});

function settings(): Readonly<Record<RoleId, RoleSettings>> {
  return Object.fromEntries(ROLE_IDS.map((id) => [id, defaultRoleSettings(id)])) as Record<RoleId, RoleSettings>;
}
