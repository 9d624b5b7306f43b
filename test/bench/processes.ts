import { type ChildProcess, fork, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

/** The processes that a row needs, each ended by its id. The product runs from its bundles, as it is delivered. */
const root = fileURLToPath(new URL('../..', import.meta.url));
const READY_WITHIN_MS = 60_000;

const children = new Set<ChildProcess>();
export const folder = mkdtempSync(path.join(tmpdir(), 'switchyard-bench-'));

/** Ends everything that was started, and removes what it wrote. */
export async function cleanUp(): Promise<void> {
  await Promise.all([...children].map(end));
  rmSync(folder, { recursive: true, force: true });
}

async function end(child: ChildProcess): Promise<void> {
  children.delete(child);
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = new Promise((resolve) => child.once('close', resolve));
  child.kill('SIGTERM');
  const timer = setTimeout(() => child.kill('SIGKILL'), 12_000);
  await gone;
  clearTimeout(timer);
}

export interface Stats {
  readonly stallMaxMs: number;
  readonly stallP99Ms: number;
  readonly cpuMs: number;
  readonly heapUsedBytes: number;
  readonly gc: Readonly<
    Record<'young' | 'whole', { readonly count: number; readonly ms: number; readonly maxMs: number }>
  >;
}

export interface Measured {
  readonly pid: number;
  /** Of the event loop since the last call. */
  stats(): Promise<Stats>;
  rssBytes(): number;
  kill(signal: NodeJS.Signals): void;
  stop(): Promise<void>;
}

interface Line {
  readonly [name: string]: unknown;
}

async function startProduct(
  entry: string,
  args: readonly string[],
  probed: boolean,
): Promise<{ readonly child: ChildProcess; readonly line: Line; readonly readyMs: number }> {
  const probe = fileURLToPath(new URL('stall-probe.mjs', import.meta.url));
  const beganMs = performance.now();
  const profile = process.env.SWITCHYARD_BENCH_PROFILE;
  const flags = process.env.SWITCHYARD_BENCH_FLAGS?.split(' ') ?? [];
  const child = spawn(
    process.execPath,
    [
      ...(probed ? ['--import', probe] : []),
      ...(profile ? ['--cpu-prof', `--cpu-prof-dir=${profile}`, '--enable-source-maps'] : []),
      ...flags,
      path.join(root, entry),
      ...args,
    ],
    {
      cwd: root,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, SWITCHYARD_BENCH_STATS: folder },
    },
  );
  children.add(child);
  let errors = '';
  child.stderr.on('data', (text: Buffer) => {
    errors = `${errors}${text}`.slice(-4000);
  });
  const line = await new Promise<Line>((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`${entry} was not ready in time: ${errors}`)), READY_WITHIN_MS);
    child.once('close', () => reject(new Error(`${entry} ended: ${errors}`)));
    createInterface({ input: child.stdout }).on('line', (text) => {
      if (!text.startsWith('{')) return;
      clearTimeout(timer);
      resolve(JSON.parse(text) as Line);
    });
  });
  return { child, line, readyMs: performance.now() - beganMs };
}

function measured(child: ChildProcess): Measured {
  const pid = child.pid ?? 0;
  const file = path.join(folder, `${pid}.json`);
  return {
    pid,
    async stats() {
      rmSync(file, { force: true });
      child.kill('SIGUSR2');
      const until = performance.now() + 10_000;
      while (!existsSync(file)) {
        if (performance.now() > until) throw new Error('a measured process does not answer');
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
      return JSON.parse(readFileSync(file, 'utf8')) as Stats;
    },
    rssBytes: () =>
      1024 * Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? Number.NaN),
    kill: (signal) => void child.kill(signal),
    stop: () => end(child),
  };
}

export interface Plane extends Measured {
  readonly endpoint: string;
  readonly adminToken: string;
  readonly apiKey: string;
  readonly dataDir: string;
  readonly readyMs: number;
}

export async function startPlane(
  options: { dataDir?: string; args?: readonly string[]; probed?: boolean } = {},
): Promise<Plane> {
  const dataDir = options.dataDir ?? mkdtempSync(path.join(folder, 'plane-'));
  const args = options.args ?? ['--no-embedded-agent', '--no-discovery'];
  const { child, line, readyMs } = await startProduct(
    'out/main/headless.js',
    ['--json', '--port', '0', '--data-dir', dataDir, ...args],
    options.probed ?? true,
  );
  const text = (name: string) => String(line[name] ?? '');
  return {
    ...measured(child),
    endpoint: text('endpoint'),
    adminToken: text('adminToken'),
    apiKey: text('apiKey'),
    dataDir,
    readyMs,
  };
}

export interface BenchAgent extends Measured {
  readonly listen: string;
  readonly joinCode: string;
}

export async function startAgent(engines: readonly string[], probed = true): Promise<BenchAgent> {
  const dataDir = mkdtempSync(path.join(folder, 'agent-'));
  const { child, line } = await startProduct(
    'out/agent/index.js',
    [
      '--json',
      '--listen',
      '127.0.0.1:0',
      '--data-dir',
      dataDir,
      '--no-advertise',
      '--no-detect',
      ...engines.flatMap((url) => ['--engine', url]),
    ],
    probed,
  );
  return { ...measured(child), listen: String(line.listen), joinCode: String(line.joinCode) };
}

export interface Stub {
  readonly url: string;
  readonly port: number;
  stop(): Promise<void>;
}

export async function startStub(task: 'chat' | 'embed'): Promise<Stub> {
  const child = fork(fileURLToPath(new URL('stub-engine.ts', import.meta.url)), [task], {
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  children.add(child);
  const { port } = await new Promise<{ port: number }>((resolve) =>
    child.once('message', (told) => resolve(told as { port: number })),
  );
  return { url: `http://127.0.0.1:${port}`, port, stop: () => end(child) };
}

async function call(plane: Plane, method: string, route: string, body?: unknown): Promise<Line> {
  const response = await fetch(`${plane.endpoint}/admin/${route}`, {
    method,
    headers: { authorization: `Bearer ${plane.adminToken}`, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  if (!response.ok) throw new Error(`${route}: ${response.status}`);
  return (await response.json()) as Line;
}

/** A further API key: each has at most 64 requests in flight. */
export async function newKey(plane: Plane, name: string): Promise<string> {
  return String((await call(plane, 'POST', 'keys', { name, project: 'bench' })).secret);
}

/** Pairs and waits until so many providers of a role are ready. */
export async function pair(plane: Plane, agent: BenchAgent): Promise<void> {
  await call(plane, 'POST', 'nodes', { address: agent.listen, joinCode: agent.joinCode });
}

export async function ready(plane: Plane, role: string, count: number): Promise<void> {
  const until = performance.now() + 120_000;
  for (;;) {
    const { providers } = (await call(plane, 'GET', `providers?role=${role}`)) as { providers: { state: string }[] };
    if (providers.filter(({ state }) => state === 'ready').length >= count) return;
    if (performance.now() > until) throw new Error(`${role} did not become ready: ${JSON.stringify(providers)}`);
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
}

export interface Nginx {
  readonly url: string;
  readonly version: string;
}

/** In front of an engine as one would put it there: kept connections to it, nothing written to disk. Null: not installed. */
export async function startNginx(engine: Stub): Promise<Nginx | null> {
  const version = await run('nginx', ['-v']);
  if (version === null) return null;
  const place = mkdtempSync(path.join(folder, 'nginx-'));
  const port = 20_000 + Math.floor(Math.random() * 20_000);
  const file = path.join(place, 'nginx.conf');
  writeFileSync(
    file,
    `daemon off; worker_processes 1; pid ${place}/pid; error_log ${place}/error.log crit;
events { worker_connections 4096; }
http {
  access_log off; client_max_body_size 64m; client_body_temp_path ${place}/body; proxy_temp_path ${place}/proxy;
  fastcgi_temp_path ${place}/f; uwsgi_temp_path ${place}/u; scgi_temp_path ${place}/s;
  keepalive_requests 1000000;
  upstream engine { server 127.0.0.1:${engine.port}; keepalive 1024; keepalive_requests 1000000; }
  server { listen 127.0.0.1:${port} backlog=4096; tcp_nodelay on;
    location / { proxy_pass http://engine; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_buffering off; } }
}
`,
  );
  const child = spawn('nginx', ['-p', place, '-c', file], { stdio: 'ignore' });
  children.add(child);
  const url = `http://127.0.0.1:${port}`;
  for (let tries = 0; tries < 100; tries += 1) {
    if (
      await fetch(`${url}/health`).then(
        (response) => response.ok,
        () => false,
      )
    )
      return { url, version: version.trim() };
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return null;
}

/** What a tool says (both streams); null when it is not installed. */
export function run(command: string, args: readonly string[]): Promise<string | null> {
  return new Promise((resolve) => {
    const child = spawn(command, [...args], { stdio: ['ignore', 'pipe', 'pipe'], cwd: root });
    let text = '';
    child.stdout.on('data', (chunk: Buffer) => {
      text += chunk;
    });
    child.stderr.on('data', (chunk: Buffer) => {
      text += chunk;
    });
    child.once('error', () => resolve(null));
    child.once('close', () => resolve(text));
  });
}

export { root };
