import { vi } from 'vitest';
import { type Agent, admin, type ControlPlane, startAgent, startControlPlane } from '../support/processes.ts';

/** Pairing and waiting, as every test of failing machines needs them. */
export interface ProviderRow {
  readonly id: string;
  readonly role: string;
  readonly state: string;
  readonly nodeName: string;
  readonly running: number;
  readonly reasons: readonly string[];
}
export interface NodeRow {
  readonly id: string;
  readonly name: string;
  readonly state: string;
}

export class Yard {
  readonly plane: ControlPlane;
  readonly operator: ReturnType<typeof admin>;
  readonly agents: Agent[] = [];

  constructor(plane: ControlPlane) {
    this.plane = plane;
    this.operator = admin(plane, plane.adminToken);
  }

  static async start(): Promise<Yard> {
    return new Yard(await startControlPlane());
  }

  /** An agent in front of these engines, paired; `address`: where the control plane dials it, if not where it listens. */
  async add(name: string, engines: readonly string[]): Promise<Agent> {
    const agent = await startAgent({ name, engines });
    this.agents.push(agent);
    await this.pair(agent);
    return agent;
  }

  async pair(agent: Agent, address: string = agent.listen): Promise<void> {
    await this.operator.post('nodes', { address, joinCode: agent.joinCode });
  }

  async providers(role: string): Promise<readonly ProviderRow[]> {
    return (await this.operator.get<{ providers: ProviderRow[] }>(`providers?role=${role}`)).providers;
  }

  async nodes(): Promise<readonly NodeRow[]> {
    return (await this.operator.get<{ nodes: NodeRow[] }>('nodes')).nodes;
  }

  async node(name: string): Promise<NodeRow> {
    const found = (await this.nodes()).find((node) => node.name === name);
    if (!found) throw new Error(`no node ${name}`);
    return found;
  }

  async ready(role: string, count: number, timeoutMs = 60_000): Promise<void> {
    await vi.waitUntil(
      async () => (await this.providers(role)).filter(({ state }) => state === 'ready').length === count,
      { timeout: timeoutMs, interval: 100 },
    );
  }

  post(path: string, body: unknown, headers: Record<string, string> = {}): Promise<Response> {
    return fetch(`${this.plane.endpoint}${path}`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${this.plane.apiKey}`,
        'content-type': 'application/json',
        ...headers,
      },
      body: JSON.stringify(body),
    });
  }

  async stop(): Promise<void> {
    await this.plane.stop();
    for (const agent of this.agents) {
      agent.kill('SIGCONT');
      await agent.stop();
    }
  }
}
