/**
 * What the wire alone can carry, over TLS on loopback. Run it with `node test/bench/wire.ts` (Node 24).
 * Control plane and agent run in two processes, so that each figure is what one core of the control plane's side gives
 * while the agent has its own. Prints one JSON line.
 */
import { fork } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { monitorEventLoopDelay, performance } from 'node:perf_hooks';
import { Controllers } from '../../agent/session/controllers.ts';
import { loadIdentity } from '../../agent/session/identity.ts';
import { AgentServer } from '../../agent/session/server.ts';
import type { CallHead, ResponseHead, Trailers } from '../../agent/wire/calls.ts';
import type { CallServer } from '../../agent/wire/stream.ts';
import type { Clock } from '../../main/domain/time.ts';
import { AgentSession } from '../../main/fleet/session.ts';

const CONCURRENCY = 64;
const KIB = Buffer.alloc(1024, 'x');
const CHUNK = Buffer.from(`data: {"choices":[{"delta":{"content":"${'token '.repeat(10)}"}}]}\n\n`);
const STREAMS = 500;
const CHUNKS_PER_SECOND = 50;

const clock: Clock = {
  nowMs: () => performance.now(),
  wallMs: () => Date.now(),
  after: (delayMs, callback) => {
    const timer = setTimeout(callback, delayMs);
    return () => clearTimeout(timer);
  },
};
const head = (model: string): CallHead => ({
  op: 'chat',
  engine: 'bench',
  model,
  stream: true,
  wantsUsage: false,
  path: '/v1/chat/completions',
  firstByteMs: 600_000,
  betweenTokensMs: 600_000,
});
const okHead: ResponseHead = { status: 200, contentType: 'text/event-stream', count: null, width: null };
const trailers: Trailers = {
  usage: { promptTokens: 10, completionTokens: 50, exact: true, costUsd: null },
  fingerprint: { engine: 'bench', version: null, modelDigest: null, upstream: null, pin: null, processMark: null },
  engineMs: 1,
  firstByteMs: null,
  tokensPerSecond: null,
  finished: true,
};

/** `small`: 1 KiB at once. `bulk`: 64 MiB. `stream:S`: S seconds of chunks, each beginning with its due time. */
const serve: CallServer = (call) => {
  call.respond(okHead);
  const [kind, seconds] = call.head.model.split(':');
  if (kind === 'small') {
    call.write(KIB);
    call.end(trailers);
  } else if (kind === 'bulk') {
    const block = Buffer.alloc(1024 * 1024);
    void (async () => {
      for (let count = 0; count < 64; count += 1) if (!call.write(block)) await call.drained();
      call.end(trailers);
    })();
  } else {
    let left = Number(seconds) * CHUNKS_PER_SECOND;
    let due = performance.timeOrigin + performance.now();
    const next = (): void => {
      const chunk = Buffer.allocUnsafe(8 + CHUNK.length);
      chunk.writeDoubleLE(due, 0);
      chunk.set(CHUNK, 8);
      call.write(chunk);
      left -= 1;
      due += 1000 / CHUNKS_PER_SECOND;
      if (left > 0) setTimeout(next, Math.max(0, due - performance.timeOrigin - performance.now()));
      else call.end(trailers);
    };
    setTimeout(next, Math.random() * (1000 / CHUNKS_PER_SECOND));
    due = performance.timeOrigin + performance.now();
  }
};

async function agent(): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'switchyard-bench-'));
  const identity = await loadIdentity(folder);
  const controllers = await Controllers.load(folder);
  const key = Buffer.alloc(32, 7);
  await controllers.admit('bench', key);
  const server = new AgentServer({
    identity,
    controllers,
    clock,
    host: '127.0.0.1',
    port: 0,
    serve,
    welcome: () => ({
      t: 'welcome',
      wireVersion: 1,
      agentVersion: '0',
      node: identity.node,
      name: 'bench',
      platform: process.platform,
      arch: process.arch,
      cpu: null,
      cores: 1,
      memoryTotalBytes: 0,
      pid: process.pid,
      startedAtMs: 0,
    }),
  });
  const { port } = await server.start();
  process.send?.({ port, fingerprint: identity.fingerprint });
  process.on('disconnect', () => {
    void server
      .stop()
      .then(() => rm(folder, { recursive: true, force: true }))
      .then(() => process.exit(0));
  });
}

function call(link: AgentSession, model: string, onData: (chunk: Uint8Array) => void): Promise<void> {
  return new Promise((resolve, reject) => {
    link.opener.open(head(model), KIB, {
      onHead: () => undefined,
      onData: (chunk) => {
        onData(chunk);
        return true;
      },
      onEnd: () => resolve(),
      onFailure: (failure) => reject(new Error(failure.code)),
    });
  });
}

async function smallCalls(link: AgentSession, seconds: number, concurrency: number) {
  const times: number[] = [];
  const end = performance.now() + seconds * 1000;
  const cpu = process.cpuUsage();
  await Promise.all(
    Array.from({ length: concurrency }, async () => {
      while (performance.now() < end) {
        const from = performance.now();
        await call(link, 'small', () => undefined);
        times.push(performance.now() - from);
      }
    }),
  );
  const used = process.cpuUsage(cpu);
  times.sort((a, b) => a - b);
  return {
    callsPerSecond: Math.round(times.length / seconds),
    controllerCpuMicrosPerCall: Math.round((used.user + used.system) / times.length),
    p50Ms: round(times[Math.floor(times.length * 0.5)] ?? 0),
    p99Ms: round(times[Math.floor(times.length * 0.99)] ?? 0),
  };
}

async function streams(link: AgentSession, seconds: number) {
  const late: number[] = [];
  const delay = monitorEventLoopDelay({ resolution: 1 });
  delay.enable();
  await Promise.all(
    Array.from({ length: STREAMS }, () =>
      call(link, `stream:${seconds}`, (chunk) => {
        // Several chunks of one stream may have been joined only if the reader had paused, which this one never does.
        const due = new DataView(chunk.buffer, chunk.byteOffset, 8).getFloat64(0, true);
        late.push(performance.timeOrigin + performance.now() - due);
      }),
    ),
  );
  delay.disable();
  late.sort((a, b) => a - b);
  return {
    chunks: late.length,
    lateP50Ms: round(late[Math.floor(late.length * 0.5)] ?? 0),
    lateP99Ms: round(late[Math.floor(late.length * 0.99)] ?? 0),
    lateP999Ms: round(late[Math.floor(late.length * 0.999)] ?? 0),
    loopP99Ms: round(delay.percentile(99) / 1e6),
  };
}

async function bulk(link: AgentSession) {
  let bytes = 0;
  const from = performance.now();
  await call(link, 'bulk', (chunk) => {
    bytes += chunk.length;
  });
  return { mebibytesPerSecond: Math.round(bytes / 1048.576 / (performance.now() - from)) };
}

const round = (value: number): number => Math.round(value * 1000) / 1000;

async function controller(): Promise<void> {
  const child = fork(import.meta.filename, ['--agent']);
  const { port, fingerprint } = await new Promise<{ port: number; fingerprint: string }>((resolve) =>
    child.once('message', (message) => resolve(message as { port: number; fingerprint: string })),
  );
  const link = new AgentSession({
    address: `127.0.0.1:${port}`,
    controller: 'bench',
    key: Buffer.alloc(32, 7),
    fingerprint,
    clock,
    handlers: { onWelcome: () => undefined, onHeartbeat: () => undefined },
  });
  await link.start();
  await smallCalls(link, 1, CONCURRENCY);
  const report = {
    small: await smallCalls(link, 4, CONCURRENCY),
    single: await smallCalls(link, 2, 1),
    bulk: await bulk(link),
    streams: await streams(link, 8),
    rssMiB: Math.round(process.memoryUsage.rss() / 1048576),
  };
  console.log(JSON.stringify(report, null, 2));
  link.close();
  child.disconnect();
}

await (process.argv.includes('--agent') ? agent() : controller());
