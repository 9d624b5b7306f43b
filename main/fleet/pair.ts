import { randomBytes } from 'node:crypto';
import { MAX_HANDSHAKE_BYTES, pairAsController, resumeAsController } from '../../agent/wire/handshake.ts';
import { parseJoinCode } from '../../agent/wire/joincode.ts';
import { SwitchyardError } from '../domain/errors.ts';
import { type AgentAddress, formatAddress, parseAddress } from './address.ts';
import { dial } from './dial.ts';
import type { PairedAgent, PairOptions, PendingPairing } from './link.ts';

const NODE_KEY_BYTES = 32;

interface Attempt {
  readonly address: AgentAddress;
  readonly code: Uint8Array;
  readonly options: PairOptions;
}

/**
 * Pairs with an agent by join code. A pairing that was cut anywhere is finished here: the key that may be stored at the agent
 * is tried first, then the code again; one of both works, because the agent burns the code and keeps the key in one step.
 */
export async function pairAgent(options: PairOptions): Promise<PairedAgent> {
  const code = parseJoinCode(options.joinCode);
  if (code === null) throw new SwitchyardError('invalid_join_code');
  const attempt: Attempt = { address: parseAddress(options.address), code, options };
  const { pending, fingerprint } = options;
  // What is left over may be another agent's, that was at this address before.
  const isTheirs = fingerprint === undefined || fingerprint === pending?.fingerprint;
  const before = pending !== undefined && isTheirs ? await resumed(attempt, pending) : null;
  if (before !== null) return before;
  const first = await byCode(attempt);
  if ('node' in first) return first;
  const second = (await resumed(attempt, first.pending)) ?? (await byCode(attempt));
  if ('node' in second) return second;
  throw second.error;
}

/** An attempt that was cut after the key was sent: the agent may have it. */
interface Unclear {
  readonly pending: PendingPairing;
  readonly error: SwitchyardError;
}

async function byCode({ address, code, options }: Attempt): Promise<PairedAgent | Unclear> {
  let pending: PendingPairing | null = null;
  try {
    return await dial(
      dialOptions(address, options.fingerprint ?? null, options),
      async ({ ws, socket, binding, fingerprint }) => {
        const key = new Uint8Array(randomBytes(NODE_KEY_BYTES));
        const node = await pairAsController(
          socket,
          { controller: options.controller, binding, secret: code },
          async (id) => {
            await options.storePending({ key, fingerprint, node: id });
            pending = { key, fingerprint };
            return key;
          },
        );
        ws.terminate();
        return { node, key, fingerprint, address: formatAddress(address) };
      },
    );
  } catch (error) {
    const cut = error instanceof SwitchyardError && error.code === 'node_unreachable';
    if (pending === null || !cut) throw error;
    return { pending, error };
  }
}

/** Null when the agent does not know that key, or is not the one that showed that fingerprint. */
async function resumed({ address, options }: Attempt, pending: PendingPairing): Promise<PairedAgent | null> {
  try {
    return await dial(dialOptions(address, pending.fingerprint, options), async ({ ws, socket, binding }) => {
      const { node } = await resumeAsController(socket, {
        controller: options.controller,
        binding,
        secret: pending.key,
      });
      ws.terminate();
      return { node, ...pending, address: formatAddress(address) };
    });
  } catch (error) {
    if (error instanceof SwitchyardError && (error.code === 'join_refused' || error.code === 'identity_changed')) {
      return null;
    }
    throw error;
  }
}

function dialOptions(address: AgentAddress, fingerprint: string | null, options: PairOptions) {
  const fingerprints = fingerprint === null ? null : [fingerprint];
  return { address, fingerprints, clock: options.clock, maxMessageBytes: MAX_HANDSHAKE_BYTES };
}
