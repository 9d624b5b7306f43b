import { randomBytes } from 'node:crypto';
import { ControlPlane } from '../../main/control-plane.ts';
import { noDiscovery } from '../../main/discovery/lan-discovery.ts';
import type { EnrolFiles } from '../../main/enrolment/listener.ts';
import { createSystemClock } from '../../main/platform/clock.ts';
import type { OperationName, Output } from '../../preload/contract.ts';
import { temporaryFolder } from '../support/processes.ts';

const loopback = { address: '127.0.0.1', netmask: '255.0.0.0', mac: '00:00:00:00:00:00', internal: true };

/** The control plane in this process, on loopback as if there were nothing else, with an installer of the test's own. */
export async function startCore(files: EnrolFiles) {
  const plane = new ControlPlane({
    clock: createSystemClock(),
    random: Math.random,
    randomBytes,
    version: '0.0.0-test',
    shell: 'headless',
    dataFolder: temporaryFolder('core'),
    storeWorker: new URL('../../main/store/worker.ts', import.meta.url),
    vaultKeys: {},
    port: 0,
    embeddedAgent: null,
    consoleFiles: new Map(),
    discovery: noDiscovery,
    enrolment: {
      network: {
        interfaces: () => ({ lo: [{ ...loopback, family: 'IPv4', cidr: '127.0.0.1/8' }] }),
        defaultAddress: async () => null,
      },
      files: async () => files,
    },
  });
  await plane.start();
  return {
    stop: () => plane.stop(),
    call: <Name extends OperationName>(name: Name, input: unknown = {}) =>
      plane.call(name, input) as Promise<Output<Name>>,
  };
}
