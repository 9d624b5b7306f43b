import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { state } from './state.ts';

type Handler = (request: Request) => Response | Promise<Response>;
const handlers = new Map<string, Handler>();

/**
 * Custom schemes over a loopback server: `app://bundle/x` is `http://bundle.app.localhost:PORT/x` to Chromium, a secure context with
 * an origin of its own. The app sees only its own addresses.
 */
export function toReal(url: string): string {
  const found = /^([a-z][a-z0-9+.-]*):\/\/([^/?#]*)(.*)$/is.exec(url);
  if (!found) return url;
  const [, scheme = '', host = '', rest = ''] = found;
  if (!handlers.has(scheme)) return url;
  return `http://${host}.${scheme}.localhost:${state.schemePort}${rest.startsWith('/') ? '' : '/'}${rest}`;
}

export function fromReal(url: string): string {
  const found = /^http:\/\/([a-z0-9.-]+)\.([a-z0-9+-]+)\.localhost:(\d+)(.*)$/s.exec(url);
  if (!found) return url;
  const [, host, scheme = '', port, rest] = found;
  return Number(port) === state.schemePort && handlers.has(scheme) ? `${scheme}://${host}${rest}` : url;
}

export async function startSchemeServer(): Promise<void> {
  const server = createServer((request, response) => {
    answer(request, response).catch(() => response.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  server.unref();
  state.schemePort = (server.address() as AddressInfo).port;
}

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const url = fromReal(`http://${request.headers.host}${request.url}`);
  const handler = handlers.get(url.slice(0, url.indexOf(':')));
  if (!handler || url.startsWith('http')) {
    response.writeHead(403).end();
    return;
  }
  const got = await handler(new Request(url, { method: request.method ?? 'GET' }));
  response.writeHead(got.status, Object.fromEntries(got.headers));
  if (got.body) Readable.fromWeb(got.body as Parameters<typeof Readable.fromWeb>[0]).pipe(response);
  else response.end();
}

export class Protocol {
  registerSchemesAsPrivileged(_schemes: readonly unknown[]): void {
    if (state.ready) throw new Error('protocol.registerSchemesAsPrivileged should be called before app is ready');
  }

  handle(scheme: string, handler: Handler): void {
    if (handlers.has(scheme)) throw new Error(`Failed to register protocol: ${scheme}`);
    handlers.set(scheme, handler);
  }

  unhandle(scheme: string): void {
    handlers.delete(scheme);
  }

  isProtocolHandled(scheme: string): boolean {
    return handlers.has(scheme);
  }
}
export const protocol = new Protocol();
