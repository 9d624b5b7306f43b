import { describe, expect, it } from 'vitest';
import { AgentMux } from '../../agent/wire/agent-mux.ts';
import { closedOpener } from '../../agent/wire/controller-mux.ts';
import {
  FRAME,
  FrameWriter,
  INITIAL_WINDOW_BYTES,
  MAX_BODY_BYTES,
  MAX_MESSAGE_BYTES,
} from '../../agent/wire/frames.ts';
import { HIGH_WATER_BYTES, MAX_STREAMS, STALLED_BYTES } from '../../agent/wire/mux.ts';
import type { IncomingCall } from '../../agent/wire/stream.ts';
import { busy, chatHead, Heard, okHead, Pipe, pattern, SimulatedLink, trailers } from './simulated-link.ts';

const KIB = 1024;
const MIB = 1024 * KIB;

/** A link whose calls are kept for the test to answer. */
function linkWithCalls(options: ConstructorParameters<typeof SimulatedLink>[1] = {}) {
  const calls: IncomingCall[] = [];
  const link = new SimulatedLink((call) => void calls.push(call), options);
  const at = (index: number): IncomingCall => {
    const call = calls[index];
    if (call === undefined) throw new Error(`no call ${index}`);
    return call;
  };
  return { link, calls, at };
}

function open(link: SimulatedLink, body: Uint8Array = Buffer.from('{}')) {
  const heard = new Heard();
  return { heard, call: link.controller.open(chatHead, body, heard.handlers) };
}

describe('a call', () => {
  it('carries head, body, answer and trailers as they were given', async () => {
    const { link, at } = linkWithCalls();
    const { heard } = open(link, Buffer.from('{"messages":[]}'));
    await link.settle();
    expect(at(0).head).toEqual(chatHead);
    expect(at(0).controller).toBe('desk');
    expect(Buffer.from(at(0).body).toString()).toBe('{"messages":[]}');
    at(0).respond(okHead);
    expect(at(0).write(Buffer.from('data: 1\n\n'))).toBe(true);
    at(0).write(Buffer.from('data: 2\n\n'));
    at(0).end(trailers);
    await link.settle();
    expect(heard.head).toEqual(okHead);
    expect(heard.content().toString()).toBe('data: 1\n\ndata: 2\n\n');
    expect(heard.ends).toEqual([trailers]);
    expect([link.controller.openCalls, link.agent.openCalls]).toEqual([0, 0]);
  });

  it('with an empty body is served at once', async () => {
    const { link, at } = linkWithCalls();
    open(link, new Uint8Array(0));
    await link.settle();
    expect(at(0).body.length).toBe(0);
  });

  it('that fails before its head says so once, and nothing after', async () => {
    const { link, at } = linkWithCalls();
    const { heard } = open(link);
    await link.settle();
    at(0).fail(busy);
    at(0).fail(busy);
    at(0).end(trailers);
    await link.settle();
    expect(heard.ends).toEqual([busy]);
    expect(heard.head).toBeNull();
  });

  it('gives what was written before its failure', async () => {
    const { link, at } = linkWithCalls();
    const { heard } = open(link);
    await link.settle();
    at(0).respond(okHead);
    at(0).write(pattern(1, 3 * MIB));
    at(0).fail({ ...busy, blame: 'engine', code: 'stream_interrupted', afterFirstByte: true });
    await link.settle();
    expect(heard.content().equals(pattern(1, 3 * MIB))).toBe(true);
    expect(heard.ends).toHaveLength(1);
  });

  it('takes a body of 32 MiB and refuses one byte more as the caller’s fault', async () => {
    const { link, calls, at } = linkWithCalls();
    const body = pattern(7, MAX_BODY_BYTES);
    open(link, body);
    const { heard } = open(link, Buffer.allocUnsafe(MAX_BODY_BYTES + 1));
    await link.settle();
    expect(calls).toHaveLength(1);
    expect(body.equals(at(0).body)).toBe(true);
    expect(heard.ends).toMatchObject([{ blame: 'caller', code: 'engine_refused' }]);
    // Never more in the socket than the mark and the frames of one turn above it.
    expect(link.toAgent.peak).toBeLessThanOrEqual(HIGH_WATER_BYTES + MAX_MESSAGE_BYTES);
  });

  it('whose head is too long for the protocol fails alone', async () => {
    const { link, at } = linkWithCalls();
    const bad = new Heard();
    link.controller.open({ ...chatHead, model: 'x'.repeat(513) }, new Uint8Array(0), bad.handlers);
    const { heard } = open(link);
    await link.settle();
    at(0).respond(okHead);
    at(0).end(trailers);
    await link.settle();
    expect(bad.ends).toMatchObject([{ blame: 'caller' }]);
    expect(heard.ends).toEqual([trailers]);
  });

  it('answered against the rules fails alone as the agent’s own fault', async () => {
    const { link, at } = linkWithCalls();
    const heard = [open(link).heard, open(link).heard, open(link).heard, open(link).heard];
    await link.settle();
    at(0).write(Buffer.from('no head yet'));
    at(1).respond(okHead);
    at(1).respond(okHead);
    at(2).respond({ ...okHead, contentType: 'x'.repeat(513) });
    at(3).respond(okHead);
    at(3).end({ ...trailers, engineMs: Number.NaN });
    await link.settle();
    for (const { ends } of heard) expect(ends).toMatchObject([{ blame: 'engine', code: 'engine_error' }]);
    expect(link.controller.closed).toBe(false);
  });

  it('served by a server that throws fails alone', async () => {
    const link = new SimulatedLink(() => {
      throw new Error('bug');
    });
    const { heard } = open(link);
    await link.settle();
    expect(heard.ends).toMatchObject([{ code: 'engine_error' }]);
    expect(link.faults).toHaveLength(1);
    expect(link.agent.closed).toBe(false);
  });

  it('whose handler throws is ended here and aborted there, others go on', async () => {
    const { link, at } = linkWithCalls();
    const ends: unknown[] = [];
    link.controller.open(chatHead, new Uint8Array(0), {
      onHead: () => {
        throw new Error('bug');
      },
      onData: () => true,
      onEnd: (end) => void ends.push(end),
      onFailure: (failure) => void ends.push(failure),
    });
    const { heard } = open(link);
    await link.settle();
    at(0).respond(okHead);
    at(1).respond(okHead);
    at(1).end(trailers);
    await link.settle();
    expect(ends).toMatchObject([{ code: 'stream_interrupted' }]);
    expect(at(0).signal.aborted).toBe(true);
    expect(heard.ends).toEqual([trailers]);
  });
});

describe('corking', () => {
  it('sends the frames of one turn as one message', async () => {
    const { link, at } = linkWithCalls();
    for (let index = 0; index < 100; index += 1) open(link);
    expect(link.toAgent.waiting).toHaveLength(0);
    link.tick();
    expect(link.toAgent.waiting).toHaveLength(1);
    link.deliverToAgent();
    for (let index = 0; index < 100; index += 1) {
      at(index).respond(okHead);
      at(index).write(Buffer.from('x'));
      at(index).end(trailers);
    }
    link.tick();
    expect(link.toController.waiting).toHaveLength(1);
    await link.settle();
    expect(link.controller.openCalls).toBe(0);
  });

  it('sends a cancel at the end of the same turn, however full the socket is', () => {
    const { link, calls, at } = linkWithCalls();
    const { call, heard } = open(link);
    link.tick();
    link.deliverToAgent();
    // A stalled network: nothing leaves the socket any more.
    link.toAgent.bufferedAmount += HIGH_WATER_BYTES;
    expect(link.controller.congested).toBe(true);
    const before = link.toAgent.waiting.length;
    call.cancel();
    call.cancel();
    link.tick();
    expect(link.toAgent.waiting.length).toBe(before + 1);
    expect(link.toAgent.waiting.at(-1)?.[0]).toBe(FRAME.cancel);
    while (link.deliverToAgent());
    expect(calls.length).toBe(1);
    expect(at(0).signal.aborted).toBe(true);
    expect(heard.ends).toEqual([]);
  });
});

describe('cancelling', () => {
  it('aborts at the agent and frees the stream there at once, here when confirmed', async () => {
    const { link, at } = linkWithCalls();
    const { call, heard } = open(link);
    await link.settle();
    at(0).respond(okHead);
    at(0).write(Buffer.from('early'));
    call.cancel();
    expect(link.controller.openCalls).toBe(1);
    await link.settle();
    expect(at(0).signal.aborted).toBe(true);
    expect([link.controller.openCalls, link.agent.openCalls]).toEqual([0, 0]);
    expect(heard.ends).toEqual([]);
    expect(heard.bytes).toBe(0);
    expect(heard.cancelled).toEqual([null]);
  });

  it('that crosses the end of the call is harmless', async () => {
    const { link, at } = linkWithCalls();
    const { call, heard } = open(link);
    await link.settle();
    at(0).respond(okHead);
    at(0).end(trailers);
    link.tick();
    call.cancel();
    await link.settle();
    expect(heard.ends).toEqual([]);
    expect(at(0).signal.aborted).toBe(false);
    expect([link.controller.openCalls, link.controller.closed, link.agent.closed]).toEqual([0, false, false]);
    expect(heard.cancelled).toEqual([{ trailers }]);
  });

  it('of a call whose answer is complete and not read yet tells how it ended, on either side of the wire', async () => {
    const { link, at } = linkWithCalls();
    const [here, there] = [open(link), open(link)];
    for (const { heard } of [here, there]) heard.accept = () => false;
    await link.settle();
    at(0).respond(okHead);
    at(0).write(Buffer.from('small'));
    at(0).write(Buffer.from('rest'));
    at(0).end(trailers);
    at(1).respond(okHead);
    at(1).write(pattern(1, MIB));
    at(1).end(trailers);
    await link.settle();
    expect([link.controller.openCalls, link.agent.openCalls]).toEqual([1, 1]);
    here.call.cancel();
    there.call.cancel();
    await link.settle();
    expect([here.heard.cancelled, there.heard.cancelled]).toEqual([[{ trailers }], [{ trailers }]]);
    expect([here.heard.ends, there.heard.ends]).toEqual([[], []]);
    expect([link.controller.openCalls, link.agent.openCalls, link.controller.closed]).toEqual([0, 0, false]);
  });

  it('stops a body that is still on its way, and tells that nothing was begun', async () => {
    const { link, calls } = linkWithCalls();
    const { call, heard } = open(link, pattern(1, 8 * MIB));
    link.tick();
    link.deliverToAgent();
    call.cancel();
    await link.settle();
    expect(calls).toHaveLength(0);
    expect(heard.cancelled).toMatchObject([{ failure: { blame: 'transport', code: 'stream_interrupted' } }]);
    expect([link.controller.openCalls, link.agent.openCalls]).toEqual([0, 0]);
  });

  it('wakes a producer that waits for room', async () => {
    const { link, at } = linkWithCalls();
    const { call, heard } = open(link);
    heard.accept = () => false;
    await link.settle();
    at(0).respond(okHead);
    expect(at(0).write(pattern(1, MIB))).toBe(false);
    await link.settle();
    let woken = false;
    void at(0)
      .drained()
      .then(() => {
        woken = true;
      });
    await link.settle();
    expect(woken).toBe(false);
    call.cancel();
    await link.settle();
    expect(woken).toBe(true);
  });
});

describe('flow control', () => {
  it('holds exactly one window for a reader that never reads, and other streams pass it', async () => {
    const { link, at } = linkWithCalls();
    const stuck = open(link);
    stuck.heard.accept = () => false;
    const other = open(link);
    await link.settle();
    at(0).respond(okHead);
    at(1).respond(okHead);
    at(0).write(pattern(1, 8 * MIB));
    await link.settle();
    at(1).write(pattern(2, 2 * MIB));
    at(1).end(trailers);
    await link.settle();
    // The reader was given one frame; the rest of the window waits for it here, nothing else has left the agent.
    expect(stuck.heard.chunks).toHaveLength(1);
    expect(other.heard.content().equals(pattern(2, 2 * MIB))).toBe(true);
    expect(other.heard.ends).toEqual([trailers]);
    // What waits here for the reader comes out without the agent: with what was given it is one window.
    stuck.heard.accept = () => true;
    stuck.call.resume();
    expect(stuck.heard.bytes).toBe(INITIAL_WINDOW_BYTES);
  });

  it('lets a reader that pauses at every chunk have everything in order', async () => {
    const { link, at } = linkWithCalls();
    const { heard, call } = open(link);
    heard.accept = () => false;
    await link.settle();
    at(0).respond(okHead);
    at(0).write(pattern(3, 3 * MIB));
    at(0).end(trailers);
    for (let step = 0; heard.ends.length === 0 && step < 10_000; step += 1) {
      await link.settle();
      heard.take();
      call.resume();
    }
    expect(heard.content().equals(pattern(3, 3 * MIB))).toBe(true);
    expect(heard.ends).toEqual([trailers]);
  });

  it('counts a resume given inside onData', async () => {
    const { link, at } = linkWithCalls();
    const { heard, call } = open(link);
    heard.accept = () => {
      call.resume();
      return false;
    };
    await link.settle();
    at(0).respond(okHead);
    at(0).write(pattern(4, MIB));
    at(0).end(trailers);
    await link.settle();
    expect(heard.bytes).toBe(MIB);
    expect(heard.ends).toEqual([trailers]);
  });

  it('keeps a finished answer for a slow reader even when the socket goes', async () => {
    const { link, at } = linkWithCalls();
    const { heard, call } = open(link);
    heard.accept = () => false;
    await link.settle();
    at(0).respond(okHead);
    at(0).write(pattern(5, 200 * KIB));
    at(0).end(trailers);
    await link.settle();
    link.controller.close();
    heard.accept = () => true;
    call.resume();
    expect(heard.content().equals(pattern(5, 200 * KIB))).toBe(true);
    expect(heard.ends).toEqual([trailers]);
  });

  it('lets large bodies in only as far as there is room, and small ones past them', async () => {
    const { link, calls, at } = linkWithCalls({ bodyPoolBytes: MAX_BODY_BYTES });
    open(link, pattern(1, 20 * MIB));
    open(link, pattern(2, 20 * MIB));
    open(link, pattern(3, 100 * KIB));
    await link.settle();
    expect(calls.map(({ body }) => body.length).sort((a, b) => a - b)).toEqual([100 * KIB, 20 * MIB]);
    const large = calls.findIndex(({ body }) => body.length === 20 * MIB);
    at(large).fail(busy);
    await link.settle();
    expect(calls).toHaveLength(3);
    expect(pattern(2, 20 * MIB).equals(at(2).body)).toBe(true);
  });

  it('takes no more calls than it promised, and says the connection is busy', async () => {
    const { link, calls } = linkWithCalls();
    for (let index = 0; index < MAX_STREAMS; index += 1) open(link);
    const { heard } = open(link);
    await link.settle();
    expect(calls).toHaveLength(MAX_STREAMS);
    expect(heard.ends).toMatchObject([{ blame: 'busy', code: 'engine_busy' }]);
  });
});

describe('a lost socket', () => {
  it('fails every open call once, tells whether bytes had come, and aborts all at the agent', async () => {
    const { link, at } = linkWithCalls();
    const [fresh, begun, cancelled] = [open(link), open(link), open(link)];
    await link.settle();
    at(1).respond(okHead);
    at(1).write(Buffer.from('x'));
    await link.settle();
    cancelled.call.cancel();
    link.controller.close();
    link.controller.close();
    link.agent.close();
    expect(fresh.heard.ends).toMatchObject([{ blame: 'transport', code: 'stream_interrupted', afterFirstByte: false }]);
    expect(begun.heard.ends).toMatchObject([{ afterFirstByte: true }]);
    expect(cancelled.heard.ends).toEqual([]);
    expect([0, 1, 2].map((index) => at(index).signal.aborted)).toEqual([true, true, true]);
    expect(at(1).write(Buffer.from('late'))).toBe(false);
    at(1).end(trailers);
    await link.settle();
    expect([link.controller.openCalls, link.agent.openCalls]).toEqual([0, 0]);
  });

  it('fails calls opened later, after open has returned', async () => {
    const { link } = linkWithCalls();
    link.controller.close();
    const { heard } = open(link);
    const unconnected = new Heard();
    const given = closedOpener.open(chatHead, new Uint8Array(0), unconnected.handlers);
    const cancelled = new Heard();
    closedOpener.open(chatHead, new Uint8Array(0), cancelled.handlers).cancel();
    given.resume();
    expect(heard.ends).toEqual([]);
    await link.settle();
    expect(heard.ends).toMatchObject([{ blame: 'transport' }]);
    expect(unconnected.ends).toMatchObject([{ blame: 'transport' }]);
    expect(cancelled.ends).toEqual([]);
  });

  it('is what a peer gets that sends calls and never reads an answer', () => {
    const pipe = new Pipe();
    const scheduled: (() => void)[] = [];
    const agent = new AgentMux(pipe, {
      controller: 'desk',
      serve: (call) => {
        call.respond(okHead);
        call.end(trailers);
      },
      schedule: (flush) => void scheduled.push(flush),
    });
    const writer = new FrameWriter((message) => agent.receive(message));
    for (let id = 1; id <= 100_000 && !agent.closed; id += 1) {
      writer.open(id, JSON.stringify(chatHead), 0, new Uint8Array(0));
      if (id % 100 === 0) {
        writer.flush();
        for (const flush of scheduled.splice(0)) flush();
      }
    }
    expect(pipe.closedFor).toBe('peer does not read');
    expect(pipe.bufferedAmount).toBeLessThan(STALLED_BYTES + MIB);
  });
});
