import type { CloudStanding } from '../dispatch/fleet-view.ts';
import type { Provider } from '../domain/provider.ts';
import type { CloudDesk } from '../operator/cloud-desk.ts';
import type { PermitPort } from '../router/types.ts';

/** A code that programs know and a sentence for people. */
export interface Reason {
  readonly code: string;
  readonly sentence: string;
}

/** The cloud as the composition root wires it: the operator's desk, the router's permits, and each provider's standing. */
export interface CloudRoom {
  readonly desk: CloudDesk;
  readonly permits: PermitPort;
  readonly standing: (provider: Provider) => CloudStanding;
}
