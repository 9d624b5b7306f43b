import fc from 'fast-check';
import { expect, it } from 'vitest';
import { INITIAL_WINDOW_BYTES } from '../../agent/wire/frames.ts';
import { HIGH_WATER_BYTES } from '../../agent/wire/mux.ts';
import type { IncomingCall, OutgoingCall } from '../../agent/wire/stream.ts';
import { busy, chatHead, Heard, okHead, pattern, SimulatedLink, trailers } from './simulated-link.ts';

const KIB = 1024;

const size = fc.oneof(
  { weight: 4, arbitrary: fc.integer({ min: 0, max: 300 }) },
  { weight: 2, arbitrary: fc.integer({ min: 1, max: 70 * KIB }) },
  { weight: 1, arbitrary: fc.integer({ min: 1, max: 600 * KIB }) },
);

/** One call's life: what is asked, what the agent writes, how it ends, how the reader reads, when it loses interest. */
const plan = fc.record({
  body: size,
  chunks: fc.array(size, { maxLength: 12 }),
  ending: fc.constantFrom('end', 'fail', 'hang'),
  /** The reader pauses after each chunk whose turn in this list is true. */
  pauses: fc.array(fc.boolean(), { maxLength: 6 }),
  /** Steps of the run until the reader leaves; past the run: never. */
  cancelAt: fc.oneof(fc.constant(Number.POSITIVE_INFINITY), fc.integer({ min: 0, max: 120 })),
  opensAt: fc.integer({ min: 0, max: 40 }),
  obeysPressure: fc.boolean(),
});
type Plan = typeof plan extends fc.Arbitrary<infer T> ? T : never;

/** Payload bytes of data frames per stream, read off the wire by a reader of the test's own. */
class Tap {
  readonly bytes = new Map<number, number>();
  #seen = 0;
  readonly #sent: readonly Buffer[];

  constructor(sent: readonly Buffer[]) {
    this.#sent = sent;
  }

  read(): void {
    for (; this.#seen < this.#sent.length; this.#seen += 1) {
      const message = this.#sent[this.#seen] ?? Buffer.alloc(0);
      for (let at = 0; at < message.length; ) {
        const length = message.readUIntBE(at + 1, 3);
        const id = message.readUIntBE(at + 4, 6);
        if (message[at] === 3) this.bytes.set(id, (this.bytes.get(id) ?? 0) + length);
        at += 10 + length;
      }
    }
  }
}

class Run {
  readonly link: SimulatedLink;
  readonly heard: Heard[];
  readonly calls: (OutgoingCall | undefined)[];
  /** Plan index of each stream id. */
  readonly ids: number[] = [];
  readonly served = new Map<number, IncomingCall>();
  readonly cancelled = new Set<number>();
  readonly wrongBodies: number[] = [];
  readonly #plans: readonly Plan[];

  constructor(plans: readonly Plan[]) {
    this.#plans = plans;
    this.heard = plans.map(() => new Heard());
    this.calls = plans.map(() => undefined);
    this.link = new SimulatedLink((call) => void this.#serve(call), { record: true });
  }

  step(now: number): void {
    this.#plans.forEach((plan, index) => {
      if (plan.opensAt === now) this.#open(plan, index);
      if (plan.cancelAt === now && this.calls[index] !== undefined) {
        this.cancelled.add(index);
        this.calls[index]?.cancel();
      }
    });
  }

  /** A reader that has paused goes on. */
  resume(index: number): void {
    this.heard[index]?.take();
    this.calls[index]?.resume();
  }

  #open(plan: Plan, index: number): void {
    const heard = this.heard[index];
    if (heard === undefined) return;
    let turn = 0;
    heard.accept = () => {
      turn += 1;
      return plan.pauses[turn % Math.max(1, plan.pauses.length)] !== true;
    };
    this.ids.push(index);
    const head = { ...chatHead, model: String(index) };
    this.calls[index] = this.link.controller.open(head, pattern(index, plan.body), heard.handlers);
  }

  async #serve(call: IncomingCall): Promise<void> {
    const index = Number(call.head.model);
    const plan = this.#plans[index];
    if (plan === undefined) return;
    this.served.set(index, call);
    if (!pattern(index, plan.body).equals(call.body)) this.wrongBodies.push(index);
    call.respond(okHead);
    const answer = answerOf(plan, index);
    let at = 0;
    for (const length of plan.chunks) {
      const room = call.write(answer.subarray(at, at + length));
      at += length;
      if (!room && plan.obeysPressure) await call.drained();
    }
    if (plan.ending === 'end') call.end(trailers);
    if (plan.ending === 'fail') call.fail(busy);
  }
}

function answerOf(plan: Plan, index: number): Buffer {
  return pattern(
    index + 1000,
    plan.chunks.reduce((sum, length) => sum + length, 0),
  );
}

it('carries every call whole and in order, leaks no stream and holds no more than a window, whatever happens', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(plan, { minLength: 1, maxLength: 8 }),
      fc.array(fc.integer({ min: 0, max: 5 }), { minLength: 10, maxLength: 200 }),
      async (plans, moves) => {
        const run = new Run(plans);
        const { link } = run;
        const answers = new Tap(link.toController.sent);
        const check = (): void => {
          answers.read();
          for (const [id, sent] of answers.bytes) {
            const heard = run.heard[run.ids[id - 1] ?? -1];
            const held = sent - (heard?.taken ?? 0);
            // After a cancel nobody takes anything; what was under way is bounded by the same window.
            expect(held).toBeLessThanOrEqual(INITIAL_WINDOW_BYTES);
          }
          // The mark, one block above it, and the small frames of a few streams.
          expect(link.toController.peak).toBeLessThan(HIGH_WATER_BYTES + 160 * KIB);
          expect(link.toAgent.peak).toBeLessThan(HIGH_WATER_BYTES + 160 * KIB);
        };
        for (let now = 0; now < 41 + moves.length; now += 1) {
          run.step(now);
          switch (moves[now % moves.length]) {
            case 0:
              link.tick();
              break;
            case 1:
              link.deliverToAgent();
              break;
            case 2:
              link.deliverToController();
              break;
            case 3:
              run.resume(now % plans.length);
              break;
            default:
              await link.settle();
          }
          check();
        }
        // Everybody reads to the end.
        for (let round = 0; round < 400; round += 1) {
          await link.settle();
          for (const index of plans.keys()) run.resume(index);
          check();
        }
        expect(run.wrongBodies).toEqual([]);
        expect([link.controller.closed, link.agent.closed, link.faults]).toEqual([false, false, []]);
        plans.forEach((given, index) => {
          const heard = run.heard[index];
          if (heard === undefined) return;
          const answer = answerOf(given, index);
          if (run.cancelled.has(index)) {
            // All that came before the reader left was in order.
            expect(answer.subarray(0, heard.bytes).equals(heard.content())).toBe(true);
            expect(heard.ends.length).toBeLessThanOrEqual(1);
            // Its end is heard exactly once: by the last handler, or after the cancel.
            expect(heard.ends.length + heard.cancelled.length).toBe(1);
            if (run.served.has(index) && heard.ends.length === 0) {
              const call = run.served.get(index);
              expect(call?.signal.aborted === true || given.ending !== 'hang').toBe(true);
            }
          } else {
            expect(heard.content().equals(answer)).toBe(true);
            const expected = { end: [trailers], fail: [busy], hang: [] }[given.ending];
            expect(heard.ends).toEqual(expected);
          }
        });
        const hanging = plans.filter((given, index) => given.ending === 'hang' && !run.cancelled.has(index)).length;
        expect([link.controller.openCalls, link.agent.openCalls]).toEqual([hanging, hanging]);
        link.controller.close();
        link.agent.close();
        expect([link.controller.openCalls, link.agent.openCalls]).toEqual([0, 0]);
        for (const [index, heard] of run.heard.entries()) {
          expect(heard.ends.length).toBe(run.cancelled.has(index) ? heard.ends.length : 1);
        }
      },
    ),
    { numRuns: 150 },
  );
}, 60_000);
