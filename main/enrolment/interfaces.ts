import { isIP } from 'node:net';
import type { NetworkInterfaceInfo } from 'node:os';
import { linksOf } from '../../agent/wire/discovery/interfaces.ts';
import { SwitchyardError } from '../domain/errors.ts';
import { said } from '../domain/said.ts';

export interface OwnNetwork {
  /** `os.networkInterfaces`. */
  readonly interfaces: () => NodeJS.Dict<NetworkInterfaceInfo[]>;
  /** The address that packets to the world leave from; null without a default route. */
  readonly defaultAddress: () => Promise<string | null>;
}

/**
 * The one address that a new machine is met at: the chosen one, else that of the default route, else the first of a real link.
 * Link-local IPv6 is none: its zone means nothing on the other machine. Loopback is one only where there is nothing else, for a
 * second agent on a computer without network.
 *
 * @throws SwitchyardError invalid_address with what to do
 */
export async function meetingAddress(network: OwnNetwork, chosen: string | null): Promise<string> {
  const found = network.interfaces();
  const own = addressesOf(found);
  if (chosen !== null) {
    if (own.includes(chosen.toLowerCase())) return chosen.toLowerCase();
    throw new SwitchyardError(
      'invalid_address',
      own.length === 0 ? said('no_network_address') : said('not_own_address', { addresses: own.join(', ') }),
    );
  }
  const routed = await network.defaultAddress();
  if (routed !== null && own.includes(routed)) return routed;
  const first = linksOf(found).find(({ address }) => own.includes(address))?.address ?? own[0];
  if (first === undefined) throw new SwitchyardError('invalid_address', said('no_network_address'));
  return first;
}

function addressesOf(found: NodeJS.Dict<NetworkInterfaceInfo[]>): readonly string[] {
  const all = Object.values(found).flatMap((infos) => infos ?? []);
  const addresses = (internal: boolean) =>
    all
      .filter((info) => info.internal === internal)
      .map(({ address }) => address.toLowerCase())
      .filter((address) => isIP(address) !== 0 && !address.startsWith('fe80:'));
  const outward = addresses(false);
  return outward.length > 0 ? outward : addresses(true);
}
