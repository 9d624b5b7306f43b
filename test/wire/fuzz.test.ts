import fc from 'fast-check';
import { expect, it } from 'vitest';
import { AgentMux } from '../../agent/wire/agent-mux.ts';
import { ControllerMux } from '../../agent/wire/controller-mux.ts';
import type { IncomingCall } from '../../agent/wire/stream.ts';
import { busy, chatHead, Heard, okHead, Pipe, pattern, SimulatedLink, trailers } from './simulated-link.ts';

/** What can happen to the messages of a socket that an enemy, or a bug, holds. */
type Damage =
  | { readonly kind: 'flip'; readonly message: number; readonly bit: number }
  | { readonly kind: 'cut'; readonly message: number; readonly at: number }
  | { readonly kind: 'drop'; readonly message: number }
  | { readonly kind: 'twice'; readonly message: number }
  | { readonly kind: 'swap'; readonly message: number; readonly other: number }
  | { readonly kind: 'garbage'; readonly message: number; readonly bytes: Uint8Array }
  /** Frames inside a message change places: each is whole, their order is not. */
  | { readonly kind: 'shuffle'; readonly message: number; readonly turn: number };

const nat = fc.nat({ max: 1_000_000 });
const damage: fc.Arbitrary<Damage> = fc.oneof(
  fc.record({ kind: fc.constant('flip' as const), message: nat, bit: nat }),
  // Most of a message is payload; the first bytes are where it hurts.
  fc.record({ kind: fc.constant('flip' as const), message: nat, bit: fc.nat({ max: 200 }) }),
  fc.record({ kind: fc.constant('cut' as const), message: nat, at: nat }),
  fc.record({ kind: fc.constant('drop' as const), message: nat }),
  fc.record({ kind: fc.constant('twice' as const), message: nat }),
  fc.record({ kind: fc.constant('swap' as const), message: nat, other: nat }),
  fc.record({
    kind: fc.constant('garbage' as const),
    message: nat,
    bytes: fc.uint8Array({ minLength: 0, maxLength: 64 }),
  }),
  fc.record({ kind: fc.constant('shuffle' as const), message: nat, turn: nat }),
);

function framesOf(message: Buffer): Buffer[] {
  const frames: Buffer[] = [];
  for (let at = 0; at + 10 <= message.length; ) {
    const end = Math.min(message.length, at + 10 + message.readUIntBE(at + 1, 3));
    frames.push(message.subarray(at, end));
    at = end;
  }
  return frames;
}

function damaged(messages: readonly Buffer[], damages: readonly Damage[]): Buffer[] {
  const list = [...messages];
  for (const damage of damages) {
    if (list.length === 0) break;
    const index = damage.message % list.length;
    const message = list[index] ?? Buffer.alloc(0);
    switch (damage.kind) {
      case 'flip':
        if (message.length > 0) {
          const bit = damage.bit % (message.length * 8);
          const flipped = Buffer.from(message);
          flipped[bit >> 3] = (flipped[bit >> 3] ?? 0) ^ (1 << (bit & 7));
          list[index] = flipped;
        }
        break;
      case 'cut':
        list[index] = message.subarray(0, damage.at % (message.length + 1));
        break;
      case 'drop':
        list.splice(index, 1);
        break;
      case 'twice':
        list.splice(index, 0, Buffer.from(message));
        break;
      case 'swap': {
        const other = damage.other % list.length;
        list[index] = list[other] ?? message;
        list[other] = message;
        break;
      }
      case 'garbage':
        list.splice(index, 0, Buffer.from(damage.bytes));
        break;
      case 'shuffle': {
        const frames = framesOf(message);
        const turn = damage.turn % Math.max(1, frames.length);
        list[index] = Buffer.concat([...frames.slice(turn), ...frames.slice(0, turn)]);
      }
    }
  }
  return list;
}

function answer(call: IncomingCall): void {
  call.respond(okHead);
  // Damage may have changed the name.
  const index = Number.parseInt(call.head.model, 10) || 0;
  for (let part = 0; part < 4; part += 1) call.write(pattern(index, 500 * (index + 1) * (part + 1)));
  if (index % 4 === 0) call.fail(busy);
  else if (index % 4 !== 1) call.end(trailers);
}

/** Of calls 0 to 7: from nothing to more than a window. */
const BODIES = [0, 10, 2000, 20_000, 70_000, 90_000, 100, 300_000].map((length, index) => pattern(index, length));
const bodyOf = (index: number): Buffer => BODIES[index] ?? Buffer.alloc(0);

/** A recorded conversation of eight calls: small and large bodies, ends, failures, one that hangs, one cancelled. */
async function conversation(): Promise<{ toAgent: Buffer[]; toController: Buffer[] }> {
  const link = new SimulatedLink(answer, { record: true });
  for (let index = 0; index < 8; index += 1) {
    const heard = new Heard();
    const call = link.controller.open({ ...chatHead, model: String(index) }, bodyOf(index), heard.handlers);
    if (index % 3 === 0) link.tick();
    if (index === 5) call.cancel();
  }
  await link.settle();
  return { toAgent: [...link.toAgent.sent], toController: [...link.toController.sent] };
}

it('an agent survives any messages: nothing throws, every call it served ends, nothing stays open', async () => {
  const { toAgent } = await conversation();
  let closed = 0;
  fc.assert(
    fc.property(fc.array(damage, { minLength: 1, maxLength: 6 }), (damages) => {
      const pipe = new Pipe();
      const calls: IncomingCall[] = [];
      const faults: unknown[] = [];
      const agent = new AgentMux(pipe, {
        controller: 'desk',
        serve: (call) => {
          calls.push(call);
          answer(call);
        },
        schedule: (flush) => flush(),
        onFault: (error) => void faults.push(error),
      });
      for (const message of damaged(toAgent, damages)) {
        agent.receive(message);
        pipe.take();
      }
      if (pipe.closedFor !== null) {
        closed += 1;
        expect(agent.closed).toBe(true);
      }
      agent.close();
      expect(agent.openCalls).toBe(0);
      expect(faults).toEqual([]);
      // No stream was served twice.
      expect(new Set(calls).size).toBe(calls.length);
    }),
    { numRuns: 1000 },
  );
  // The damage was felt: had it all been harmless, the test would prove nothing.
  expect(closed).toBeGreaterThan(250);
}, 60_000);

it('a controller survives any messages: nothing throws, every open call ends exactly once', async () => {
  const { toController } = await conversation();
  let closed = 0;
  fc.assert(
    fc.property(fc.array(damage, { minLength: 1, maxLength: 6 }), fc.array(fc.boolean()), (damages, pauses) => {
      const pipe = new Pipe();
      const faults: unknown[] = [];
      const controller = new ControllerMux(pipe, {
        schedule: (flush) => flush(),
        onFault: (error) => void faults.push(error),
      });
      const calls = Array.from({ length: 8 }, (_, index) => {
        const heard = new Heard();
        heard.accept = () => pauses[index] !== true;
        const call = controller.open({ ...chatHead, model: String(index) }, bodyOf(index), heard.handlers);
        if (index === 5) call.cancel();
        return { heard, call };
      });
      for (const message of damaged(toController, damages)) {
        controller.receive(message);
        while (pipe.take() !== undefined);
      }
      if (pipe.closedFor !== null) {
        closed += 1;
        expect(controller.closed).toBe(true);
      }
      controller.close();
      expect(controller.openCalls).toBe(0);
      for (const { heard, call } of calls) {
        heard.accept = () => true;
        call.resume();
        call.resume();
      }
      expect(faults).toEqual([]);
      expect(calls.map(({ heard }) => heard.ends.length)).toEqual([1, 1, 1, 1, 1, 0, 1, 1]);
    }),
    { numRuns: 1000 },
  );
  expect(closed).toBeGreaterThan(250);
}, 60_000);

it('both ends survive random bytes', () => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 300 }), { maxLength: 10 }), (messages) => {
      const [toAgent, toController] = [new Pipe(), new Pipe()];
      const controller = new ControllerMux(toAgent, { schedule: (flush) => flush() });
      const agent = new AgentMux(toController, { controller: 'desk', serve: answer, schedule: (flush) => flush() });
      const heard = new Heard();
      controller.open(chatHead, new Uint8Array(0), heard.handlers);
      for (const message of messages) {
        controller.receive(Buffer.from(message));
        agent.receive(Buffer.from(message));
      }
      if (messages.length > 0) expect([controller.closed, agent.closed]).toEqual([true, true]);
      controller.close();
      agent.close();
      expect(heard.ends).toHaveLength(1);
    }),
    { numRuns: 1000 },
  );
});
