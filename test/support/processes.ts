import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

/** Real processes of the product for end-to-end tests: started as a user would, ended by pid. */
const root = path.join(path.dirname(fileURLToPath(import.meta.url)), '../..');
const READY_WITHIN_MS = 30_000;

export interface Running {
  readonly pid: number;
  readonly dataDir: string;
  /** Everything it wrote, bounded; for the message of a failing test and for canary searches. */
  output(): string;
  kill(signal: NodeJS.Signals): void;
  /** SIGTERM and wait; SIGKILL after 15 s. Idempotent. */
  stop(): Promise<void>;
  readonly gone: Promise<void>;
}

export interface ControlPlane extends Running {
  readonly endpoint: string;
  readonly consoleUrl: string;
  /** Empty on every start but the first in a data folder. */
  readonly adminToken: string;
  readonly apiKey: string;
  readonly startMs: number;
}

export interface Agent extends Running {
  readonly listen: string;
  readonly joinCode: string;
  readonly fingerprint: string;
}

const folders: string[] = [];
export function temporaryFolder(name: string): string {
  const folder = mkdtempSync(path.join(tmpdir(), `switchyard-${name}-`));
  folders.push(folder);
  return folder;
}
/** Call after everything has been stopped. */
export function removeTemporaryFolders(): void {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
}

interface Started {
  readonly child: ChildProcess;
  readonly line: Record<string, unknown>;
  readonly output: () => string;
  readonly gone: Promise<void>;
}

/** Runs an entry of the product from its source, or as it is delivered, and resolves with its first line of JSON. */
function start(
  entry: string,
  args: readonly string[],
  { env = {}, bundled = false }: { readonly env?: Record<string, string>; readonly bundled?: boolean },
): Promise<Started> {
  return new Promise((resolve, reject) => {
    const file = bundled ? `out/${entry.replace(/\.ts$/, '.js')}` : entry;
    const child = spawn(process.execPath, [path.join(root, file), ...args], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, ...env },
    });
    let output = '';
    const keep = (text: string) => {
      output = `${output}${text}\n`.slice(-200_000);
    };
    const gone = new Promise<void>((done) => child.once('close', () => done()));
    const timer = setTimeout(() => {
      child.kill('SIGKILL');
      reject(new Error(`${entry} was not ready in time:\n${output.slice(-3000)}`));
    }, READY_WITHIN_MS);
    gone.then(() => {
      clearTimeout(timer);
      reject(new Error(`${entry} ended before it was ready:\n${output.slice(-3000)}`));
    });
    createInterface({ input: child.stderr }).on('line', keep);
    createInterface({ input: child.stdout }).on('line', (text) => {
      keep(text);
      if (!text.startsWith('{')) return;
      clearTimeout(timer);
      resolve({ child, line: JSON.parse(text) as Record<string, unknown>, output: () => output, gone });
    });
  });
}

function running({ child, output, gone }: Started, dataDir: string): Running {
  return {
    pid: child.pid ?? 0,
    dataDir,
    output,
    gone,
    kill: (signal) => void child.kill(signal),
    stop: async () => {
      child.kill('SIGTERM');
      const timer = setTimeout(() => child.kill('SIGKILL'), 15_000);
      await gone;
      clearTimeout(timer);
    },
  };
}

const text = (line: Record<string, unknown>, name: string) => (typeof line[name] === 'string' ? line[name] : '');

export interface ControlPlaneStart {
  readonly dataDir?: string;
  readonly args?: readonly string[];
  readonly env?: Record<string, string>;
  /** From `out/`, as it is delivered; absent: from the sources. */
  readonly bundled?: boolean;
}

/** Headless, on a free port; without an embedded agent unless `args` is given. */
export async function startControlPlane(options: ControlPlaneStart = {}): Promise<ControlPlane> {
  const dataDir = options.dataDir ?? temporaryFolder('plane');
  const args = options.args ?? ['--no-embedded-agent', '--no-discovery'];
  const before = performance.now();
  const started = await start('main/headless.ts', ['--json', '--port', '0', '--data-dir', dataDir, ...args], options);
  const { line } = started;
  return {
    ...running(started, dataDir),
    startMs: performance.now() - before,
    endpoint: text(line, 'endpoint'),
    consoleUrl: text(line, 'consoleUrl'),
    adminToken: text(line, 'adminToken'),
    apiKey: text(line, 'apiKey'),
  };
}

export interface AgentStart {
  readonly engines?: readonly string[];
  /** Offers the built-in encoder beside engines too; an agent without engines always does. */
  readonly encoder?: boolean;
  readonly dataDir?: string;
  readonly name?: string;
  readonly args?: readonly string[];
  readonly env?: Record<string, string>;
  /** From `out/`, as it is delivered; absent: from the sources. */
  readonly bundled?: boolean;
}

/** An agent on a free loopback port that looks at the given engines only. */
export async function startAgent(options: AgentStart = {}): Promise<Agent> {
  const dataDir = options.dataDir ?? temporaryFolder('agent');
  const engines = (options.engines ?? []).flatMap((url) => ['--engine', url]);
  const started = await start(
    'agent/index.ts',
    [
      '--json',
      '--listen',
      '127.0.0.1:0',
      '--data-dir',
      dataDir,
      '--no-advertise',
      '--no-detect',
      ...(options.engines?.length && !options.encoder ? ['--no-encoder'] : []),
      ...(options.name ? ['--name', options.name] : []),
      ...engines,
      ...(options.args ?? []),
    ],
    options,
  );
  const { line } = started;
  return {
    ...running(started, dataDir),
    listen: text(line, 'listen'),
    joinCode: text(line, 'joinCode'),
    fingerprint: text(line, 'fingerprint'),
  };
}

/** The admin API of a control plane, as an operator's script would use it. */
export function admin(plane: Pick<ControlPlane, 'endpoint'>, token: string) {
  const call = async <Answer = Record<string, unknown>>(
    method: string,
    route: string,
    body?: unknown,
  ): Promise<Answer> => {
    const response = await fetch(`${plane.endpoint}/admin/${route}`, {
      method,
      headers: {
        authorization: `Bearer ${token}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const answer = (await response.json()) as Answer & { error?: { code: string; message: string } };
    if (!response.ok)
      throw Object.assign(new Error(answer.error?.message ?? String(response.status)), {
        code: answer.error?.code,
        status: response.status,
      });
    return answer;
  };
  return {
    get: <Answer>(route: string) => call<Answer>('GET', route),
    post: <Answer>(route: string, body: unknown = {}) => call<Answer>('POST', route, body),
    patch: <Answer>(route: string, body: unknown) => call<Answer>('PATCH', route, body),
    delete: <Answer>(route: string) => call<Answer>('DELETE', route),
  };
}
