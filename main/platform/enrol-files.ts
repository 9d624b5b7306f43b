import { createSocket } from 'node:dgram';
import { readFile } from 'node:fs/promises';
import { networkInterfaces } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import type { EnrolFiles } from '../enrolment/listener.ts';
import type { EnrolmentPlace } from '../enrolment/service.ts';

/** What a machine that is being added is sent, from `out/enrol/`; null where it was not built. */
export async function readEnrolFiles(folder: URL): Promise<EnrolFiles | null> {
  const at = fileURLToPath(folder);
  try {
    const [sh, ps1, agent] = await Promise.all(
      ['sh', 'ps1', 'agent.tar.gz'].map((name) => readFile(path.join(at, name))),
    );
    return sh && ps1 && agent ? { sh, ps1, agent } : null;
  } catch {
    return null;
  }
}

/** What adding machines takes of this computer, with the installer in `folder`. */
export function thisComputer(folder: URL): EnrolmentPlace {
  return {
    network: { interfaces: networkInterfaces, defaultAddress: defaultRouteAddress },
    files: () => readEnrolFiles(folder),
  };
}

/** Addresses far away (documentation's, so nobody's): only the routing table is asked, a connected UDP socket sends nothing. */
const FAR: readonly (readonly ['udp4' | 'udp6', string])[] = [
  ['udp4', '203.0.113.1'],
  ['udp6', '2001:db8::1'],
];

/** The address of this machine that has the default route, IPv4 first; null where there is none. */
export async function defaultRouteAddress(): Promise<string | null> {
  for (const [family, far] of FAR) {
    const address = await new Promise<string | null>((resolve) => {
      const socket = createSocket(family);
      const done = (found: string | null): void => {
        socket.close();
        resolve(found);
      };
      socket.once('error', () => done(null));
      socket.connect(9, far, () => done(socket.address().address));
    });
    if (address !== null) return address;
  }
  return null;
}
