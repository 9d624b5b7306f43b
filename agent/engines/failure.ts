import type { CallFailure } from '../wire/calls.ts';

type Code = CallFailure['code'];
type Blame = CallFailure['blame'];

export interface FailureDetails {
  readonly blame?: Blame;
  readonly engineStatus?: number;
  readonly retryAfterMs?: number;
  readonly failing?: CallFailure['failing'];
  readonly limitTokens?: number | null;
  readonly afterFirstByte?: boolean;
}

/** Who is to blame unless the place that fails knows better, and the sentence a person reads. */
const TABLE: Readonly<Record<Code, readonly [Blame, string]>> = {
  input_too_long: ['caller', 'An input is longer than the model can read.'],
  context_too_long: ['caller', 'Prompt and answer do not fit the context window of the model.'],
  empty_input: ['caller', 'An input is empty.'],
  engine_refused: ['caller', 'The engine refused the request as malformed.'],
  engine_busy: ['busy', 'Every slot of the engine is taken.'],
  engine_error: ['engine', 'The engine failed.'],
  engine_invalid_response: ['engine', 'The engine answered with something that cannot be used.'],
  engine_timeout: ['engine', 'The engine did not answer in time.'],
  stream_interrupted: ['engine', 'The answer broke off before its end.'],
  engine_unreachable: ['engine', 'Nothing answers at the address of the engine.'],
  model_missing: ['engine', 'The engine does not have this model.'],
  fingerprint_changed: ['fingerprint', 'Another process answers than the one that was checked.'],
  unsupported_task: ['engine', 'The engine is not set up for this kind of work.'],
};

/** A call that failed, in the wire's own terms. Carries nothing that the engine said. */
export class EngineFailure extends Error {
  readonly failure: CallFailure;

  constructor(code: Code, details: FailureDetails = {}, sentence?: string) {
    const [blame, standard] = TABLE[code];
    super(sentence ?? standard);
    this.name = 'EngineFailure';
    this.failure = {
      blame: details.blame ?? blame,
      code,
      sentence: sentence ?? standard,
      engineStatus: details.engineStatus ?? null,
      retryAfterMs: details.retryAfterMs ?? null,
      failing: details.failing ?? [],
      limitTokens: details.limitTokens ?? null,
      afterFirstByte: details.afterFirstByte ?? false,
    };
  }
}

/** Anything thrown while a call was served becomes a failure; what is not ours is our fault, and its message stays here. */
export function failureOf(error: unknown): CallFailure {
  if (error instanceof EngineFailure) return error.failure;
  return new EngineFailure('engine_error', {}, 'The agent could not serve this call.').failure;
}
