import { SwitchyardError } from '../domain/errors.ts';
import type { ProviderId, SpaceId } from '../domain/ids.ts';
import type { RoleId } from '../domain/roles.ts';
import type { Clock } from '../domain/time.ts';
import type { VerdictKind } from '../domain/verdict.ts';
import type { EmbedWork } from '../domain/work.ts';
import type { Gate } from '../gate/gate-api.ts';
import type { Space } from '../gate/space.ts';
import type { FittedEmbedWork } from './embed-job.ts';
import { type CountTokens, fitInputs } from './token-limits.ts';

/** A first request waits this long for a space that is being founded (the built-in encoder loads in about two seconds). */
const FOUNDING_WAIT_MS = 60_000;

export interface EmbedPreparation {
  readonly gate: Gate;
  readonly clock: Clock;
  /** Counts tokens with a provider of the space that has passed. */
  readonly countTokens: (space: SpaceId, leave: AbortSignal) => CountTokens;
  /** Providers of a role that serve a model of this name or alias. */
  readonly providersOf: (role: RoleId, model: string) => readonly ProviderId[];
}

/** Findings after which a provider belongs to another space for good, whatever time passes. */
const OUTSIDE: ReadonlySet<VerdictKind> = new Set(['dimension-mismatch', 'vector-incompatible']);

/**
 * Which space an embedding request is answered in, and its inputs cut to that space's limit.
 *
 * @throws SwitchyardError space_mismatch, space_unfounded, space_anchor_lost, unsupported_dimensions, input_too_long.
 */
export async function prepareEmbed(
  work: EmbedWork,
  { gate, clock, countTokens, providersOf }: EmbedPreparation,
  leave: AbortSignal,
): Promise<FittedEmbedWork> {
  const { context, dimensions } = work;
  const space =
    work.space === null
      ? await currentSpace(context.role, gate, clock, leave)
      : assertedSpace(work.space, context.role, gate);
  if (context.model !== null) {
    const verdicts = providersOf(context.role, context.model).map((id) => gate.verdictFor(id, space.id));
    if (verdicts.length > 0 && verdicts.every((kind) => OUTSIDE.has(kind))) {
      throw new SwitchyardError(
        'space_mismatch',
        'Vectors of this model do not belong to the space of its role. Use the role id, or found a space with this model.',
      );
    }
  }
  const asserted = work.space?.split('/')[1];
  const width = dimensions ?? (asserted ? Number(asserted) : space.width);
  if (width !== space.width && !space.cutDimensions.includes(width)) {
    const served = [space.width, ...space.cutDimensions].join(', ');
    throw new SwitchyardError('unsupported_dimensions', `This space serves widths ${served}, not ${width}.`);
  }
  if (asserted && Number(asserted) !== width) {
    throw new SwitchyardError('space_mismatch', 'The asserted space names another width than dimensions.');
  }
  const count = countTokens(space.id, leave);
  const { texts, tokens } = await fitInputs(work.texts, space.limitTokens, work.truncate, count);
  return { context, texts, tokens, space, width };
}

function assertedSpace(asserted: SpaceId, role: RoleId, gate: Gate): Space {
  const space = gate.space(asserted.split('/')[0] as SpaceId);
  if (!space || space.retiredAtMs !== null || space.role !== role) throw new SwitchyardError('space_mismatch');
  if (space.anchor === null) throw new SwitchyardError('space_anchor_lost');
  return space;
}

async function currentSpace(role: RoleId, gate: Gate, clock: Clock, leave: AbortSignal): Promise<Space> {
  const deadline = clock.nowMs() + FOUNDING_WAIT_MS;
  for (;;) {
    const now = gate.roleSpace(role);
    if (now.state === 'founded') return now.space;
    if (now.state === 'anchor-lost') throw new SwitchyardError('space_anchor_lost');
    if (now.state === 'unfounded' || clock.nowMs() >= deadline || leave.aborted) {
      const candidates = now.state === 'unfounded' ? now.candidates : [];
      throw new SwitchyardError('space_unfounded', now.state === 'unfounded' ? now.reason : undefined, {
        extra: {
          candidates: candidates.map(({ provider, width, ready, reason }) => ({ provider, width, ready, reason })),
        },
        retryAfterMs: 5_000,
      });
    }
    await nextGateEvent(gate, clock, deadline - clock.nowMs(), leave);
  }
}

/** Resolves at the gate's next event, at the time-out, or when the client leaves. */
function nextGateEvent(gate: Gate, clock: Clock, timeoutMs: number, leave: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      unsubscribe();
      cancelTimer();
      leave.removeEventListener('abort', done);
      resolve();
    };
    const unsubscribe = gate.subscribe(done);
    const cancelTimer = clock.after(timeoutMs, done);
    leave.addEventListener('abort', done, { once: true });
  });
}
