import { z } from 'zod';
import { prepareOpenRouter } from '../../agent/cloud/create.ts';
import { CallHead } from '../../agent/wire/calls.ts';
import { realClock, TestCall } from './driver.ts';

/** The cloud part of an agent as a process of its own; its parent plays the session. */
const Order = z.union([
  z.object({ push: z.instanceof(Uint8Array) }),
  z.object({ call: CallHead, body: z.unknown() }),
  z.object({ crash: z.literal(true) }),
  z.object({ report: z.literal(true) }),
]);
const [baseUrl = '', folder = ''] = process.argv.slice(2);

const make = await prepareOpenRouter({
  clock: realClock,
  folder,
  keyring: process.env.SWITCHYARD_KEYRING,
  baseUrl,
});
const engine = make({
  send: (_, message) => process.send?.({ message }),
  onChange: () => process.send?.({ changed: true }),
});
engine.start();
engine.greet('cp1');

process.on('message', (raw) => {
  const order = Order.parse(raw);
  if ('push' in order) engine.push('cp1', order.push);
  else if ('crash' in order) {
    setTimeout(() => {
      throw new Error('the agent crashes');
    }, 1);
  } else if ('report' in order) process.send?.({ diagnostic: process.report.getReport(), engine: engine.report() });
  else {
    const call = new TestCall(order.call, order.body);
    engine.serve(call);
    void call.over.then(() =>
      process.send?.({ answer: call.text, response: call.response, trailers: call.trailers, failure: call.failure }),
    );
  }
});
process.send?.({ up: true });
