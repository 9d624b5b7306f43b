import { load, type Target } from '../load.ts';
import { pair, ready, startAgent, startPlane, startStub } from '../processes.ts';
import { median, type Row } from '../report.ts';

const INPUTS = 64;
const CONNECTIONS = 4;

export const embeddings: Row = {
  name: 'embeddings',
  async run({ quick }) {
    const stub = await startStub('embed');
    const agent = await startAgent([stub.url]);
    const plane = await startPlane();
    await pair(plane, agent);
    await ready(plane, 'embedding', 1);
    const input = Array.from({ length: INPUTS }, (_, at) => `text number ${at} of the batch`);
    const target = (encoding_format: string): Target => ({
      url: `${plane.endpoint}/v1/embeddings`,
      body: JSON.stringify({ model: 'embedding', input, encoding_format }),
      headers: { authorization: `Bearer ${plane.apiKey}` },
    });
    const answer = await fetch(target('float').url, {
      method: 'POST',
      headers: { ...target('float').headers, 'content-type': 'application/json' },
      body: target('float').body,
    });
    const text = await answer.text();
    const width = (JSON.parse(text) as { data: { embedding: number[] }[] }).data[0]?.embedding.length ?? 0;
    const seconds = quick ? 4 : 10;
    const rates = { parse: [] as number[], base64: [] as number[], float: [] as number[] };
    const stalls = { plane: 0, agent: 0 };
    let failed = 0;
    for (let round = 0; round < 3; round += 1) {
      rates.parse.push((await load({ kind: 'parse', text, seconds })).perSecond);
      await plane.stats();
      await agent.stats();
      for (const form of ['base64', 'float'] as const) {
        const measured = await load({ kind: 'closed', target: target(form), connections: CONNECTIONS, seconds });
        rates[form].push(measured.perSecond);
        failed += measured.failed;
      }
      stalls.plane = Math.max(stalls.plane, (await plane.stats()).stallMaxMs);
      stalls.agent = Math.max(stalls.agent, (await agent.stats()).stallMaxMs);
    }
    await plane.stop();
    await agent.stop();
    await stub.stop();
    const [parse, base64, float] = [median(rates.parse), median(rates.base64), median(rates.float)];
    return [
      { name: `${INPUTS} x ${width}: JSON parse + stringify`, value: parse, unit: 'batches/s', goal: null },
      { name: 'base64 at both ends', value: base64, unit: 'batches/s', goal: null },
      { name: 'base64 against parse + stringify', value: base64 / parse, unit: 'x', goal: ['>=', 5] },
      { name: 'floats to the client', value: float, unit: 'batches/s', goal: null },
      { name: 'floats against parse + stringify', value: float / parse, unit: 'x', goal: ['>=', 1] },
      { name: 'longest stall of the control plane', value: stalls.plane, unit: 'ms', goal: ['<=', 20] },
      { name: 'longest stall of the agent', value: stalls.agent, unit: 'ms', goal: ['<=', 20] },
      { name: 'answers that were not 200', value: failed, unit: '', goal: ['<=', 0] },
    ];
  },
};
