import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import {
  type EnrolmentOptions,
  type JoinAnswer,
  JoinReport,
  MAX_ENROLMENT_BODY_BYTES,
  StepReport,
} from '../../agent/wire/enrolment.ts';
import type { Clock } from '../domain/time.ts';
import type { FreshKey } from './certificate.ts';
import { tokenMatches } from './token.ts';

/** What a machine that is being added is sent: constant bytes of a release. */
export interface EnrolFiles {
  readonly sh: Uint8Array;
  readonly ps1: Uint8Array;
  /** `agent.tar.gz`. */
  readonly agent: Uint8Array;
}

/** Who answers behind the token. */
export interface EnrolmentDesk {
  /** False from the one join on, and after the time is over: there is nothing at this address any more. */
  alive(): boolean;
  options(): EnrolmentOptions;
  step(report: StepReport, from: string): void;
  /** Never rejects. */
  join(report: JoinReport, from: string): Promise<JoinAnswer>;
}

export interface ListenerOptions {
  readonly clock: Clock;
  /** One address of this computer. */
  readonly address: string;
  readonly key: FreshKey;
  readonly token: string;
  readonly files: EnrolFiles;
  readonly desk: EnrolmentDesk;
  readonly limits?: Partial<ListenerLimits>;
}

/** Tests shorten the times. */
export interface ListenerLimits {
  readonly connectionsPerAddress: number;
  readonly connections: number;
  /** For the TLS handshake, and again for the head of a request. */
  readonly headMs: number;
  readonly requestMs: number;
  /** Without a byte either way. */
  readonly idleMs: number;
  readonly checkMs: number;
}

export interface Listener {
  readonly port: number;
  /** Takes nothing new at once; an answer that is being given may end within 2 s. Idempotent. */
  close(): void;
}

export type OpenListener = (options: ListenerOptions) => Promise<Listener>;

const LIMITS: ListenerLimits = {
  connectionsPerAddress: 8,
  connections: 64,
  headMs: 10_000,
  requestMs: 30_000,
  idleMs: 120_000,
  checkMs: 1000,
};
const LAST_ANSWER_MS = 2000;
const HEAD_BYTES = 8 * 1024;
const PATH = /^\/e\/([A-Za-z0-9_-]{1,64})\/([a-z0-9]{1,16})$/;

/** The answer to whatever has no business here. Node writes the same bytes for a request that it could parse. */
const NOTHING = 'HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n';

/**
 * Opens the one-time address of one machine: HTTPS by a key of its own on any free port of one address.
 *
 * @returns when it listens; rejects with the system's error when it cannot
 */
export const openListener: OpenListener = async (options) => {
  const { address, key, clock } = options;
  const limits = { ...LIMITS, ...options.limits };
  const server = createServer({
    key: key.keyPem,
    cert: key.certificatePem,
    minVersion: 'TLSv1.2',
    ALPNProtocols: ['http/1.1'],
    handshakeTimeout: limits.headMs,
    headersTimeout: limits.headMs,
    requestTimeout: limits.requestMs,
    connectionsCheckingInterval: limits.checkMs,
    maxHeaderSize: HEAD_BYTES,
    // A missing Host is answered like everything else that is not known here, not with a hint of its own.
    requireHostHeader: false,
  });
  server.maxConnections = limits.connections;
  server.setTimeout(limits.idleMs, (socket: Socket) => socket.destroy());

  const perAddress = new Map<string, number>();
  server.on('connection', (socket: Socket) => {
    const from = socket.remoteAddress ?? '';
    const held = (perAddress.get(from) ?? 0) + 1;
    perAddress.set(from, held);
    socket.once('close', () => {
      const left = (perAddress.get(from) ?? 1) - 1;
      if (left > 0) perAddress.set(from, left);
      else perAddress.delete(from);
    });
    if (held > limits.connectionsPerAddress) socket.destroy();
  });
  const answer = (request: IncomingMessage, response: ServerResponse): void => {
    response.sendDate = false;
    response.on('error', () => undefined);
    serve(request, response, options).catch(() => response.destroy());
  };
  server.on('request', answer);
  // Nobody is told to go on before it is known who asks.
  server.on('checkContinue', answer);
  server.on('checkExpectation', answer);
  server.on('connect', (_request, socket) => socket.end(NOTHING));
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    // Of TLS errors there is nothing to say; the rest is garbage or slowness inside a connection that stands.
    const spoke = error.code?.startsWith('HPE_') || error.code === 'ERR_HTTP_REQUEST_TIMEOUT';
    if (spoke && socket.writable) socket.end(NOTHING);
    else socket.destroy();
  });

  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen({ host: address, port: 0, exclusive: true }, () => {
      server.off('error', reject);
      server.on('error', () => undefined); // out of descriptors, for instance: the next connection may fare better
      resolve();
    });
  });
  let closed = false;
  return {
    port: (server.address() as AddressInfo).port,
    close: () => {
      if (closed) return;
      closed = true;
      const cancel = clock.after(LAST_ANSWER_MS, () => server.closeAllConnections());
      server.close(() => cancel());
    },
  };
};

async function serve(request: IncomingMessage, response: ServerResponse, options: ListenerOptions): Promise<void> {
  const { token, desk, files } = options;
  const [, given = '', name = ''] = PATH.exec(request.url ?? '') ?? [];
  const known = tokenMatches(given, token) && desk.alive();
  const from = request.socket.remoteAddress ?? '';
  switch (known ? `${request.method} ${name}` : '') {
    case 'GET sh':
      return send(response, 200, files.sh, 'text/x-shellscript; charset=utf-8');
    case 'GET ps1':
      return send(response, 200, files.ps1, 'text/plain; charset=utf-8');
    case 'GET agent':
      return sendFrom(request, response, files.agent);
    case 'GET options':
      return sendJson(response, 200, desk.options());
    case 'POST step': {
      const report = StepReport.safeParse(await bodyOf(request, response));
      if (!report.success) return send(response, 400);
      desk.step(report.data, from);
      return send(response, 204);
    }
    case 'POST join': {
      const report = JoinReport.safeParse(await bodyOf(request, response));
      if (!report.success) return send(response, 400);
      // It may have been another's turn while the body came.
      if (!desk.alive()) return send(response, 404);
      const told = await desk.join(report.data, from);
      return sendJson(response, told.state === 'joined' ? 200 : 409, told);
    }
    default:
      return send(response, 404);
  }
}

function send(
  response: ServerResponse,
  status: number,
  body: Uint8Array | null = null,
  type: string | null = null,
): void {
  response.writeHead(status, [
    ...(type === null ? [] : ['content-type', type]),
    ...(status === 204 ? [] : ['content-length', String(body?.byteLength ?? 0)]),
    // Every tool of a joining machine makes a connection for each thing it asks.
    ...['connection', 'close'],
  ]);
  response.end(body ?? undefined);
}

function sendJson(response: ServerResponse, status: number, value: unknown): void {
  send(response, status, Buffer.from(JSON.stringify(value)), 'application/json');
}

/** The archive, from where an earlier download broke off. */
function sendFrom(request: IncomingMessage, response: ServerResponse, body: Uint8Array): void {
  const start = Number(/^bytes=(\d{1,15})-$/.exec(request.headers.range ?? '')?.[1] ?? 0);
  if (start === 0) {
    send(response, 200, body, 'application/gzip');
    return;
  }
  if (start >= body.byteLength) {
    send(response, 416);
    return;
  }
  const part = body.subarray(start);
  response.writeHead(206, [
    ...['content-type', 'application/gzip', 'content-length', String(part.byteLength)],
    ...['content-range', `bytes ${start}-${body.byteLength - 1}/${body.byteLength}`, 'connection', 'close'],
  ]);
  response.end(part);
}

/** What the body says; null where it is too long, broken off or no JSON. It may hold a join code, so its bytes are zeroed. */
async function bodyOf(request: IncomingMessage, response: ServerResponse): Promise<unknown> {
  if (Number(request.headers['content-length'] ?? 0) > MAX_ENROLMENT_BODY_BYTES) return null;
  if (request.headers.expect?.toLowerCase() === '100-continue') response.writeContinue();
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const chunk of request as AsyncIterable<Buffer>) {
      chunks.push(chunk);
      bytes += chunk.length;
      if (bytes > MAX_ENROLMENT_BODY_BYTES) return null;
    }
    const whole = Buffer.concat(chunks);
    chunks.push(whole);
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(whole)) as unknown;
  } catch {
    return null;
  } finally {
    for (const chunk of chunks) chunk.fill(0);
  }
}
