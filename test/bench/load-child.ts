import { Agent, request } from 'node:http';
import { connect } from 'node:net';
import type { Distribution, LoadJob, LoadResult, Target } from './load.ts';

/** The client of every row, in a process of its own. */
const monotonicMs = () => Number(process.hrtime.bigint()) / 1e6;

function distribution(values: readonly number[]): Distribution {
  const sorted = [...values].sort((a, b) => a - b);
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? Number.NaN;
  return { count: sorted.length, p50: at(0.5), p99: at(0.99), p999: at(0.999), max: sorted.at(-1) ?? Number.NaN };
}

interface Timing {
  readonly firstByteMs: number;
  readonly totalMs: number;
  readonly bytes: number;
}

/** One request, read to its end. @throws when it is not answered 200 */
function once(target: Target, agent: Agent): Promise<Timing> {
  return new Promise((resolve, reject) => {
    const url = new URL(target.url);
    const began = monotonicMs();
    let firstByteMs = 0;
    let bytes = 0;
    const sent = request(
      {
        host: url.hostname,
        port: url.port,
        path: url.pathname,
        method: 'POST',
        agent,
        headers: {
          'content-type': 'application/json',
          'content-length': Buffer.byteLength(target.body),
          ...target.headers,
        },
      },
      (response) => {
        response.on('data', (chunk: Buffer) => {
          if (bytes === 0) firstByteMs = monotonicMs() - began;
          bytes += chunk.length;
        });
        response.once('end', () => {
          if (response.statusCode === 200) resolve({ firstByteMs, totalMs: monotonicMs() - began, bytes });
          else reject(new Error(`${target.url} answered ${response.statusCode}`));
        });
        response.once('error', reject);
      },
    );
    sent.once('error', reject);
    sent.end(target.body);
  });
}

async function closed(target: Target, connections: number, seconds: number): Promise<LoadResult> {
  const agent = new Agent({ keepAlive: true, maxSockets: connections });
  const beganMs = monotonicMs();
  const untilMs = beganMs + seconds * 1000;
  let [done, failed, bytes] = [0, 0, 0];
  const client = async () => {
    while (monotonicMs() < untilMs) {
      try {
        bytes += (await once(target, agent)).bytes;
        done += 1;
      } catch {
        failed += 1;
      }
    }
  };
  await Promise.all(Array.from({ length: connections }, client));
  const elapsedS = (monotonicMs() - beganMs) / 1000;
  agent.destroy();
  return { kind: 'closed', perSecond: done / elapsedS, failed, bytesPerAnswer: bytes / Math.max(1, done) };
}

/** Over one connection, the targets in turn, so that whatever else the machine does meets all of them alike. */
async function sequential(targets: readonly Target[], rounds: number, warmUp: number): Promise<LoadResult> {
  const agents = targets.map(() => new Agent({ keepAlive: true, maxSockets: 1 }));
  const first: number[][] = targets.map(() => []);
  const whole: number[][] = targets.map(() => []);
  for (let round = -warmUp; round < rounds; round += 1) {
    for (const [at, target] of targets.entries()) {
      const agent = agents[at];
      if (!agent) continue;
      const { firstByteMs, totalMs } = await once(target, agent);
      if (round < 0) continue;
      first[at]?.push(firstByteMs);
      whole[at]?.push(totalMs);
    }
  }
  for (const agent of agents) agent.destroy();
  return { kind: 'sequential', firstByte: first.map(distribution), total: whole.map(distribution) };
}

/** At a fixed rate whatever the answers do; latency counts from when the request was due. */
async function open(target: Target, perSecond: number, seconds: number): Promise<LoadResult> {
  const agent = new Agent({ keepAlive: true, maxSockets: 256 });
  const count = perSecond * seconds;
  const beganMs = monotonicMs() + 50;
  const latencies: number[] = [];
  let failed = 0;
  let why: string | null = null;
  const calls: Promise<void>[] = [];
  for (let at = 0; at < count; at += 1) {
    const dueMs = beganMs + (at * 1000) / perSecond;
    const waitMs = dueMs - monotonicMs();
    // Timers come up to a millisecond late: the last stretch is spent turning, for the client must not be what is measured.
    if (waitMs > 1.5) await new Promise((resolve) => setTimeout(resolve, waitMs - 1.5));
    while (monotonicMs() < dueMs) await new Promise(setImmediate);
    calls.push(
      once(target, agent).then(
        () => {
          latencies.push(monotonicMs() - dueMs);
        },
        (error: Error) => {
          failed += 1;
          why ??= error.message;
        },
      ),
    );
  }
  await Promise.all(calls);
  agent.destroy();
  return { kind: 'open', latency: distribution(latencies.slice(perSecond)), failed, why };
}

/** So many streams at once, over the targets in turn; each chunk says when it was due and when the engine wrote it. */
async function streams(targets: readonly Target[], count: number): Promise<LoadResult> {
  const due: number[] = [];
  const sent: number[] = [];
  let [broken, ended] = [0, 0];
  const headOf = (target: Target, url: URL) => {
    const headers = Object.entries({ ...target.headers, 'content-type': 'application/json' });
    return [
      `POST ${url.pathname} HTTP/1.1`,
      `host: ${url.host}`,
      ...headers.map(([name, value]) => `${name}: ${value}`),
      `content-length: ${Buffer.byteLength(target.body)}`,
      'connection: close',
    ].join('\r\n');
  };
  const one = (target: Target) =>
    new Promise<void>((resolve) => {
      const url = new URL(target.url);
      const socket = connect(Number(url.port), url.hostname);
      let rest = '';
      let whole = false;
      socket.setNoDelay(true).write(`${headOf(target, url)}\r\n\r\n${target.body}`);
      socket.on('data', (chunk) => {
        const nowMs = monotonicMs();
        const text = rest + chunk.toString('latin1');
        let at = 0;
        for (;;) {
          const found = text.indexOf('"content":"', at);
          const end = found < 0 ? -1 : text.indexOf(' "', found);
          if (end < 0) break;
          const [dueMs, sentMs] = text.slice(found + 11, end).split(' ');
          due.push(nowMs - Number(dueMs));
          sent.push(nowMs - Number(sentMs));
          at = end;
        }
        if (text.includes('[DONE]')) whole = true;
        rest = text.slice(Math.max(at, text.length - 200));
      });
      socket.on('error', () => {});
      socket.once('close', () => {
        if (whole) ended += 1;
        else broken += 1;
        resolve();
      });
    });
  const all: Promise<void>[] = [];
  for (let at = 0; at < count; at += 1) {
    const target = targets[at % targets.length];
    if (target) all.push(one(target));
    // Streams that begin in the same millisecond would come in the same millisecond for ever.
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
  await Promise.all(all);
  return { kind: 'streams', due: distribution(due), sent: distribution(sent), ended, broken };
}

/** Repetitions per second of one thing that a process can do alone. */
function parseAndStringify(text: string, seconds: number): LoadResult {
  JSON.stringify(JSON.parse(text));
  const beganMs = monotonicMs();
  let done = 0;
  while (monotonicMs() - beganMs < seconds * 1000) {
    JSON.stringify(JSON.parse(text));
    done += 1;
  }
  return {
    kind: 'closed',
    perSecond: done / ((monotonicMs() - beganMs) / 1000),
    failed: 0,
    bytesPerAnswer: text.length,
  };
}

function run(job: LoadJob): Promise<LoadResult> | LoadResult {
  switch (job.kind) {
    case 'closed':
      return closed(job.target, job.connections, job.seconds);
    case 'sequential':
      return sequential(job.targets, job.rounds, job.warmUp);
    case 'open':
      return open(job.target, job.perSecond, job.seconds);
    case 'streams':
      return streams(job.targets, job.count);
    case 'parse':
      return parseAndStringify(job.text, job.seconds);
  }
}

process.on('message', (job: LoadJob) => {
  Promise.resolve(run(job)).then(
    (result) => process.send?.(result),
    (error: unknown) => process.send?.({ kind: 'error', sentence: error instanceof Error ? error.message : 'failed' }),
  );
});
process.on('disconnect', () => process.exit(0));
