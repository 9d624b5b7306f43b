import { fork } from 'node:child_process';
import { mkdtempSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { folder, run } from './processes.ts';

/** What the client is told to do, and what it measured. Times in ms. */
export interface Target {
  readonly url: string;
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
}

export interface Distribution {
  readonly count: number;
  readonly p50: number;
  readonly p99: number;
  readonly p999: number;
  readonly max: number;
}

export type LoadJob =
  | { readonly kind: 'closed'; readonly target: Target; readonly connections: number; readonly seconds: number }
  | {
      readonly kind: 'sequential';
      readonly targets: readonly Target[];
      readonly rounds: number;
      /** Rounds before those that count. */
      readonly warmUp: number;
    }
  | { readonly kind: 'open'; readonly target: Target; readonly perSecond: number; readonly seconds: number }
  | { readonly kind: 'streams'; readonly targets: readonly Target[]; readonly count: number }
  | { readonly kind: 'parse'; readonly text: string; readonly seconds: number };

export type LoadResult =
  | { readonly kind: 'closed'; readonly perSecond: number; readonly failed: number; readonly bytesPerAnswer: number }
  | {
      readonly kind: 'sequential';
      readonly firstByte: readonly Distribution[];
      readonly total: readonly Distribution[];
    }
  | {
      readonly kind: 'open';
      readonly latency: Distribution;
      readonly failed: number;
      /** What the first that failed came to. */
      readonly why: string | null;
    }
  | {
      readonly kind: 'streams';
      /** Lateness of chunks against the schedule, and against when the engine really wrote them. */
      readonly due: Distribution;
      readonly sent: Distribution;
      readonly ended: number;
      readonly broken: number;
    };

type ResultOf<Job extends LoadJob> = Extract<
  LoadResult,
  { kind: Job['kind'] extends 'parse' ? 'closed' : Job['kind'] }
>;

/** Runs one job in a fresh client process. */
export async function load<Job extends LoadJob>(job: Job): Promise<ResultOf<Job>> {
  const child = fork(fileURLToPath(new URL('load-child.ts', import.meta.url)), {
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    serialization: 'advanced',
  });
  try {
    return await new Promise((resolve, reject) => {
      child.once('message', (told: LoadResult | { kind: 'error'; sentence: string }) => {
        if (told.kind === 'error') reject(new Error(told.sentence));
        else resolve(told as ResultOf<Job>);
      });
      child.once('exit', () => reject(new Error('the client ended')));
      child.send(job);
    });
  } finally {
    child.removeAllListeners('exit');
    child.disconnect();
  }
}

/** Requests per second with wrk, which costs the machine least; with the own client where there is none. */
export async function throughput(
  target: Target,
  connections: number,
  seconds: number,
): Promise<{ readonly perSecond: number; readonly failed: number; readonly client: string }> {
  const script = path.join(mkdtempSync(path.join(folder, 'wrk-')), 'post.lua');
  const headers = Object.entries({ 'content-type': 'application/json', ...target.headers })
    .map(([name, value]) => `wrk.headers["${name}"] = "${value}"`)
    .join('\n');
  writeFileSync(script, `wrk.method = "POST"\nwrk.body = ${JSON.stringify(target.body)}\n${headers}\n`);
  const said = await run('wrk', [
    '-t1',
    `-c${connections}`,
    `-d${seconds}s`,
    '--timeout',
    '10s',
    '-s',
    script,
    target.url,
  ]);
  const perSecond = /Requests\/sec:\s+([\d.]+)/.exec(said ?? '')?.[1];
  if (perSecond === undefined) {
    const own = await load({ kind: 'closed', target, connections, seconds });
    return { perSecond: own.perSecond, failed: own.failed, client: 'own client' };
  }
  const failed = Number(/Non-2xx or 3xx responses: (\d+)/.exec(said ?? '')?.[1] ?? 0);
  return { perSecond: Number(perSecond), failed, client: 'wrk' };
}
