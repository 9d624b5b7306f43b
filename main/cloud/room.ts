import type { CloudStanding } from '../dispatch/fleet-view.ts';
import { SwitchyardError } from '../domain/errors.ts';
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

const NO_AGENT = { code: 'no_key_agent', sentence: 'No agent of the fleet takes a cloud key.' } as const;

/** A control plane whose agents offer no cloud lane: everything of the cloud is off, and says so. */
export function closedCloud(): CloudRoom {
  const refuse = async () => {
    throw new SwitchyardError('not_ready', NO_AGENT.sentence);
  };
  return {
    standing: () => ({ closed: 'key_missing', coolingUntilMs: null }),
    permits: {
      demand() {},
      tryAcquire: () => 'cloud_off',
      release() {},
      nextChangeMs: () => null,
    },
    desk: {
      status: () => ({
        state: 'no-agent',
        reason: NO_AGENT,
        paused: false,
        baseUrl: 'https://openrouter.ai/api/v1',
        holders: [],
        lastPush: null,
        catalogueAtMs: null,
        canRemember: false,
        rememberNote: null,
      }),
      pause: refuse,
      resume: refuse,
      forget: refuse,
      test: async () => ({ results: [] }),
      budget: () => ({
        ceiling: 0,
        effective: 0,
        usable: 0,
        inFlight: 0,
        waiting: 0,
        state: 'off',
        sentence: NO_AGENT,
        source: 'default',
        override: null,
        overrideMax: 256,
        creditUsd: null,
        rate: null,
        latencyMs: null,
        coolingUntilMs: null,
        nextStepAtMs: null,
        plateau: null,
        window: null,
        cuts: [],
        suggestion: null,
        freeTierClosedUntilMs: null,
        shares: [],
        spendByRole: [],
        spendByProject: [],
        discoveredAtMs: null,
      }),
      setOverride: refuse,
      dismissSuggestion() {},
      pushKey: async (key) => {
        key.fill(0);
        throw new SwitchyardError('not_ready', NO_AGENT.sentence);
      },
      cooldowns: () => [],
      spentUsd: () => ({ dayUsd: null, monthUsd: null }),
      offered: () => ({ offered: null, nearest: [] }),
      modelsFor: () => null,
    },
  };
}
