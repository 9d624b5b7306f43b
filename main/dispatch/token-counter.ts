import type { Gate } from '../gate/gate-api.ts';
import type { Encoder, ProbePort } from '../gate/probe-port.ts';
import type { EmbedPreparation } from './space-resolution.ts';

export interface TokenCounterOptions {
  readonly probes: ProbePort;
  readonly gate: Pick<Gate, 'admitted'>;
  readonly encoders: () => readonly Encoder[];
}

/** Providers asked in turn before a request is told that nobody can count. */
const TRIES = 3;

/**
 * Counts with a provider of the space that has passed: providers that agree on vectors agree on tokens. A provider that has
 * not passed never sees a text, not even to count it.
 */
export function tokenCounter({ probes, gate, encoders }: TokenCounterOptions): EmbedPreparation['countTokens'] {
  return (space, leave) => async (texts) => {
    const able = encoders().filter(
      ({ provider, tokenCounting }) =>
        tokenCounting === 'exact' && provider.reachable && provider.nodePulls && gate.admitted(provider.id, space),
    );
    for (const { provider } of able.slice(0, TRIES)) {
      const counts = await probes.tokenize(provider, texts, leave);
      if (counts || leave.aborted) return counts;
    }
    return null;
  };
}
