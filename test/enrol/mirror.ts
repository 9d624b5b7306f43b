import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A file server that takes up broken downloads, and can break them. */
export class Mirror {
  readonly files = new Map<string, Buffer>();
  /** `name from-to` of each answer. */
  readonly served: string[] = [];
  /** Next answer ends after so many bytes. */
  breakAfter: number | null = null;
  readonly #server: Server;

  private constructor(server: Server) {
    this.#server = server;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  static async start(): Promise<Mirror> {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const mirror = new Mirror(server);
    server.on('request', (request, response) => {
      const name = (request.url ?? '').slice(1);
      const file = mirror.files.get(name);
      if (file === undefined) {
        response.writeHead(404).end();
        return;
      }
      const from = Number(/^bytes=(\d+)-$/.exec(request.headers.range ?? '')?.[1] ?? 0);
      if (from >= file.length) {
        response.writeHead(416).end();
        return;
      }
      const rest = file.subarray(from);
      const range = { 'content-range': `bytes ${from}-${file.length - 1}/${file.length}` };
      response.writeHead(from > 0 ? 206 : 200, { 'content-length': rest.length, ...(from > 0 ? range : {}) });
      const { breakAfter } = mirror;
      mirror.breakAfter = null;
      mirror.served.push(`${name} ${from}`);
      if (breakAfter === null) response.end(rest);
      else response.write(rest.subarray(0, breakAfter), () => response.destroy());
    });
    return mirror;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
