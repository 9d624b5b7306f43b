import { load } from '../load.ts';
import { newKey } from '../processes.ts';
import type { Row } from '../report.ts';
import { chatRig } from './chat.ts';

const STREAMS = 500;
const EVERY_MS = 20;
/** Requests that one key may have in flight. */
const KEY_STREAMS = 64;

const body = (chunks: number, everyMs: number) =>
  JSON.stringify({
    model: 'code-assistant',
    messages: [{ role: 'user', content: 'go on' }],
    stream: true,
    max_tokens: chunks,
    user: `every=${everyMs}`,
  });

export const streaming: Row = {
  name: 'streaming',
  async run({ quick }) {
    const rig = await chatRig();
    const short = body(50, 0);
    const { firstByte } = await load({
      kind: 'sequential',
      targets: [rig.direct(short), rig.ours(short)],
      rounds: quick ? 300 : 1000,
      warmUp: 300,
    });
    const long = body(quick ? 200 : 750, EVERY_MS);
    const direct = await load({ kind: 'streams', targets: [rig.direct(long)], count: STREAMS });
    const targets = [];
    for (let at = 0; at * KEY_STREAMS < STREAMS; at += 1) {
      const key = await newKey(rig.plane, `bench ${at}`);
      targets.push({ ...rig.ours(long), headers: { authorization: `Bearer ${key}` } });
    }
    await rig.plane.stats();
    const ours = await load({ kind: 'streams', targets, count: STREAMS });
    await rig.stop();
    const p50 = (at: number) => firstByte[at]?.p50 ?? Number.NaN;
    return [
      { name: 'first byte of 50 chunks: direct p50', value: p50(0), unit: 'ms', goal: null },
      { name: 'first byte of 50 chunks: Switchyard adds p50', value: p50(1) - p50(0), unit: 'ms', goal: ['<=', 1] },
      {
        name: `${STREAMS} streams x 50 chunks/s: direct p99.9 lateness`,
        value: direct.due.p999,
        unit: 'ms',
        goal: null,
      },
      { name: `${STREAMS} streams x 50 chunks/s: p99 lateness`, value: ours.due.p99, unit: 'ms', goal: null },
      { name: `${STREAMS} streams x 50 chunks/s: p99.9 lateness`, value: ours.due.p999, unit: 'ms', goal: ['<=', 50] },
      { name: 'of it after the engine wrote them: p99.9', value: ours.sent.p999, unit: 'ms', goal: null },
      { name: 'streams that broke', value: ours.broken, unit: '', goal: ['<=', 0] },
    ];
  },
};
