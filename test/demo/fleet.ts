import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { StandIn, until } from '../support/cloud.ts';
import { type Agent, admin, type ControlPlane, startAgent, startControlPlane } from '../support/processes.ts';
import { type Engines, startEngines } from './engines.ts';
import { CLIENT_MARK } from './engines-child.ts';
import type { Figures } from './figures.ts';
import { ClaimedCards } from './gpus.ts';
import { MACHINES, type MachineSpec, MODELS } from './machines.ts';

/** Not a key of anybody: the stand-in takes any. */
const DEMO_KEY = 'sk-or-v1-demo-0000000000000000000000000000';
const CARDS_FOLLOW_MS = 1_000;
const PROJECTS = ['editor', 'indexer', 'sandbox'] as const;
export type Project = (typeof PROJECTS)[number];

interface VerdictRow {
  readonly title: string;
  readonly nodeName: string;
  readonly upstream: string | null;
  readonly verdict: string;
  readonly minCosine: number | null;
}

export interface Machine {
  readonly spec: MachineSpec;
  readonly engines: Engines;
  agent: Agent;
  readonly cards: ClaimedCards;
}

/** Every process of the rehearsal, set up as an operator would have done it. `stop` ends them all and removes what they wrote. */
export class DemoFleet {
  readonly folder = mkdtempSync(path.join(tmpdir(), 'switchyard-demo-'));
  readonly machines: Machine[] = [];
  readonly keys = new Map<Project, string>();
  readonly #planeArgs: readonly string[];
  #standIn: StandIn | null = null;
  #plane: ControlPlane | null = null;
  #cardTimer: NodeJS.Timeout | null = null;
  #stopped: Promise<void> | null = null;

  constructor(options: { readonly planeArgs?: readonly string[] } = {}) {
    this.#planeArgs = options.planeArgs ?? ['--no-embedded-agent', '--no-discovery'];
  }

  get plane(): ControlPlane {
    if (!this.#plane) throw new Error('the control plane has not started');
    return this.#plane;
  }

  get standIn(): StandIn {
    if (!this.#standIn) throw new Error('the stand-in has not started');
    return this.#standIn;
  }

  get operator(): ReturnType<typeof admin> {
    return admin(this.plane, this.plane.adminToken);
  }

  machine(name: string): Machine {
    const found = this.machines.find(({ spec }) => spec.name === name);
    if (!found) throw new Error(`no machine ${name}`);
    return found;
  }

  /** @param say called with a sentence for each step */
  async start(say: (sentence: string) => void = () => undefined): Promise<void> {
    say('Starting the stand-in of OpenRouter, a control plane and three machines…');
    this.#standIn = await StandIn.start({
      latencyMs: 450,
      tokenMs: 70,
      // Credit for 16 permits; the concurrency that the account really bears is less, and nobody says how much.
      account: { creditUsd: 41.5, limitUsd: 100, concurrency: 7 },
    });
    this.#plane = await startControlPlane({
      bundled: true,
      dataDir: path.join(this.folder, 'plane'),
      args: this.#planeArgs,
    });
    for (const spec of MACHINES) this.machines.push(await this.#startMachine(spec));
    this.#cardTimer = setInterval(() => void this.#showCards(), CARDS_FOLLOW_MS);
    say('Pairing, founding spaces, sending the key…');
    for (const { agent } of this.machines) await this.pair(agent);
    await this.#nameModels();
    await this.#foundSpaces();
    await this.#setRoles();
    await this.pushKey();
    await this.#makeKeys();
    say('Waiting until the gate has looked at every encoder…');
    await until(() => this.#isLookedAt(), 120_000);
  }

  async pair(agent: Agent): Promise<void> {
    await this.operator.post('nodes', { address: agent.listen, joinCode: agent.joinCode });
  }

  async #startMachine(spec: MachineSpec): Promise<Machine> {
    const engines = await startEngines(spec.engines);
    const cards = new ClaimedCards(path.join(this.folder, 'cards', spec.name), spec.cards);
    const agent = await this.startAgent(spec.name, engines.urls, cards);
    return { spec, engines, agent, cards };
  }

  startAgent(name: string, engines: readonly string[], cards: ClaimedCards, listen = '127.0.0.1:0'): Promise<Agent> {
    return startAgent({
      bundled: true,
      name,
      engines,
      dataDir: path.join(this.folder, 'agents', name),
      args: ['--openrouter-url', this.standIn.url, ...(listen === '127.0.0.1:0' ? [] : ['--listen', listen])],
      env: { PATH: `${cards.folder}${path.delimiter}${process.env.PATH ?? ''}` },
    });
  }

  /** At once, as when the power goes. */
  async kill(name: string): Promise<void> {
    const { agent } = this.machine(name);
    agent.kill('SIGKILL');
    await agent.gone;
  }

  /** The same machine again. Its agent has forgotten the key, so the key is sent once more. */
  async revive(name: string): Promise<void> {
    const machine = this.machine(name);
    machine.agent = await this.startAgent(name, machine.engines.urls, machine.cards, machine.agent.listen);
    await until(async () => {
      const { holders } = await this.operator.get<{ holders: { nodeName: string; state: string }[] }>('cloud');
      return holders.some(({ nodeName, state }) => nodeName === name && state === 'key-missing');
    });
    await this.pushKey();
  }

  async #showCards(): Promise<void> {
    for (const { engines, cards } of this.machines) {
      const state = await engines.state();
      if (state && !this.#stopped) cards.show(state.busy);
    }
  }

  /** Named, so that no role looks at an encoder that was never meant for it. */
  async #nameModels(): Promise<void> {
    const name = (role: string, ...localModels: string[]) => this.operator.patch(`roles/${role}`, { localModels });
    await name('embedding', MODELS.encoder);
    await name('code-embedding', MODELS.codeEncoder);
    await name('code-assistant', MODELS.chat, MODELS.small);
    await name('rlm', MODELS.small, MODELS.chat);
  }

  /** The workstation's encoders are the reference of both spaces. */
  async #foundSpaces(): Promise<void> {
    const models = { embedding: MODELS.encoder, 'code-embedding': MODELS.codeEncoder } as const;
    for (const [role, model] of Object.entries(models)) {
      let founder = '';
      await until(async () => {
        const { founders } = await this.operator.get<{
          founders: { providerId: string; title: string; model: string; ready: boolean }[];
        }>(`spaces/candidates?role=${role}`);
        const fits = founders.find(
          (one) => one.ready && one.title.includes('workstation') && one.model.includes(model),
        );
        founder = fits?.providerId ?? '';
        return founder !== '';
      });
      await this.operator.post('spaces', { role, founder, confirm: true });
    }
  }

  async #setRoles(): Promise<void> {
    const set = (role: string, patch: unknown) => this.operator.patch(`roles/${role}`, patch);
    await set('embedding', {
      cloud: { model: 'qwen/qwen3-embedding-8b', upstreams: ['deepinfra/turbo', 'nebius'] },
      spendCaps: { dayUsd: 2 },
    });
    await set('code-assistant', {
      policy: 'backup',
      maxLocalWaitMs: 2000,
      cloud: { model: 'poolside/laguna-s-2.1' },
      spendCaps: { dayUsd: 5, monthUsd: 60 },
    });
    await set('rlm', { policy: 'aggregate', cloud: { model: 'deepseek/deepseek-v4-flash' }, spendCaps: { dayUsd: 3 } });
  }

  /** @throws when the control plane does not take it */
  async pushKey(): Promise<void> {
    const response = await fetch(`${this.plane.endpoint}/admin/cloud/key`, {
      method: 'PUT',
      headers: { authorization: `Bearer ${this.plane.adminToken}`, 'content-type': 'application/octet-stream' },
      body: Buffer.from(DEMO_KEY),
    });
    if (!response.ok) throw new Error(`the key was not taken: ${response.status}`);
    await until(async () => {
      const { discoveredAtMs } = await this.operator.get<{ discoveredAtMs: number | null }>('budget');
      return discoveredAtMs !== null;
    });
  }

  async #makeKeys(): Promise<void> {
    for (const project of PROJECTS) {
      const { secret } = await this.operator.post<{ secret: string }>('keys', {
        name: `${project} of the demo`,
        project,
        maxClass: project === 'indexer' ? 'batch' : 'interactive',
        requestsPerMinute: project === 'sandbox' ? 600 : null,
      });
      this.keys.set(project, secret);
    }
  }

  async #isLookedAt(): Promise<boolean> {
    const { verdicts } = await this.operator.get<{ verdicts: { verdict: string; running: boolean }[] }>('gate');
    const passing = verdicts.filter(({ verdict }) => verdict === 'pass').length;
    return passing >= 3 && verdicts.every(({ verdict, running }) => verdict !== 'unverified' && !running);
  }

  /** What the rehearsal's own books say, beside what its clients saw. */
  async books(): Promise<Pick<Figures, 'account' | 'gate'>> {
    const [{ ledger, mostRunning }, budget, { verdicts }, roles] = await Promise.all([
      this.standIn.books(),
      this.operator.get<{ cuts: unknown[] }>('budget'),
      this.operator.get<{ verdicts: VerdictRow[] }>('gate'),
      this.operator.get<{ roles: { spentDayUsd: number | null }[] }>('roles'),
    ]);
    const refused = verdicts.filter(({ verdict }) => verdict === 'vector-incompatible');
    const refusedMachines = this.machines.filter(({ spec }) =>
      refused.some(({ nodeName, upstream }) => upstream === null && nodeName === spec.name),
    );
    const states = await Promise.all(refusedMachines.map(({ engines }) => engines.state()));
    const upstreams = new Set(refused.map(({ upstream }) => upstream?.toLowerCase()));
    const cloudTexts = ledger
      .filter(({ route, upstream }) => route === 'embeddings' && upstreams.has(upstream?.toLowerCase()))
      .reduce(
        (sum, { body }) => sum + [body.input].flat().filter((text) => String(text).includes(CLIENT_MARK)).length,
        0,
      );
    return {
      account: {
        calls: ledger.length,
        tooMany: ledger.filter(({ status }) => status === 429).length,
        mostAtOnce: mostRunning,
        cuts: budget.cuts.length,
        spentUsd: roles.roles.reduce((sum, { spentDayUsd }) => sum + (spentDayUsd ?? 0), 0),
      },
      gate: {
        refused: refused.map(({ title, minCosine }) => ({ name: title, minCosine })),
        textsToRefused: states.reduce((sum, state) => sum + (state?.texts ?? 0), 0) + cloudTexts,
      },
    };
  }

  stop(): Promise<void> {
    this.#stopped ??= this.#stop();
    return this.#stopped;
  }

  async #stop(): Promise<void> {
    if (this.#cardTimer) clearInterval(this.#cardTimer);
    for (const { engines } of this.machines) engines.thaw();
    await this.#plane?.stop();
    for (const { agent } of this.machines) agent.kill('SIGCONT');
    await Promise.all(this.machines.map(({ agent }) => agent.stop()));
    await Promise.all(this.machines.map(({ engines }) => engines.stop()));
    await this.#standIn?.stop();
    rmSync(this.folder, { recursive: true, force: true });
  }
}
