import { load, type Target, throughput } from '../load.ts';
import { pair, ready, startAgent, startNginx, startPlane, startStub } from '../processes.ts';
import { type Figure, median, type Row } from '../report.ts';

const CONNECTIONS = 32;
const PATH = '/v1/chat/completions';
export const CHAT_BODY = JSON.stringify({
  model: 'code-assistant',
  messages: [{ role: 'user', content: 'say something' }],
});

/** Control plane, agent and engine for chats, and nginx before the same engine. */
export async function chatRig() {
  const stub = await startStub('chat');
  const nginx = await startNginx(stub);
  const agent = await startAgent([stub.url]);
  const plane = await startPlane();
  await pair(plane, agent);
  await ready(plane, 'code-assistant', 1);
  const at = (base: string, body: string): Target => ({ url: `${base}${PATH}`, body, headers: {} });
  return {
    plane,
    agent,
    nginxVersion: nginx?.version ?? null,
    direct: (body = CHAT_BODY) => at(stub.url, body),
    nginx: (body = CHAT_BODY) => (nginx ? at(nginx.url, body) : null),
    ours: (body = CHAT_BODY): Target => ({
      ...at(plane.endpoint, body),
      headers: { authorization: `Bearer ${plane.apiKey}` },
    }),
    async stop() {
      await plane.stop();
      await agent.stop();
      await stub.stop();
    },
  };
}

export const chat: Row = {
  name: 'chat',
  async run({ quick }) {
    const rig = await chatRig();
    const seconds = quick ? 3 : 8;
    const rates = { direct: [] as number[], nginx: [] as number[], ours: [] as number[] };
    const cpu = { plane: 0, agent: 0 };
    let answered = 0;
    let failed = 0;
    let client = '';
    // What is measured is the standing service, compiled by then.
    await throughput(rig.ours(), CONNECTIONS, quick ? 10 : 20);
    const cpuMs = async () => ({ plane: (await rig.plane.stats()).cpuMs, agent: (await rig.agent.stats()).cpuMs });
    // In turn, three times: what else the machine does meets all three alike.
    for (let round = 0; round < 3; round += 1) {
      for (const [name, target] of [
        ['direct', rig.direct()],
        ['nginx', rig.nginx()],
        ['ours', rig.ours()],
      ] as const) {
        if (target === null) continue;
        const before = name === 'ours' ? await cpuMs() : null;
        const measured = await throughput(target, CONNECTIONS, seconds);
        client = measured.client;
        rates[name].push(measured.perSecond);
        if (before === null) continue;
        const after = await cpuMs();
        cpu.plane += after.plane - before.plane;
        cpu.agent += after.agent - before.agent;
        answered += measured.perSecond * seconds;
        failed += measured.failed;
      }
    }
    const { total } = await load({
      kind: 'sequential',
      targets: [rig.direct(), rig.ours(), rig.nginx() ?? rig.direct()],
      rounds: quick ? 500 : 2000,
      warmUp: 200,
    });
    const open = await load({ kind: 'open', target: rig.ours(), perSecond: 200, seconds: quick ? 6 : 20 });
    const openDirect = await load({ kind: 'open', target: rig.direct(), perSecond: 200, seconds: quick ? 4 : 10 });
    await rig.stop();
    const [direct, ours, nginx] = [median(rates.direct), median(rates.ours), median(rates.nginx)];
    const p50 = (at: number) => total[at]?.p50 ?? Number.NaN;
    const figures: Figure[] = [
      { name: `direct, ${CONNECTIONS} connections`, value: direct, unit: 'req/s', goal: null, note: client },
      {
        name: `nginx, ${CONNECTIONS} connections`,
        value: nginx,
        unit: 'req/s',
        goal: null,
        note: rig.nginxVersion ?? 'not installed',
      },
      { name: `Switchyard, ${CONNECTIONS} connections`, value: ours, unit: 'req/s', goal: null },
      { name: 'throughput against nginx', value: ours / nginx, unit: 'x', goal: ['>=', 0.25] },
      { name: 'CPU of the control plane', value: (1000 * cpu.plane) / answered, unit: 'us/req', goal: null },
      { name: 'CPU of the agent', value: (1000 * cpu.agent) / answered, unit: 'us/req', goal: null },
      { name: 'answers that were not 200', value: failed, unit: '', goal: ['<=', 0] },
      { name: 'one connection: direct p50', value: p50(0), unit: 'ms', goal: null },
      { name: 'one connection: nginx adds p50', value: p50(2) - p50(0), unit: 'ms', goal: null },
      { name: 'one connection: Switchyard adds p50', value: p50(1) - p50(0), unit: 'ms', goal: ['<=', 0.35] },
      { name: 'open loop 200/s: direct p99', value: openDirect.latency.p99, unit: 'ms', goal: null },
      { name: 'open loop 200/s: Switchyard p99', value: open.latency.p99, unit: 'ms', goal: ['<=', 3] },
      {
        name: 'open loop 200/s: not 200',
        value: open.failed,
        unit: '',
        goal: ['<=', 0],
        ...(open.why ? { note: open.why } : {}),
      },
    ];
    return figures;
  },
};
