import type { CallFailure, CallHead } from '../../agent/wire/calls.ts';
import { CLOUD_ENGINE, splitCloudModel } from '../../agent/wire/cloud.ts';
import type { CallHandlers, CallOpener, OutgoingCall } from '../../agent/wire/stream.ts';
import type { Permit, PermitAsk } from '../budget/permit.ts';
import { upperEstimateUsd } from '../budget/spend.ts';
import type { NodeId, ProjectId } from '../domain/ids.ts';
import type { RoleId } from '../domain/roles.ts';
import type { Clock } from '../domain/time.ts';
import type { BudgetService } from './budget-service.ts';
import { type CloudCatalogue, priceOf } from './catalogue.ts';
import { failedOutcome, succeededOutcome } from './outcome.ts';

/** Under whose name the gate's probes stand in the budget. */
const GATE_PROJECT = 'switchyard-gate' as ProjectId;

/** Counting tokens is no call for OpenRouter: it has no permit and cannot be given one. */
type CloudHead = Exclude<CallHead, { readonly op: 'tokenize' }>;

export interface LaneOptions {
  readonly clock: Clock;
  readonly service: BudgetService;
  readonly catalogue: CloudCatalogue;
  /** A call has failed while somebody waited for it. */
  onFailed?(permit: Permit, failure: CallFailure): void;
}

/** Every cloud call goes through here: with a permit, with its pin, and its end told to the budget. */
export class CloudLane {
  readonly #options: LaneOptions;
  #nextProbe = 1;

  constructor(options: LaneOptions) {
    this.#options = options;
  }

  /**
   * The opener for one dispatched attempt that holds `permit`. `maxTokens`: what the estimate counted for the answer, sent when the
   * client states none.
   */
  withPermit(opener: CallOpener, permit: Permit, maxTokens: number | null): CallOpener {
    return {
      open: (head, body, handlers) =>
        head.op === 'tokenize'
          ? opener.open(head, body, handlers)
          : this.#open(opener, permit, maxTokens, head, body, handlers),
    };
  }

  /**
   * The opener for the gate's probes of one role on one node: calls for OpenRouter take a permit of their own, waiting for it as long
   * as the call may take; all others pass as they are.
   */
  probes(opener: CallOpener, node: NodeId, role: RoleId): CallOpener {
    return {
      open: (head, body, handlers) =>
        head.engine === CLOUD_ENGINE && head.op !== 'tokenize'
          ? this.#probe(opener, node, role, head, body, handlers)
          : opener.open(head, body, handlers),
    };
  }

  #open(
    opener: CallOpener,
    permit: Permit,
    maxTokens: number | null,
    head: CloudHead,
    body: Uint8Array,
    handlers: CallHandlers,
  ): OutgoingCall {
    const { service, catalogue } = this.#options;
    const { role, agent } = permit.ask;
    const pin = catalogue.offer(agent, role, head.model)?.pin ?? null;
    let over = false;
    const once = (end: () => void) => {
      if (over) return;
      over = true;
      end();
    };
    service.sent(permit);
    const call = opener.open({ ...head, cloud: { permit: permit.id, role, pin, maxTokens } }, body, {
      onHead: (got) => handlers.onHead(got),
      onData: (chunk) => handlers.onData(chunk),
      onEnd: (trailers) => {
        once(() => service.ended(permit, succeededOutcome(trailers.usage, trailers.engineMs)));
        handlers.onEnd(trailers);
      },
      onFailure: (failure) => {
        // A failure that the agent did not send is a broken session: its agent may still be at work for 5 s.
        once(() =>
          failure.cloud === undefined ? service.callLost(permit) : service.ended(permit, failedOutcome(failure)),
        );
        this.#options.onFailed?.(permit, failure);
        handlers.onFailure(failure);
      },
      // Stopped now: the agent says when the upstream has ended. Over before: nobody else will.
      onCancelled: (last) => {
        if (last === null) return;
        if ('trailers' in last) service.ended(permit, succeededOutcome(last.trailers.usage, last.trailers.engineMs));
        else if (last.failure.cloud === undefined) service.callLost(permit);
        else service.ended(permit, failedOutcome(last.failure));
      },
    });
    return {
      resume: () => call.resume(),
      cancel: () => {
        call.cancel();
        once(() => service.cancelled(permit));
      },
    };
  }

  #probe(
    opener: CallOpener,
    node: NodeId,
    role: RoleId,
    head: CloudHead,
    body: Uint8Array,
    handlers: CallHandlers,
  ): OutgoingCall {
    const { service, clock, catalogue } = this.#options;
    const offer = catalogue.offer(node, role, head.model);
    const { model, upstream } = splitCloudModel(head.model);
    const ask: PermitAsk = {
      id: `gate${this.#nextProbe++}`,
      project: GATE_PROJECT,
      role,
      class: 'interactive',
      arrivedAtMs: clock.nowMs(),
      agent: node,
      model,
      upstream,
      free: offer?.free ?? false,
      estimateUsd:
        offer === null
          ? null
          : upperEstimateUsd(priceOf(offer), { promptBytes: body.length, maxOutputTokens: 0, documents: 0 }),
    };
    let call: OutgoingCall | null = null;
    let settled = false;
    const settle = () => {
      settled = true;
      unsubscribe();
      stop();
    };
    const attempt = () => {
      if (settled) return;
      const decision = service.budget.acquire(ask, clock.nowMs());
      if (decision.granted) {
        settle();
        call = this.#open(opener, decision.permit, null, head, body, handlers);
      } else service.touched();
    };
    const unsubscribe = service.subscribe(attempt);
    const stop = clock.after(timeoutOf(head), () => {
      settle();
      service.budget.withdraw(ask.project, ask.id);
      handlers.onFailure(NO_PERMIT);
    });
    attempt();
    return {
      resume: () => call?.resume(),
      cancel: () => {
        call?.cancel();
        if (settled) return;
        settle();
        service.budget.withdraw(ask.project, ask.id);
      },
    };
  }
}

const NO_PERMIT: CallFailure = {
  blame: 'busy',
  code: 'engine_busy',
  sentence: 'The cloud budget gave no permit in time.',
  engineStatus: null,
  retryAfterMs: null,
  failing: [],
  limitTokens: null,
  afterFirstByte: false,
};

function timeoutOf(head: CloudHead): number {
  return head.op === 'chat' ? head.firstByteMs : head.timeoutMs;
}
