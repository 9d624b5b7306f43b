import type { Provider } from '../domain/provider.ts';
import type { Clock } from '../domain/time.ts';
import { type Fingerprint, sameFingerprint } from '../domain/verdict.ts';
import { type Matrix, matrix, rows, stack } from './compare.ts';
import type { FailureReason, Measurement, MeasureOutcome, OverLimitFinding } from './measurement.ts';
import type { ProbeFailure, ProbePort } from './probe-port.ts';
import { anchorTexts, type SpaceProbes } from './probes.ts';

export interface MeasureOptions {
  readonly normalise: boolean;
  /** Width of the space; null at founding: any. */
  readonly width: number | null;
  readonly cutWidths: readonly number[];
  readonly signal: AbortSignal;
}

/** A call that has not been answered after this long is given up (the agent's own time-out should come before). */
const CALL_DEADLINE_MS = 120_000;
/** A busy engine is asked again this often before the verification is put off. */
const BUSY_TRIES = 6;
const BUSY_WAIT_MS = 500;
const BUSY_WAIT_LIMIT_MS = 8000;

const TOO_LONG = new Set(['input_too_long', 'context_too_long']);

/** Leaves a measurement early; never escapes this file. */
class Stopped extends Error {
  readonly outcome: MeasureOutcome;

  constructor(outcome: MeasureOutcome) {
    super(outcome.outcome);
    this.outcome = outcome;
  }
}

type CallResult =
  | { readonly failure: null; readonly vectors: Matrix; readonly fingerprint: Fingerprint }
  | { readonly failure: 'too-long' | 'empty' | FailureReason };

/** Sends probes through the port and gathers what came back. Compares nothing but the process they came from. */
export class Verifier {
  readonly #port: ProbePort;
  readonly #clock: Clock;

  constructor(port: ProbePort, clock: Clock) {
    this.#port = port;
    this.#clock = clock;
  }

  /** Runs the whole list on one provider. Never rejects. */
  async measure(provider: Provider, probes: SpaceProbes, options: MeasureOptions): Promise<MeasureOutcome> {
    const run = new Run(this, provider, options);
    try {
      return { outcome: 'measured', measurement: await run.all(probes) };
    } catch (error) {
      if (options.signal.aborted) return { outcome: 'aborted' };
      if (error instanceof Stopped) return error.outcome;
      throw error;
    }
  }

  /** Null when the engine cannot count, does not answer, or answers something else than counts. */
  async count(provider: Provider, texts: readonly string[], signal: AbortSignal): Promise<readonly number[] | null> {
    const counts = await this.#settled(this.#port.tokenize(provider, texts, signal), signal);
    if (counts === null || counts.length !== texts.length) return null;
    return counts.every((value) => Number.isInteger(value) && value >= 0) ? counts : null;
  }

  /** One embed call; a busy engine is asked again with growing patience. */
  async call(
    provider: Provider,
    texts: readonly string[],
    options: MeasureOptions,
    cut: number | null,
  ): Promise<CallResult> {
    const { normalise, signal } = options;
    for (let attempt = 1; ; attempt++) {
      if (signal.aborted) throw new Stopped({ outcome: 'aborted' });
      const answer = await this.#settled(
        this.#port.embed(provider, texts, { normalise, width: null, cut, signal }),
        signal,
      );
      if (answer === null) return { failure: 'timeout' };
      if (answer.failure === null) {
        const { vectors, count, width, fingerprint } = answer;
        if (count !== texts.length) return { failure: 'count' };
        if (!(width > 0) || vectors.length !== count * width) return { failure: 'unusable' };
        return { failure: null, vectors: matrix(vectors, count, width), fingerprint };
      }
      if (answer.failure.blame !== 'busy') return { failure: reasonOf(answer.failure) };
      if (attempt >= BUSY_TRIES) return { failure: 'busy' };
      const wait = Math.max(answer.failure.retryAfterMs ?? 0, BUSY_WAIT_MS * 2 ** (attempt - 1));
      await this.#pause(Math.min(wait, BUSY_WAIT_LIMIT_MS), signal);
    }
  }

  /** The promise's value; null after the deadline, on abort, or when it rejects: a port must not, but may be broken. */
  #settled<T>(promise: Promise<T>, signal: AbortSignal): Promise<T | null> {
    return new Promise((resolve) => {
      const finish = (value: T | null): void => {
        cancel();
        signal.removeEventListener('abort', onAbort);
        resolve(value);
      };
      const onAbort = (): void => finish(null);
      const cancel = this.#clock.after(CALL_DEADLINE_MS, onAbort);
      signal.addEventListener('abort', onAbort, { once: true });
      promise.then(finish, onAbort);
    });
  }

  #pause(delayMs: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const finish = (): void => {
        cancel();
        signal.removeEventListener('abort', finish);
        resolve();
      };
      const cancel = this.#clock.after(delayMs, finish);
      signal.addEventListener('abort', finish, { once: true });
    });
  }
}

function reasonOf(failure: ProbeFailure): 'too-long' | 'empty' | FailureReason {
  if (TOO_LONG.has(failure.code)) return 'too-long';
  if (failure.code === 'empty_input') return 'empty';
  if (failure.code === 'engine_timeout') return 'timeout';
  if (failure.code === 'engine_invalid_response') return 'unusable';
  switch (failure.blame) {
    case 'busy':
      return 'busy';
    case 'transport':
      return 'unreachable';
    case 'fingerprint':
      return 'moved';
    case 'caller':
      return 'refused';
    case 'engine':
      return 'engine';
  }
}

type Named = { readonly id: string; readonly text: string };

/** One measurement of one provider. */
class Run {
  readonly #verifier: Verifier;
  readonly #provider: Provider;
  readonly #options: MeasureOptions;
  #width: number | null;
  #fingerprint: Fingerprint | null = null;

  constructor(verifier: Verifier, provider: Provider, options: MeasureOptions) {
    this.#verifier = verifier;
    this.#provider = provider;
    this.#options = options;
    this.#width = options.width;
  }

  async all(probes: SpaceProbes): Promise<Measurement> {
    const texts = anchorTexts(probes);
    const singles = await this.singles(texts);
    const batched = stack([await this.#batches(probes.texts), await this.#batches(probes.equalLength)]);
    const { before, again } = await this.#repeats(texts, singles);
    const overLimit = await this.#overLimit(probes);
    const cuts: Matrix[] = [];
    for (const width of this.#options.cutWidths) {
      const cut = await this.#cut(probes.texts, width);
      if (cut !== null) cuts.push(cut);
    }
    const fingerprint = this.#fingerprint;
    if (fingerprint === null) throw new Stopped({ outcome: 'failed', reason: 'engine', fingerprint: null });
    return { fingerprint, singles, batched, before, again, overLimit, cuts };
  }

  async singles(texts: readonly Named[]): Promise<Matrix> {
    const parts: Matrix[] = [];
    for (const text of texts) parts.push(await this.#vectors([text]));
    return stack(parts);
  }

  /** As production does: at most `maxBatch` inputs a call. */
  async #batches(texts: readonly Named[]): Promise<Matrix> {
    const size = Math.max(1, this.#provider.maxBatch);
    const parts: Matrix[] = [];
    for (let from = 0; from < texts.length; from += size) {
      parts.push(await this.#vectors(texts.slice(from, from + size)));
    }
    return stack(parts);
  }

  /** A short, a middle and the longest text once more alone, then the same text twice in one batch. */
  async #repeats(
    texts: readonly Named[],
    singles: Matrix,
  ): Promise<{ readonly before: Matrix; readonly again: Matrix }> {
    const byLength = texts
      .map(({ text }, index) => ({ index, length: text.length }))
      .sort((a, b) => a.length - b.length);
    const chosen = [0.2, 0.5, 1].map((share) => byLength[Math.round(share * (byLength.length - 1))]?.index ?? 0);
    const before: Matrix[] = chosen.map((index) => rows(singles, index, index + 1));
    const again = await this.singles(chosen.flatMap((index) => texts[index] ?? []));
    const twin = texts[chosen[1] ?? 0];
    if (twin === undefined || this.#provider.maxBatch < 2) return { before: stack(before), again };
    const twins = await this.#vectors([twin, twin]);
    return { before: stack([...before, rows(twins, 0, 1)]), again: stack([again, rows(twins, 1, 2)]) };
  }

  async #overLimit({ overLimit }: SpaceProbes): Promise<OverLimitFinding> {
    const vectors: Matrix[] = [];
    for (const text of [overLimit.base, overLimit.otherTail, overLimit.otherHead]) {
      const result = await this.#verifier.call(this.#provider, [text], this.#options, null);
      if (result.failure === 'too-long') return { answer: 'refused' };
      vectors.push(this.#accept(result, 'over-limit'));
    }
    const [base, otherTail, otherHead] = vectors;
    if (base === undefined || otherTail === undefined || otherHead === undefined) return { answer: 'refused' };
    return { answer: 'vectors', base, otherTail, otherHead };
  }

  /** Null when this width cannot be had: that costs the width, not the verdict. */
  async #cut(texts: readonly Named[], width: number): Promise<Matrix | null> {
    const size = Math.max(1, this.#provider.maxBatch);
    const parts: Matrix[] = [];
    for (let from = 0; from < texts.length; from += size) {
      const some = texts.slice(from, from + size).map(({ text }) => text);
      const result = await this.#verifier.call(this.#provider, some, this.#options, width);
      if (result.failure === 'moved') throw new Stopped({ outcome: 'moved' });
      if (result.failure !== null || result.vectors.width !== width) return null;
      this.#sameProcess(result.fingerprint);
      parts.push(result.vectors);
    }
    return stack(parts);
  }

  async #vectors(texts: readonly Named[]): Promise<Matrix> {
    const result = await this.#verifier.call(
      this.#provider,
      texts.map(({ text }) => text),
      this.#options,
      null,
    );
    return this.#accept(result, texts[0]?.id ?? '');
  }

  #accept(result: CallResult, probe: string): Matrix {
    const fingerprint = this.#fingerprint;
    switch (result.failure) {
      case null:
        break;
      case 'too-long':
        throw new Stopped({ outcome: 'short', probe, fingerprint });
      case 'moved':
        throw new Stopped({ outcome: 'moved' });
      case 'empty':
        throw new Stopped({ outcome: 'failed', reason: 'refused', fingerprint });
      default:
        throw new Stopped({ outcome: 'failed', reason: result.failure, fingerprint });
    }
    this.#sameProcess(result.fingerprint);
    const { width } = result.vectors;
    this.#width ??= width;
    if (width !== this.#width) throw new Stopped({ outcome: 'width', width, fingerprint: result.fingerprint });
    return result.vectors;
  }

  #sameProcess(fingerprint: Fingerprint): void {
    // A cloud upstream has a pin in place of a process.
    if (this.#provider.kind === 'local' && fingerprint.processMark === null) {
      throw new Stopped({ outcome: 'failed', reason: 'unmarked', fingerprint });
    }
    this.#fingerprint ??= fingerprint;
    if (!sameFingerprint(this.#fingerprint, fingerprint)) throw new Stopped({ outcome: 'moved' });
  }
}
