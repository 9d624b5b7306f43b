import { type ChildProcess, spawn } from 'node:child_process';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { AccountSettings, Fault, LedgerEntry, StandInModel } from '../engines/openrouter.ts';
import { type Agent, type AgentStart, admin, type ControlPlane, startAgent, startControlPlane } from './processes.ts';

const root = path.join(path.dirname(fileURLToPath(import.meta.url)), '../..');

/** Orders that a stand-in takes while it runs. */
export interface StandInOrders {
  readonly latencyMs?: number;
  readonly tokenMs?: number;
  readonly account?: Partial<AccountSettings>;
  readonly fail?: Fault;
  readonly heal?: true;
  readonly down?: Readonly<Record<string, boolean>>;
  readonly drift?: Readonly<Record<string, number | null>>;
  readonly claimUpstream?: string | null;
  readonly echoKey?: boolean;
  readonly keys?: readonly string[];
  readonly models?: readonly StandInModel[];
  readonly forget?: true;
}

export interface Books {
  readonly ledger: readonly LedgerEntry[];
  readonly running: number;
  readonly mostRunning: number;
  readonly requests: number;
  readonly connections: number;
}

/** OpenRouter's stand-in as a process of its own; its books are the judge of what was really called. */
export class StandIn {
  readonly url: string;
  readonly #child: ChildProcess;
  readonly #gone: Promise<void>;

  private constructor(url: string, child: ChildProcess, gone: Promise<void>) {
    this.url = url;
    this.#child = child;
    this.#gone = gone;
  }

  static async start(orders: StandInOrders = {}): Promise<StandIn> {
    const child = spawn(process.execPath, [path.join(root, 'test/engines/openrouter-process.ts')], {
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    const gone = new Promise<void>((done) => child.once('close', () => done()));
    const url = await new Promise<string>((resolve, reject) => {
      createInterface({ input: child.stdout }).once('line', (line) => resolve(String(JSON.parse(line).url)));
      void gone.then(() => reject(new Error('the stand-in ended')));
    });
    const standIn = new StandIn(url, child, gone);
    await standIn.order(orders);
    return standIn;
  }

  async order(orders: StandInOrders): Promise<void> {
    await fetch(new URL('/__control', this.url), { method: 'POST', body: JSON.stringify(orders) });
  }

  async books(): Promise<Books> {
    return (await (await fetch(new URL('/__ledger', this.url))).json()) as Books;
  }

  async calls(): Promise<readonly LedgerEntry[]> {
    return (await this.books()).ledger;
  }

  async stop(): Promise<void> {
    this.#child.kill('SIGTERM');
    await this.#gone;
  }
}

export interface BudgetFacts {
  readonly ceiling: number;
  readonly effective: number;
  readonly usable: number;
  readonly inFlight: number;
  readonly waiting: number;
  readonly state: string;
  readonly source: string;
  readonly override: number | null;
  readonly creditUsd: number | null;
  readonly latencyMs: number | null;
  readonly plateau: number | null;
  readonly sentence: { readonly sentence: string };
  readonly cuts: readonly {
    readonly atMs: number;
    readonly from: number;
    readonly to: number;
  }[];
  readonly cooldowns: readonly { readonly fromMs: number; readonly toMs: number }[];
  readonly steps: readonly { readonly atMs: number; readonly from: number; readonly to: number }[];
  readonly coolingUntilMs: number | null;
  readonly discoveredAtMs: number | null;
  readonly freeTierClosedUntilMs: number | null;
  readonly shares: readonly {
    readonly project: string;
    readonly held: number;
    readonly waiting: number;
    readonly share: number;
  }[];
}

export interface CloudFacts {
  readonly state: string;
  readonly holders: readonly {
    readonly nodeId: string;
    readonly nodeName: string;
    readonly state: string;
    readonly remembered: boolean;
  }[];
  readonly lastPush: { readonly number: number } | null;
}

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly json: Record<string, unknown> & { readonly error?: { readonly code: string; readonly message: string } };
}

export interface HouseStart {
  /** Agents with their engines; each gets the stand-in's address. Absent: one without engines. */
  readonly agents?: readonly AgentStart[];
  readonly standIn?: StandInOrders;
  /** Role id -> patch, applied before the key is pushed. */
  readonly roles?: Readonly<Record<string, unknown>>;
  /** Null: none is pushed. */
  readonly key?: string | null;
  readonly planeEnv?: Record<string, string>;
}

export const TEST_KEY = 'sk-or-v1-test-key-of-the-house-0123456789abcdef';

/** Control plane, agents and OpenRouter's stand-in, each a process of its own, with a key pushed. */
export class CloudHouse {
  readonly standIn: StandIn;
  readonly plane: ControlPlane;
  readonly agents: Agent[];
  readonly operator: ReturnType<typeof admin>;

  private constructor(standIn: StandIn, plane: ControlPlane, agents: Agent[]) {
    this.standIn = standIn;
    this.plane = plane;
    this.agents = agents;
    this.operator = admin(plane, plane.adminToken);
  }

  static async start(options: HouseStart = {}): Promise<CloudHouse> {
    const standIn = await StandIn.start(options.standIn);
    const [plane, ...agents] = await Promise.all([
      startControlPlane({ env: options.planeEnv ?? {} }),
      ...(options.agents ?? [{}]).map((agent) => CloudHouse.#agent(standIn, agent)),
    ]);
    const house = new CloudHouse(standIn, plane, agents);
    for (const agent of agents) {
      await house.operator.post('nodes', { address: agent.listen, joinCode: agent.joinCode });
    }
    await until(async () => (await house.cloud()).holders.length === agents.length);
    for (const [role, patch] of Object.entries(options.roles ?? {})) await house.role(role, patch);
    const key = options.key === undefined ? TEST_KEY : options.key;
    if (key !== null) {
      await house.push(key);
      await house.holding(agents.length);
    }
    return house;
  }

  static #agent(standIn: StandIn, start: AgentStart): Promise<Agent> {
    return startAgent({ ...start, args: ['--openrouter-url', standIn.url, '--no-encoder', ...(start.args ?? [])] });
  }

  /** The same agent again: its folder, its address, a new process. */
  async restart(at: number, how: 'stop' | 'kill' = 'stop', env: Record<string, string> = {}): Promise<void> {
    const agent = this.agents[at];
    if (!agent) throw new Error('no such agent');
    if (how === 'kill') agent.kill('SIGKILL');
    await agent.stop();
    const again = await startAgent({
      dataDir: agent.dataDir,
      args: ['--openrouter-url', this.standIn.url, '--no-encoder', '--listen', agent.listen],
      env,
    });
    this.agents[at] = again;
  }

  async role(role: string, patch: unknown): Promise<void> {
    await this.operator.patch(`roles/${role}`, patch);
  }

  /** As bytes, over HTTP. @throws the answer's error code */
  async push(key: string, query = ''): Promise<Answer> {
    const response = await fetch(`${this.plane.endpoint}/admin/cloud/key${query}`, {
      method: 'PUT',
      headers: { authorization: `Bearer ${this.plane.adminToken}`, 'content-type': 'application/octet-stream' },
      body: Buffer.from(key),
    });
    return await answerOf(response);
  }

  cloud(): Promise<CloudFacts> {
    return this.operator.get<CloudFacts>('cloud');
  }

  budget(): Promise<BudgetFacts> {
    return this.operator.get<BudgetFacts>('budget');
  }

  /** Waits until so many agents hold the key and the account has been read. */
  async holding(count: number): Promise<void> {
    await until(async () => {
      const { holders } = await this.cloud();
      return holders.filter(({ state }) => state === 'accepted').length === count;
    });
    await until(async () => (await this.budget()).discoveredAtMs !== null);
  }

  async ready(role: string, kind: 'local' | 'cloud', count = 1): Promise<void> {
    await until(async () => {
      const { roles } = await this.operator.get<{ roles: { id: string; localReady: number; cloudReady: number }[] }>(
        'roles',
      );
      const found = roles.find(({ id }) => id === role);
      return ((kind === 'local' ? found?.localReady : found?.cloudReady) ?? 0) >= count;
    });
  }

  async post(route: string, body: unknown, headers: Readonly<Record<string, string>> = {}): Promise<Answer> {
    const response = await fetch(`${this.plane.endpoint}${route}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${this.plane.apiKey}`, 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
    });
    return await answerOf(response);
  }

  chat(model: string, body: Record<string, unknown> = {}, headers: Record<string, string> = {}): Promise<Answer> {
    const messages = [{ role: 'user', content: 'say something' }];
    return this.post('/v1/chat/completions', { model, messages, max_tokens: 20, ...body }, headers);
  }

  embed(
    input: string | readonly string[],
    body: Record<string, unknown> = {},
    headers: Record<string, string> = {},
  ): Promise<Answer> {
    return this.post('/v1/embeddings', { model: 'embedding', input, encoding_format: 'float', ...body }, headers);
  }

  rerank(body: Record<string, unknown> = {}, headers: Record<string, string> = {}): Promise<Answer> {
    const documents = ['a cat on a mat', 'the price of oil', 'cats and dogs'];
    return this.post('/v1/rerank', { model: 'reranker', query: 'cat on mat', documents, ...body }, headers);
  }

  async stop(): Promise<void> {
    await this.plane.stop();
    await Promise.all(this.agents.map((agent) => agent.stop()));
    await this.standIn.stop();
  }
}

/** Looks every 50 ms. @throws after `timeoutMs`: another end-to-end test may keep the machine busy. */
export async function until(condition: () => boolean | Promise<boolean>, timeoutMs = 60_000): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error('what was waited for has not come');
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

async function answerOf(response: Response): Promise<Answer> {
  const text = await response.text();
  let json: Answer['json'] = {};
  try {
    json = JSON.parse(text) as Answer['json'];
  } catch {
    // a stream
  }
  return { status: response.status, headers: response.headers, text, json };
}
