import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { request } from 'node:http';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { temporaryFolder } from '../support/processes.ts';
import { describeWithRuntime } from '../support/runtime.ts';

const root = path.join(path.dirname(fileURLToPath(import.meta.url)), '../..');
const READY_WITHIN_MS = 45_000;

const run = (...args: readonly string[]) => execFileSync('ip', [...args], { stdio: ['ignore', 'pipe', 'pipe'] });

/** Why there can be no networks of our own here; null: there can. */
function missing(): string | null {
  if (process.platform !== 'linux') return 'network namespaces are of Linux';
  if (process.getuid?.() !== 0) return 'network namespaces need root';
  const name = `swy-${process.pid}-try`;
  try {
    run('netns', 'add', name);
    run('-n', name, 'link', 'add', 'name', 'v0', 'type', 'veth', 'peer', 'name', 'v1');
    return null;
  } catch {
    return 'network namespaces or veth cannot be made (iproute2 missing, or the kernel refuses)';
  } finally {
    removeNamespace(name);
  }
}

function removeNamespace(name: string): void {
  try {
    run('netns', 'del', name);
  } catch {
    // was never made
  }
}

/** A suite that needs networks of its own: skipped with its reason, and failed under SWITCHYARD_NO_SKIP=1. */
export function describeWithNetworks(name: string, body: () => void): void {
  describeWithRuntime(missing(), name, body);
}

interface Proc {
  readonly child: ChildProcess;
  readonly line: Readonly<Record<string, unknown>>;
  readonly gone: Promise<void>;
  readonly output: () => string;
}

export interface FoundView {
  readonly id: string;
  readonly name: string;
  readonly address: string;
  readonly paired: boolean;
}
export interface NodeViewLike {
  readonly id: string;
  readonly state: string;
  readonly address: string;
}

/** Machines and cables. Everything made here is removed by name in `remove`. */
export class Lab {
  readonly #prefix = `swy-${process.pid}-${Math.floor(performance.now())}`;
  readonly #namespaces: string[] = [];
  readonly #running: Proc[] = [];
  #cables = 0;

  machine(name: string): Machine {
    const namespace = `${this.#prefix}-${name}`;
    run('netns', 'add', namespace);
    this.#namespaces.push(namespace);
    run('-n', namespace, 'link', 'set', 'lo', 'up');
    return new Machine(namespace, this.#running);
  }

  /** A switch that connects machines, each by an interface with an address. */
  switch(name: string): Switch {
    const machine = this.machine(name);
    run('-n', machine.namespace, 'link', 'add', 'br0', 'type', 'bridge', 'mcast_snooping', '0');
    run('-n', machine.namespace, 'link', 'set', 'br0', 'up');
    return {
      machine,
      connect: (to, dev, ...cidrs) => {
        const port = `p${++this.#cables}`;
        to.plug(machine, port, dev, cidrs);
        run('-n', machine.namespace, 'link', 'set', port, 'master', 'br0', 'up');
        return port;
      },
    };
  }

  async remove(): Promise<void> {
    for (const { child } of this.#running) child.kill('SIGKILL');
    await Promise.all(this.#running.map(({ gone }) => gone));
    for (const namespace of this.#namespaces) removeNamespace(namespace);
  }
}

export interface Switch {
  readonly machine: Machine;
  /** @returns the switch's own port */
  connect(to: Machine, dev: string, ...cidrs: readonly string[]): string;
}

export class Machine {
  readonly namespace: string;
  readonly #running: Proc[];

  constructor(namespace: string, running: Proc[]) {
    this.namespace = namespace;
    this.#running = running;
  }

  /** `ip` in this machine. */
  ip(...args: readonly string[]): void {
    run('-n', this.namespace, ...args);
  }

  exec(program: string, ...args: readonly string[]): string {
    return run('netns', 'exec', this.namespace, program, ...args).toString();
  }

  plug(other: Machine, port: string, dev: string, cidrs: readonly string[]): void {
    run('link', 'add', port, 'netns', other.namespace, 'type', 'veth', 'peer', 'name', dev, 'netns', this.namespace);
    for (const cidr of cidrs) {
      if (cidr.includes(':')) this.ip('addr', 'add', cidr, 'dev', dev, 'nodad');
      else this.ip('addr', 'add', cidr, 'brd', '+', 'dev', dev);
    }
    this.ip('link', 'set', dev, 'up');
    other.ip('link', 'set', port, 'up');
  }

  async agent(name: string, args: readonly string[] = [], dataDir = temporaryFolder('agent')): Promise<AgentProcess> {
    const started = await this.#start([
      'agent/index.ts',
      '--json',
      '--no-detect',
      '--name',
      name,
      '--data-dir',
      dataDir,
      ...args,
    ]);
    return { ...handle(started), dataDir, joinCode: String(started.line.joinCode) };
  }

  async plane(
    dataDir = temporaryFolder('plane'),
    adminToken = '',
    args: readonly string[] = [],
  ): Promise<PlaneProcess> {
    const started = await this.#start([
      'main/headless.ts',
      ...['--json', '--port', '0', '--no-embedded-agent', '--data-dir', dataDir],
      ...args,
    ]);
    const port = new URL(String(started.line.endpoint)).port;
    const socket = path.join(temporaryFolder('relay'), 's');
    await this.#start(['test/discovery/relay.ts', port, socket]);
    const token = adminToken || String(started.line.adminToken);
    const call = <Answer>(method: string, route: string, body?: unknown) =>
      ask<Answer>({ socket, port, token }, method, `/admin/${route}`, body);
    const access = { socket, port, token: String(started.line.apiKey) };
    return {
      ...handle(started),
      dataDir,
      adminToken: token,
      call,
      chat: (question) =>
        ask(access, 'POST', '/v1/chat/completions', {
          model: 'code-assistant',
          messages: [{ role: 'user', content: question }],
          max_tokens: 4,
        }),
      found: async () => (await call<{ found: FoundView[] }>('GET', 'discovery')).found,
      nodes: async () => (await call<{ nodes: NodeViewLike[] }>('GET', 'nodes')).nodes,
    };
  }

  /** An engine of this machine that chats. @returns its address */
  async engine(port: number): Promise<string> {
    return String((await this.#start(['test/discovery/chat-engine.ts', String(port)])).line.url);
  }

  /** A program that holds a UDP port for itself alone. */
  async hold(port: number): Promise<void> {
    const script = `require('node:dgram').createSocket('udp4').bind(${port}, () => console.log('{}'))`;
    await this.#start(['-e', script]);
  }

  async #start(args: readonly string[]): Promise<Proc> {
    // `ip netns exec` becomes the program, so its pid is the program's own.
    const child = spawn('ip', ['netns', 'exec', this.namespace, process.execPath, ...args], {
      cwd: root,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let output = '';
    const gone = new Promise<void>((resolve) => child.once('close', () => resolve()));
    createInterface({ input: child.stderr }).on('line', (text) => {
      output = `${output}${text}\n`.slice(-20_000);
    });
    const line = await new Promise<Record<string, unknown>>((resolve, reject) => {
      const fail = (what: string) => reject(new Error(`${args[0]} ${what}:\n${output}`));
      const timer = setTimeout(() => {
        child.kill('SIGKILL');
        fail('was not ready in time');
      }, READY_WITHIN_MS);
      gone.then(() => {
        clearTimeout(timer);
        fail('ended before it was ready');
      });
      createInterface({ input: child.stdout }).on('line', (text) => {
        output = `${output}${text}\n`.slice(-20_000);
        if (!text.startsWith('{')) return;
        clearTimeout(timer);
        resolve(JSON.parse(text) as Record<string, unknown>);
      });
    });
    const started = { child, line, gone, output: () => output };
    this.#running.push(started);
    return started;
  }
}

export interface Handle {
  kill(signal: NodeJS.Signals): Promise<void>;
  alive(): boolean;
  output(): string;
  readonly dataDir: string;
}
export interface AgentProcess extends Handle {
  readonly joinCode: string;
}
export interface PlaneProcess extends Handle {
  readonly adminToken: string;
  call<Answer>(method: string, route: string, body?: unknown): Promise<Answer>;
  /** Resolves with an answer of status 200; there is a key only at the first start in a folder. */
  chat(question: string): Promise<object>;
  found(): Promise<readonly FoundView[]>;
  nodes(): Promise<readonly NodeViewLike[]>;
}

function handle({ child, gone, output }: Proc) {
  return {
    kill: async (signal: NodeJS.Signals) => {
      child.kill(signal);
      await gone;
    },
    alive: () => child.exitCode === null && child.signalCode === null,
    output,
  };
}

interface Access {
  readonly socket: string;
  readonly port: string;
  readonly token: string;
}

/** A request to a control plane in another network, by way of a relay inside it. */
function ask<Answer>({ socket, port, token }: Access, method: string, route: string, body?: unknown): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const headers = {
      host: `127.0.0.1:${port}`,
      authorization: `Bearer ${token}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    };
    const call = request({ socketPath: socket, method, path: route, headers }, (response) => {
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (part: string) => {
        text += part;
      });
      response.on('end', () => {
        if (response.statusCode === 200) resolve(JSON.parse(text) as Answer);
        else reject(new Error(`${method} ${route}: ${response.statusCode} ${text}`));
      });
    });
    call.on('error', reject);
    call.end(body === undefined ? undefined : JSON.stringify(body));
  });
}
