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
    const running = this.#running.get(name);
    if (running !== undefined) {
      if (running.bodySha256 !== bodySha256) throw new SwitchyardError('idempotency_mismatch');
      if (!running.answer.joinable) throw new SwitchyardError('idempotency_running');
      running.answer.join(reply);
      return;
    }
    let claimed = false;
    const answer = new SharedAnswer((whole) => void this.#settle(name, scope, claimed ? whole : null, claimed));
    // In the map before the store is asked, so that a twin that comes meanwhile joins instead of claiming too.
    this.#running.set(name, { bodySha256, answer });
    answer.join(reply);
    let claim: IdempotencyClaim;
    try {
      claim = await this.#store.claim(scope, bodySha256);
    } catch {
      errorReply(answer, new SwitchyardError('idempotency_unavailable'), form);
      return;
    }
    if (claim.state === 'stored') replay(answer, claim.answer);
    else if (claim.state === 'other-body') errorReply(answer, new SwitchyardError('idempotency_mismatch'), form);
    else if (claim.state === 'running') errorReply(answer, new SwitchyardError('idempotency_running'), form);
    else {
      claimed = true;
      // Everybody left while the store was asked: the claim is given back, nothing runs.
      if (answer.gone) await this.#settle(name, scope, null, true);
      else await run(answer);
    }
  }

  /** Keeps or gives back; stays in the map until the store knows, so that no twin runs in between. */
  async #settle(name: string, scope: IdempotencyScope, whole: StoredAnswer | null, claimed: boolean): Promise<void> {
    try {
      if (!claimed) return;
      if (whole !== null && isKept(whole.status)) await this.#store.complete(scope, whole);
      else await this.#store.forget(scope);
    } catch {
      // The answer has been given; the store keeps its own count of what it could not write.
    } finally {
      this.#running.delete(name);
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
