import { execFile } from 'node:child_process';
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { createAgentClock } from '../../../agent/clock.ts';
import { engineDefinitions } from '../../../agent/engines/definitions.ts';
import { EngineHttp } from '../../../agent/engines/engine-http.ts';
import { EngineFleet } from '../../../agent/engines/fleet.ts';
import { Evidence, identify } from '../../../agent/engines/identify.ts';
import { createProcessMarks } from '../../../agent/engines/process-mark.ts';
import { freePort } from '../../engines/llama.ts';
import { startProxy } from '../../engines/proxy.ts';
import { LmstudioStandIn } from '../../engines/stand-ins/lmstudio.ts';
import { OllamaStandIn } from '../../engines/stand-ins/ollama.ts';
import { OpenaiStandIn } from '../../engines/stand-ins/openai.ts';
import { PacedEngine } from '../../engines/stand-ins/paced.ts';
import type { StandIn } from '../../engines/stand-ins/stand-in.ts';
import { TeiStandIn } from '../../engines/stand-ins/tei.ts';
import { TgiStandIn } from '../../engines/stand-ins/tgi.ts';
import { VllmStandIn } from '../../engines/stand-ins/vllm.ts';
import { serve } from './served.ts';

const clock = createAgentClock();
const started: { stop(): unknown }[] = [];
afterEach(async () => {
  for (const thing of started.splice(0)) await thing.stop();
});

async function start<S extends StandIn>(standIn: S): Promise<S> {
  started.push(standIn);
  return standIn.start();
}

function httpTo(url: string): EngineHttp {
  const http = new EngineHttp(url, clock, { readMark: async () => null, admits: () => true });
  started.push({ stop: () => http.close() });
  return http;
}

const kindAt = async (url: string) => (await identify(httpTo(url), engineDefinitions(clock)))?.definition.kind ?? null;

/** Every definition that would claim the address if it were the only one. */
async function claims(url: string): Promise<readonly string[]> {
  const found: string[] = [];
  for (const definition of engineDefinitions(clock)) {
    if ((await definition.identify(new Evidence(httpTo(url)))) !== null) found.push(definition.kind);
  }
  return found;
}

const ENGINES: readonly (readonly [string, () => StandIn, string])[] = [
  ['Ollama', () => new OllamaStandIn(), 'ollama'],
  ['Ollama that takes local names alone', () => new OllamaStandIn({ hosts: ['localhost'] }), 'ollama'],
  ['llama.cpp with its copies of the routes of Ollama', () => new PacedEngine(), 'llama.cpp'],
  ['TGI', () => new TgiStandIn(), 'tgi'],
  ['TGI of before it named itself', () => new TgiStandIn({ namesItself: false }), 'tgi'],
  ['TEI', () => new TeiStandIn(), 'tei'],
  ['TEI that ranks', () => new TeiStandIn({ task: 'rerank' }), 'tei'],
  ['vLLM', () => new VllmStandIn(), 'vllm'],
  ['vLLM whose metrics cannot be read', () => new VllmStandIn({ metrics: false }), 'vllm'],
  ['LM Studio', () => new LmstudioStandIn(), 'lmstudio'],
  ['LM Studio of before 0.4', () => new LmstudioStandIn({ older: true }), 'lmstudio'],
  ['a server that speaks OpenAI', () => new OpenaiStandIn(), 'openai'],
];

describe('each engine is taken for itself and for no other', () => {
  it.each(ENGINES)('%s', async (_, make, kind) => {
    const { url, requests } = await start(make());
    expect(await kindAt(url)).toBe(kind);
    expect(requests.every(({ method }) => method === 'GET')).toBe(true);
    // Anything with a list of models would do for the generic kind, which is why it is asked last.
    expect((await claims(url)).filter((claim) => claim !== 'openai')).toEqual(kind === 'openai' ? [] : [kind]);
  });
});

const SWAP = { server: 'llama.cpp' };
const VERSION = '{"version":"0.14.0"}';
const SGLANG = '# TYPE sglang:num_running_reqs gauge\nsglang:num_running_reqs 0\n';

describe('imitators and go-betweens are taken for no more than they are', () => {
  it.each<readonly [string, ConstructorParameters<typeof OpenaiStandIn>[0]]>([
    ['a fork that copies the owner of vLLM', { ownedBy: 'vllm' }],
    [
      'a fork with a version whose metrics are its own',
      { ownedBy: 'vllm', routes: { '/version': VERSION, '/metrics': SGLANG } },
    ],
    ['a server with a version and another owner', { routes: { '/version': VERSION } }],
    [
      'llama-swap, which passes the header of llama.cpp on',
      { ownedBy: 'llama-swap', answerHeaders: SWAP, routes: { '/health': 'OK', '/': '<html>' } },
    ],
    ['a proxy that greets like Ollama and has no version', { routes: { '/': 'Ollama is running' } }],
    [
      'a proxy with the version of Ollama and another greeting',
      { routes: { '/': 'Ollama is running!', '/api/version': VERSION } },
    ],
    ['a service with information of its own', { routes: { '/info': '{"version":"1","model_id":"x"}' } }],
    ['a list of models in the place of LM Studio’s', { routes: { '/api/v1/models': '{"models":[{"key":"x"}]}' } }],
  ])('%s', async (_, options) => {
    expect(await kindAt((await start(new OpenaiStandIn(options))).url)).toBe('openai');
  });

  it('a service without a list of models is nothing', async () => {
    const routes = { '/v1/models': '{"data":"none"}', '/': 'hello' };
    expect(await kindAt((await start(new OpenaiStandIn({ routes }))).url)).toBeNull();
  });
});

function fleetAt(...ports: number[]): EngineFleet {
  const marks = createProcessMarks();
  const definitions = engineDefinitions(clock);
  const fleet = new EngineFleet({
    clock,
    marks,
    definitions,
    named: [],
    builtIn: [],
    ports,
    onChange: () => undefined,
  });
  started.push(fleet);
  fleet.start();
  return fleet;
}

describe('what is found without having been named', () => {
  it('is what can be told for certain: a server that might pass texts on is not used unasked', async () => {
    const generic = await start(new OpenaiStandIn());
    const tei = await start(new TeiStandIn());
    const fleet = fleetAt(generic.port, tei.port);
    await fleet.detect();
    expect(fleet.reports().map(({ engine }) => engine)).toEqual([`127.0.0.1:${tei.port}`]);
    await expect.poll(() => fleet.reports()[0]).toMatchObject({ kind: 'tei', state: 'ready' });
  });

  it.skipIf(process.platform !== 'linux')('is no server that Ollama runs for itself', async () => {
    const folder = mkdtempSync(path.join(tmpdir(), 'switchyard-ollama-'));
    const [port, other] = [await freePort(), await freePort()];
    const entry = path.join(folder, 'child.mjs');
    const standIn = path.join(import.meta.dirname, '../../engines/stand-ins/paced.ts');
    writeFileSync(
      entry,
      `import { PacedEngine } from ${JSON.stringify(standIn)}; await new PacedEngine().start(Number(process.argv[2]));`,
    );
    // A shell under the name of Ollama: what counts is the name of the parent process.
    const shell = path.join(folder, 'ollama');
    copyFileSync('/bin/sh', shell);
    const script = `'${process.execPath}' '${entry}' "$0" & child=$!; trap 'kill $child' TERM; wait`;
    const parents = [execFile(shell, ['-c', script, String(port)]), execFile('/bin/sh', ['-c', script, String(other)])];
    started.push({
      stop: async () => {
        for (const parent of parents) parent.kill('SIGTERM');
        rmSync(folder, { recursive: true });
      },
    });
    await expect.poll(() => kindAt(`http://127.0.0.1:${port}`)).toBe('llama.cpp');
    await expect.poll(() => kindAt(`http://127.0.0.1:${other}`)).toBe('llama.cpp');
    const fleet = fleetAt(port, other);
    await fleet.detect();
    expect(fleet.reports().map(({ engine }) => engine)).toEqual([`127.0.0.1:${other}`]);
  });
});

describe('another engine at the same address', () => {
  it('is identified anew, and its models are its own', async () => {
    const first = await start(new TeiStandIn());
    const { port } = first;
    const fleet = fleetAt(port);
    await expect.poll(() => fleet.reports()[0]?.state).toBe('ready');
    await first.stop();
    const second = new VllmStandIn();
    started.push(second);
    await second.start(port);
    await expect.poll(() => fleet.reports()[0]).toMatchObject({ kind: 'vllm', state: 'ready' });
    expect(fleet.reports()[0]?.models.map(({ model }) => model)).toEqual(['org/model-on-vllm']);
  });

  it('is noticed behind a proxy too, where no connection was ever refused', async () => {
    const vllm = await start(new VllmStandIn({ task: 'chat' }));
    // It even has a version; only its metrics are not those of vLLM.
    const routes = { '/health': '', '/version': VERSION, '/metrics': SGLANG };
    const other = await start(new OpenaiStandIn({ routes }));
    const proxy = await startProxy(vllm.url);
    started.push(proxy);
    const { fleet, report } = await serve(proxy.url);
    started.push(fleet);
    expect(report().kind).toBe('vllm');
    proxy.retarget(other.url);
    await expect.poll(() => report()).toMatchObject({ kind: 'openai', state: 'ready' });
    expect(report().models.map(({ model }) => model)).toEqual(['some-model']);
  });
});

describe('what an engine says of itself', () => {
  it.each([
    ['TEI', () => new TeiStandIn()],
    ['TGI', () => new TgiStandIn()],
  ])('fits the wire, however much it is: %s', async (_, make) => {
    const engine = await start(Object.assign(make(), { version: '1.9.'.padEnd(600, '0') }));
    // Parsed as the control plane does, which ends the session with the whole machine where it does not fit.
    const served = await serve(engine.url);
    started.push(served.fleet);
    expect(served.report().version).toMatch(/^1\.9\.0+$/);
  });
});
