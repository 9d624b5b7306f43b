import { type PacedProcess, startPacedProcess } from '../../engines/paced-process.ts';
import { load } from '../load.ts';
import { pair, ready, startAgent, startPlane } from '../processes.ts';
import { type Figure, median, type Row } from '../report.ts';

const RATES = [100, 50, 10];

export const striping: Row = {
  name: 'striping',
  async run({ quick }) {
    const plane = await startPlane();
    const engines: PacedProcess[] = [];
    const agents = [];
    for (const _ of RATES) {
      const engine = await startPacedProcess({ task: 'embed' });
      const agent = await startAgent([engine.url]);
      await pair(plane, agent);
      engines.push(engine);
      agents.push(agent);
    }
    await ready(plane, 'embedding', RATES.length);
    await ready(plane, 'code-embedding', RATES.length);
    for (const [at, engine] of engines.entries()) await engine.setRate(RATES[at] ?? 1);
    let batch = 0;
    const send = async (count: number): Promise<number> => {
      batch += 1;
      const input = Array.from({ length: count }, (_, at) => `text ${at} of batch ${batch}`);
      const target = {
        url: `${plane.endpoint}/v1/embeddings`,
        body: JSON.stringify({ model: 'embedding', input, encoding_format: 'base64' }),
        headers: { authorization: `Bearer ${plane.apiKey}` },
      };
      const { total } = await load({ kind: 'sequential', targets: [target], rounds: 1, warmUp: 0 });
      return total[0]?.p50 ?? Number.NaN;
    };
    const figures: Figure[] = [];
    const sum = RATES.reduce((all, rate) => all + rate, 0);
    await send(128); // the rates become known
    for (const [count, limit] of [
      [512, 1.1],
      [64, 1.35],
    ] as const) {
      const times: number[] = [];
      for (let round = 0; round < (quick ? 3 : 9); round += 1) times.push(await send(count));
      const ideal = (1000 * count) / sum;
      figures.push({
        name: `${count} inputs over ${RATES.join(', ')}/s against the ideal ${Math.round(ideal)} ms`,
        value: median(times) / ideal,
        unit: 'x',
        goal: ['<=', limit],
      });
    }
    await plane.stop();
    for (const agent of agents) await agent.stop();
    for (const engine of engines) await engine.stop();
    return figures;
  },
};
