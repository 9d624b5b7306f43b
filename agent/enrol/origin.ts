import { createHash, timingSafeEqual } from 'node:crypto';
import http from 'node:http';
import { isIP } from 'node:net';
import { connect, type TLSSocket } from 'node:tls';
import { EnrolmentOptions, JoinAnswer, type JoinReport, type StepReport } from '../wire/enrolment.ts';

const CONNECT_MS = 10_000;
const ANSWER_MS = 20_000;
/** The control plane pairs with this machine before it answers. */
const JOIN_MS = 60_000;
const MAX_ANSWER_BYTES = 64 * 1024;

export type OriginFault = 'unreachable' | 'other-key' | 'refused' | 'malformed';

export class OriginFailure extends Error {
  readonly fault: OriginFault;

  constructor(fault: OriginFault) {
    super(fault);
    this.name = 'OriginFailure';
    this.fault = fault;
  }
}

/** The one-time address of the control plane. Nothing is sent to, or taken from, a holder of another key. */
export class Origin {
  readonly #url: URL;
  readonly #pin: Buffer;

  /** @param from `https://HOST:PORT/e/TOKEN` */
  constructor(from: URL, pin: Buffer) {
    this.#url = from;
    this.#pin = pin;
  }

  /** @throws OriginFailure */
  async options(): Promise<EnrolmentOptions> {
    const { status, body } = await this.#ask('GET', 'options', undefined, ANSWER_MS);
    if (status !== 200) throw new OriginFailure('refused');
    return read(EnrolmentOptions, body);
  }

  /** @throws OriginFailure */
  async step(report: StepReport): Promise<void> {
    const { status } = await this.#ask('POST', 'step', report, ANSWER_MS);
    if (status !== 204) throw new OriginFailure('refused');
  }

  /** @throws OriginFailure */
  async join(report: JoinReport): Promise<JoinAnswer> {
    const { status, body } = await this.#ask('POST', 'join', report, JOIN_MS);
    if (status !== 200 && status !== 409) throw new OriginFailure('refused');
    return read(JoinAnswer, body);
  }

  async #ask(method: string, route: string, content: unknown, withinMs: number) {
    const socket = await this.#connect();
    try {
      return await exchange(socket, this.#url, method, route, content, withinMs);
    } finally {
      socket.destroy();
    }
  }

  /** The chain proves nothing, a fresh key signs for itself: who answers is told by the key alone, before a byte is written. */
  async #connect(): Promise<TLSSocket> {
    const host = this.#url.hostname.replace(/^\[|\]$/g, '');
    const socket = connect({
      host,
      port: Number(this.#url.port === '' ? 443 : this.#url.port),
      minVersion: 'TLSv1.2',
      rejectUnauthorized: false,
      checkServerIdentity: () => undefined,
      ...(isIP(host) === 0 ? { servername: host } : {}),
    });
    try {
      await new Promise<void>((resolve, reject) => {
        socket.once('secureConnect', resolve);
        socket.once('close', () => reject(new OriginFailure('unreachable')));
        socket.on('error', () => undefined); // 'close' follows
        socket.setTimeout(CONNECT_MS, () => socket.destroy());
      });
      socket.setTimeout(0);
      if (!isPinned(socket, this.#pin)) throw new OriginFailure('other-key');
      return socket;
    } catch (error) {
      socket.destroy();
      throw error;
    }
  }
}

function isPinned(socket: TLSSocket, pin: Buffer): boolean {
  const key = socket.getPeerX509Certificate()?.publicKey.export({ type: 'spki', format: 'der' });
  return key !== undefined && timingSafeEqual(createHash('sha256').update(key).digest(), pin);
}

function exchange(
  socket: TLSSocket,
  url: URL,
  method: string,
  route: string,
  content: unknown,
  withinMs: number,
): Promise<{ readonly status: number; readonly body: string }> {
  return new Promise((resolve, reject) => {
    const failed = (fault: OriginFault) => reject(new OriginFailure(fault));
    const body = content === undefined ? null : Buffer.from(JSON.stringify(content));
    const request = http.request({
      method,
      path: `${url.pathname.replace(/\/$/, '')}/${route}`,
      headers: {
        host: url.host,
        connection: 'close',
        ...(body === null ? {} : { 'content-type': 'application/json', 'content-length': body.length }),
      },
      createConnection: () => socket,
      signal: AbortSignal.timeout(withinMs),
    });
    request.on('error', () => failed('unreachable'));
    request.on('response', (response) => {
      const chunks: Buffer[] = [];
      let bytes = 0;
      response.on('data', (chunk: Buffer) => {
        bytes += chunk.length;
        if (bytes > MAX_ANSWER_BYTES) {
          failed('malformed');
          request.destroy();
        } else chunks.push(chunk);
      });
      response.on('end', () => resolve({ status: response.statusCode ?? 0, body: Buffer.concat(chunks).toString() }));
      response.on('error', () => failed('unreachable'));
    });
    request.end(body ?? undefined);
  });
}

function read<Answer>(schema: { parse(value: unknown): Answer }, body: string): Answer {
  try {
    return schema.parse(JSON.parse(body));
  } catch {
    throw new OriginFailure('malformed');
  }
}
