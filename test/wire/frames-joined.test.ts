import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { FRAME, FrameWriter, MAX_DATA_BYTES, readFrames } from '../../agent/wire/frames.ts';

interface Got {
  readonly type: number;
  readonly id: number;
  readonly bytes: string;
}

function written(write: (writer: FrameWriter) => void): Got[] {
  const got: Got[] = [];
  const writer = new FrameWriter((message) => {
    const wrong = readFrames(message, (type, id, of, start, end) => {
      got.push({ type, id, bytes: of.toString('latin1', start, end) });
      return null;
    });
    expect(wrong).toBeNull();
  });
  write(writer);
  writer.flush();
  return got;
}

const data = (id: number, bytes: string): Got => ({ type: FRAME.data, id, bytes });
const put = (writer: FrameWriter, id: number, bytes: string) => writer.data(id, Buffer.from(bytes, 'latin1'));

describe('bytes of one stream that wait for the same message', () => {
  it('are one frame while nothing stands between them', () => {
    const got = written((writer) => {
      put(writer, 1, 'a');
      put(writer, 1, 'b');
      put(writer, 2, 'c');
      put(writer, 1, 'd');
      writer.cancel(3);
      put(writer, 1, 'e');
      writer.flush();
      put(writer, 1, 'f');
    });
    const cancel = { type: FRAME.cancel, id: 3, bytes: '' };
    expect(got).toEqual([data(1, 'ab'), data(2, 'c'), data(1, 'd'), cancel, data(1, 'e'), data(1, 'f')]);
  });

  it('are as many frames as the longest one makes necessary', () => {
    const half = 'x'.repeat(MAX_DATA_BYTES / 2);
    const got = written((writer) => {
      for (const bytes of [half, half, 'y']) put(writer, 1, bytes);
    });
    expect(got).toEqual([data(1, half + half), data(1, 'y')]);
  });

  it('arrive as they were written, between whatever other frames', () => {
    const step = fc.oneof(
      {
        weight: 6,
        arbitrary: fc.record({ id: fc.integer({ min: 1, max: 3 }), length: fc.integer({ min: 1, max: 40 }) }),
      },
      {
        weight: 1,
        arbitrary: fc.record({ id: fc.integer({ min: 1, max: 3 }), length: fc.constant(MAX_DATA_BYTES - 7) }),
      },
      { weight: 1, arbitrary: fc.constantFrom('flush' as const, 'window' as const) },
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const sent = new Map<number, string>();
        const got = written((writer) => {
          for (const [at, each] of steps.entries()) {
            if (each === 'flush') writer.flush();
            else if (each === 'window') writer.window(9, at + 1);
            else {
              const bytes = String.fromCharCode(65 + (at % 26)).repeat(each.length);
              sent.set(each.id, (sent.get(each.id) ?? '') + bytes);
              put(writer, each.id, bytes);
            }
          }
        });
        for (const [id, bytes] of sent) {
          const arrived = got.filter((frame) => frame.type === FRAME.data && frame.id === id);
          expect(arrived.map((frame) => frame.bytes).join('')).toBe(bytes);
        }
        expect(got.every(({ bytes }) => bytes.length <= MAX_DATA_BYTES)).toBe(true);
      }),
      { numRuns: 200 },
    );
  });
});
