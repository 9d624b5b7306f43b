import { randomBytes } from 'node:crypto';
import { createServer, type Server as TlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { loadIdentity } from '../../agent/session/identity.ts';
import { JoinReport, StepReport } from '../../agent/wire/enrolment.ts';

export interface Wish {
  readonly model: string | null;
  readonly engine: 'ollama' | null;
}

/** The control plane's side of joining, as a script's author would want to see it: what was asked, in order. */
export class StandInControlPlane {
  readonly reports: StepReport[] = [];
  readonly joins: JoinReport[] = [];
  readonly asked: string[] = [];
  readonly pin: string;
  readonly url: string;
  wish: Wish = { model: null, engine: null };
  agent: Buffer;
  /** Called when a step is reported, before the answer. */
  onReport: (report: StepReport) => void = () => undefined;
  refuseJoin = false;
  readonly #server: TlsServer;

  private constructor(server: TlsServer, pin: string, token: string, agent: Buffer) {
    this.#server = server;
    this.pin = pin;
    this.agent = agent;
    this.url = `https://127.0.0.1:${(server.address() as AddressInfo).port}/e/${token}`;
  }

  static async start(folder: string, agent: Buffer): Promise<StandInControlPlane> {
    const { keyPem: key, certificatePem: cert, fingerprint } = await loadIdentity(folder);
    const server = createServer({ key, cert });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const token = randomBytes(16).toString('base64url');
    const pin = `sha256//${Buffer.from(fingerprint, 'hex').toString('base64')}`;
    const plane = new StandInControlPlane(server, pin, token, agent);
    server.on('request', (request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        const { status, body } = plane.#answer(request.url?.slice(`/e/${token}/`.length) ?? '', Buffer.concat(chunks));
        response.writeHead(status).end(body);
      });
    });
    return plane;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #answer(route: string, body: Buffer): { readonly status: number; readonly body?: string | Buffer } {
    this.asked.push(route);
    if (route === 'agent') return { status: 200, body: this.agent };
    if (route === 'options') return { status: 200, body: JSON.stringify({ v: 1, ...this.wish, controlPlane: 'desk' }) };
    if (route === 'step') {
      const report = StepReport.parse(JSON.parse(body.toString()));
      this.reports.push(report);
      this.onReport(report);
      return { status: 204 };
    }
    if (route !== 'join') return { status: 404 };
    this.joins.push(JoinReport.parse(JSON.parse(body.toString())));
    return this.refuseJoin
      ? { status: 409, body: '{"state":"failed","code":"node_unreachable"}' }
      : { status: 200, body: '{"state":"joined"}' };
  }

  /** How each step ended, in order: `engine done adopted`. */
  ends(): string[] {
    return this.reports
      .filter(({ state }) => state !== 'running')
      .map(({ code, state, detail }) => [code, state, ...(detail === null ? [] : [detail])].join(' '));
  }
}
