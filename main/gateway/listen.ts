import { type AddressInfo, createServer, type Server } from 'node:net';
import { SwitchyardError } from '../domain/errors.ts';
import { portOwner } from './port-owner.ts';

/** Where the endpoint listens when nothing else is set. */
export const DEFAULT_ADDRESSES: readonly string[] = ['127.0.0.1', '::1'];
export const DEFAULT_PORT = 7411;
/** An address that was wanted and cannot be listened on. */
export interface Misplaced {
  readonly address: string;
  readonly code: 'address_absent' | 'address_unknown';
}

/** Free ports to try until one is free on every address. */
const TRIES = 16;

const isAbsent = (code: string): boolean => code === 'EADDRNOTAVAIL' || code === 'EAFNOSUPPORT';
const isUnknown = (code: string): boolean => code === 'ENOTFOUND' || code.startsWith('EAI_');

/** Whether this machine can listen there at all, whatever the port. @throws SwitchyardError address_absent, address_unknown */
export async function checkAddress(address: string): Promise<void> {
  const server = createServer();
  const code = await bind(server, address, 0);
  server.close();
  if (code !== null && isUnknown(code)) throw new SwitchyardError('address_unknown');
  if (code !== null) throw new SwitchyardError('address_absent');
}

/**
 * Binds one server per address, all on the same port. An address that the machine does not have (often ::1) is left out, one
 * that is taken is not: half an endpoint would hand half of the clients to a stranger.
 *
 * @param port 0: any that is free on all of them
 * @throws SwitchyardError address_in_use, saying by whom where that can be known; address_absent or address_unknown when this
 *   machine has none of them
 */
export async function listenOnAll(
  addresses: readonly string[],
  port: number,
  makeServer: () => Server,
): Promise<{ readonly servers: readonly Server[]; readonly port: number }> {
  for (let attempt = 1; ; attempt += 1) {
    const servers: Server[] = [];
    let chosen = port;
    let taken: string | null = null;
    let unknown = false;
    for (const address of addresses) {
      const server = makeServer();
      const code = await bind(server, address, chosen);
      if (code === null) {
        servers.push(server);
        chosen = (server.address() as AddressInfo).port;
      } else if (isUnknown(code)) {
        unknown = true;
      } else if (!isAbsent(code)) {
        taken = code;
        break;
      }
    }
    if (taken === null && servers.length > 0) return { servers, port: chosen };
    await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
    if (taken === null) throw new SwitchyardError(unknown ? 'address_unknown' : 'address_absent');
    if (taken === 'EADDRINUSE' && port === 0 && attempt < TRIES) continue;
    throw await refusal(taken, chosen);
  }
}

async function refusal(code: string, port: number): Promise<SwitchyardError> {
  if (code === 'EACCES') return new SwitchyardError('address_in_use', `Port ${port} needs more rights than we have.`);
  const owner = await portOwner(port);
  const by = owner === null ? 'another program' : owner;
  return new SwitchyardError(
    'address_in_use',
    `Port ${port} is taken by ${by}. Stop it or choose another port with --port.`,
  );
}

/** @returns null when bound, else the system's error code. */
function bind(server: Server, address: string, port: number): Promise<string | null> {
  return new Promise((resolve) => {
    const failed = (error: NodeJS.ErrnoException): void => resolve(error.code ?? 'UNKNOWN');
    server.once('error', failed);
    server.listen({ host: address, port, ipv6Only: address.includes(':'), exclusive: true }, () => {
      server.off('error', failed);
      resolve(null);
    });
  });
}
