import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import path from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

const here = path.dirname(fileURLToPath(import.meta.url));
const folder = path.join(here, '../../.cache/llama');

export type LlamaTools =
  | { readonly available: true; readonly server: string; readonly quantize: string }
  | { readonly available: false; readonly reason: string };

/** For this long a failed fetch is not repeated, so that each suite does not wait for it again. */
const REMEMBER_FAILURE_MS = 10 * 60_000;

/** The real llama.cpp tools, fetched on first use. Never throws: a machine that cannot have them gets the reason. */
export async function llamaTools(): Promise<LlamaTools> {
  const tools = {
    available: true,
    server: path.join(folder, 'llama-server'),
    quantize: path.join(folder, 'llama-quantize'),
  } as const;
  if (existsSync(tools.server) && existsSync(tools.quantize)) return tools;
  const failure = path.join(folder, 'failed');
  if (existsSync(failure) && Date.now() - statSync(failure).mtimeMs < REMEMBER_FAILURE_MS) {
    return { available: false, reason: readFileSync(failure, 'utf8') };
  }
  mkdirSync(folder, { recursive: true });
  const { code, output } = await run(path.join(here, 'get-llama.sh'), [folder]);
  if (code === 0) {
    rmSync(failure, { force: true });
    return tools;
  }
  const reason = `no llama.cpp server on this machine: ${output.trim().split('\n').at(-1) ?? 'bash is missing'}`;
  writeFileSync(failure, reason);
  return { available: false, reason };
}

function run(script: string, args: readonly string[]): Promise<{ code: number | null; output: string }> {
  return new Promise((resolve) => {
    const child = spawn('bash', [script, ...args], { stdio: ['ignore', 'ignore', 'pipe'] });
    let output = '';
    child.stderr.on('data', (text: Buffer) => {
      output += text.toString();
    });
    child.once('error', (error) => resolve({ code: null, output: error.message }));
    child.once('close', (code) => resolve({ code, output }));
  });
}

export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (address === null || typeof address === 'string') throw new Error('no port');
  return address.port;
}

export interface LlamaOptions {
  /** Path of a GGUF file (see models.ts). */
  readonly model: string;
  /** Further arguments, e.g. `['--embeddings']`, `['--reranking']`, `['--metrics', '-np', '4']`, `['--pooling', 'cls']`. */
  readonly args?: readonly string[];
  /** Same port as a server that was stopped; else a free one. */
  readonly port?: number;
  /** Return as soon as it listens, while `/health` still says 503. */
  readonly whileLoading?: boolean;
}

export interface LlamaServer {
  readonly url: string;
  readonly port: number;
  readonly pid: number;
  /** What it has written so far (bounded), for the message of a failing test. */
  log(): string;
  /** SIGTERM, then SIGKILL after 3 s; resolves when it is gone. Idempotent. */
  stop(): Promise<void>;
  kill(signal: NodeJS.Signals): void;
}

const READY_WITHIN_MS = 30_000;

export async function startLlama(options: LlamaOptions): Promise<LlamaServer> {
  const tools = await llamaTools();
  if (!tools.available) throw new Error(tools.reason);
  const port = options.port ?? (await freePort());
  // One thread: two that wait for each other by spinning stand still when the test itself needs a core.
  const args = ['--offline', '-t', '1', '--host', '127.0.0.1', '--port', String(port), '-m', options.model];
  const child = spawn(tools.server, [...args, ...(options.args ?? [])], { stdio: ['ignore', 'pipe', 'pipe'] });
  let log = '';
  const keep = (text: Buffer) => {
    log = `${log}${text}`.slice(-20_000);
  };
  child.stdout.on('data', keep);
  child.stderr.on('data', keep);
  const gone = new Promise<void>((resolve) => child.once('close', () => resolve()));
  const server: LlamaServer = {
    url: `http://127.0.0.1:${port}`,
    port,
    pid: child.pid ?? 0,
    log: () => log,
    stop: () => stopChild(child, gone),
    kill: (signal) => void child.kill(signal),
  };
  const until = Date.now() + READY_WITHIN_MS;
  while (!(await answers(server.url, options.whileLoading === true))) {
    if (child.exitCode !== null || Date.now() > until) {
      await server.stop();
      throw new Error(`llama-server did not become ready:\n${log.slice(-2000)}`);
    }
    await wait(25);
  }
  return server;
}

async function answers(url: string, whileLoading: boolean): Promise<boolean> {
  try {
    const response = await fetch(`${url}/health`, { headers: { connection: 'close' } });
    await response.arrayBuffer();
    return response.ok || (whileLoading && response.status === 503);
  } catch {
    return false;
  }
}

async function stopChild(child: ChildProcess, gone: Promise<void>): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return;
  child.kill('SIGCONT'); // a test may have frozen it
  child.kill('SIGTERM');
  const killer = setTimeout(() => child.kill('SIGKILL'), 3000);
  await gone;
  clearTimeout(killer);
}
