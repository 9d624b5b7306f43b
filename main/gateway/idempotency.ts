import { hash } from 'node:crypto';
import { SwitchyardError } from '../domain/errors.ts';
import { errorReply } from './error-reply.ts';
import type { ErrorForm } from './errors.ts';
import type { Reply } from './http-reply.ts';
import { invalidField } from './json-body.ts';
import type { IdempotencyClaim, IdempotencyScope, IdempotencyStore, StoredAnswer } from './ports.ts';
import { SharedAnswer } from './shared-answer.ts';

/** Refusals that another moment or another key may lift: replaying them for a day would be wrong. */
const NOT_THE_CALLERS = new Set([401, 403, 408, 429, 499]);
const REPLAYED = ['idempotent-replayed', 'true'];

interface Running {
  readonly bodySha256: string;
  readonly answer: SharedAnswer;
  /** Resolves when the store knows how it ended and another may run. */
  readonly settled: Promise<void>;
}

/** @throws SwitchyardError invalid_request for a key that is no key */
export function idempotencyKey(header: string | string[] | undefined): string | null {
  if (header === undefined) return null;
  if (typeof header !== 'string' || !/^[!-~]{1,255}$/.test(header)) {
    throw invalidField('Idempotency-Key', 'must be 1 to 255 printable ASCII characters');
  }
  return header;
}

/**
 * Runs a request with an Idempotency-Key once: the same body again joins the call in flight or gets the stored answer, another
 * body is refused, and when the store cannot say which it is, nothing runs.
 */
export class Idempotency {
  readonly #store: IdempotencyStore;
  readonly #running = new Map<string, Running>();

  constructor(store: IdempotencyStore) {
    this.#store = store;
  }

  /**
   * @param run does the work and answers on the reply it is given
   * @throws SwitchyardError idempotency_mismatch, idempotency_running
   */
  async serve(
    scope: IdempotencyScope,
    body: Uint8Array,
    form: ErrorForm,
    reply: Reply,
    run: (shared: Reply) => void | Promise<void>,
  ): Promise<void> {
    const bodySha256 = hash('sha256', body, 'hex');
    const name = JSON.stringify([scope.project, scope.route, scope.key]);
    for (let running = this.#running.get(name); running !== undefined; running = this.#running.get(name)) {
      if (running.bodySha256 !== bodySha256) throw new SwitchyardError('idempotency_mismatch');
      if (running.answer.joinable) {
        running.answer.join(reply);
        return;
      }
      if (!running.answer.gone) throw new SwitchyardError('idempotency_running');
      // Everybody left it. It is given back in a moment, and then this one may run.
      await running.settled;
    }
    let claimed = false;
    let claiming = true;
    let settle = () => {};
    const settled = new Promise<void>((resolve) => {
      settle = resolve;
    });
    const end = async (whole: StoredAnswer | null) => {
      await this.#settle(scope, whole, claimed);
      if (this.#running.get(name)?.answer === answer) this.#running.delete(name);
      settle();
    };
    const answer: SharedAnswer = new SharedAnswer((whole) => {
      // While the store is asked nobody knows whether there is a claim to give back: that is done below.
      if (!claiming) void end(claimed ? whole : null);
    });
    // In the map before the store is asked, so that a twin that comes meanwhile joins instead of claiming too.
    this.#running.set(name, { bodySha256, answer, settled });
    answer.join(reply);
    let claim: IdempotencyClaim;
    try {
      claim = await this.#store.claim(scope, bodySha256);
    } catch {
      claiming = false;
      if (answer.gone) await end(null);
      else errorReply(answer, new SwitchyardError('idempotency_unavailable'), form);
      return;
    }
    claiming = false;
    claimed = claim.state === 'claimed';
    // Everybody left while the store was asked: a claim is given back, nothing runs.
    if (answer.gone) await end(null);
    else if (claim.state === 'stored') replay(answer, claim.answer);
    else if (claim.state === 'other-body') errorReply(answer, new SwitchyardError('idempotency_mismatch'), form);
    else if (claim.state === 'running') errorReply(answer, new SwitchyardError('idempotency_running'), form);
    else await run(answer);
  }

  /** Keeps or gives back; the entry stays in the map until the store knows, so that no twin runs in between. */
  async #settle(scope: IdempotencyScope, whole: StoredAnswer | null, claimed: boolean): Promise<void> {
    if (!claimed) return;
    try {
      if (whole !== null && isKept(whole.status)) await this.#store.complete(scope, whole);
      else await this.#store.forget(scope);
    } catch {
      // The answer has been given; the store keeps its own count of what it could not write.
    }
  }
}

function isKept(status: number): boolean {
  return (status >= 200 && status < 300) || (status >= 400 && status < 500 && !NOT_THE_CALLERS.has(status));
}

function replay(answer: SharedAnswer, stored: StoredAnswer): void {
  answer.head(stored.status, [...stored.headers, ...REPLAYED]);
  answer.end(stored.body);
}
