import type { ProviderId, SpaceId } from '../domain/ids.ts';
import { sameFingerprint } from '../domain/verdict.ts';
import { least, matrix, row, rowCosines, stack } from './compare.ts';
import type { Findings } from './findings.ts';
import type { Encoder } from './probe-port.ts';
import { anchorTexts } from './probes.ts';
import { hasAnchor } from './space.ts';
import type { SpaceBook } from './space-book.ts';
import type { Verification } from './verification.ts';
import type { Verifier } from './verifier.ts';

/** Connections remembered as probed, per provider and space; an old one is probed again. */
const REMEMBERED = 32;
const PROBES = 3;

/**
 * An engine without a process mark may have been exchanged behind its address without a sign. So three probes precede the
 * first text on each new connection. Cloud upstreams have no process to mark; their re-runs look for drift instead.
 */
export class Preflight {
  readonly #verifier: Verifier;
  readonly #findings: Findings;
  readonly #verification: Verification;
  readonly #spaces: SpaceBook;
  readonly #encoders: ReadonlyMap<ProviderId, Encoder>;
  readonly #probed = new Map<string, string[]>();
  readonly #running = new Map<string, Promise<boolean>>();

  constructor(
    verifier: Verifier,
    findings: Findings,
    verification: Verification,
    spaces: SpaceBook,
    encoders: ReadonlyMap<ProviderId, Encoder>,
  ) {
    this.#verifier = verifier;
    this.#findings = findings;
    this.#verification = verification;
    this.#spaces = spaces;
    this.#encoders = encoders;
  }

  needed(provider: ProviderId, space: SpaceId, connection: string): boolean {
    const verdict = this.#findings.verdict(provider, space);
    if (verdict?.fingerprint?.processMark !== null) return false;
    if (this.#encoders.get(provider)?.provider.kind === 'cloud') return false;
    return !(this.#probed.get(`${provider} ${space}`)?.includes(connection) ?? false);
  }

  /** Joins one that runs for the same connection. */
  run(provider: ProviderId, space: SpaceId, connection: string): Promise<boolean> {
    const key = `${provider} ${space} ${connection}`;
    const running = this.#running.get(key);
    if (running !== undefined) return running;
    const started = this.#probe(provider, space, connection).finally(() => void this.#running.delete(key));
    this.#running.set(key, started);
    return started;
  }

  forget(provider: ProviderId, space: SpaceId): void {
    this.#probed.delete(`${provider} ${space}`);
  }

  async #probe(id: ProviderId, spaceId: SpaceId, connection: string): Promise<boolean> {
    const encoder = this.#encoders.get(id);
    const space = this.#spaces.get(spaceId);
    const before = this.#findings.verdict(id, spaceId);
    if (encoder === undefined || space === null || !hasAnchor(space)) return false;
    if (!this.#findings.admitted(id, spaceId)) return false;
    const texts = anchorTexts(space.probes);
    // The first three are short everyday texts: cheap, and what prefixes and pooling change most.
    const chosen = texts.slice(0, PROBES);
    const answer = await this.#verifier.few(
      encoder.provider,
      chosen.map(({ text }) => text),
      { normalise: space.normalise, width: space.width, cutWidths: [], signal: new AbortController().signal },
    );
    // Voided or checked anew while the probes were out: this answer speaks of another verdict.
    if (this.#findings.verdict(id, spaceId) !== before) return false;
    const anchor = matrix(space.anchor, texts.length, space.width);
    const expected = stack(chosen.map((_, i) => matrix(row(anchor, i), 1, space.width)));
    const threshold = this.#findings.threshold(space);
    const passed = before?.fingerprint ?? null;
    const agrees =
      answer !== null &&
      passed !== null &&
      sameFingerprint(answer.fingerprint, passed) &&
      least(rowCosines(answer.vectors, expected)) > threshold;
    if (!agrees) {
      this.#verification.voidAll(id, 'The probes on a new connection did not agree. It is being checked.');
      return false;
    }
    const key = `${id} ${spaceId}`;
    this.#probed.set(key, [...(this.#probed.get(key) ?? []), connection].slice(-REMEMBERED));
    return true;
  }
}
