import { run } from '../processes.ts';
import type { Figure, Row } from '../report.ts';

/** Rows that need no process of the product: they have programs of their own, which print JSON. */
const node = async (args: readonly string[]) => (await run(process.execPath, args)) ?? '';

interface RouterLine {
  readonly name: string;
  readonly goal: number;
  readonly value: number;
}

export const router: Row = {
  name: 'router core',
  async run({ quick }) {
    const said = await node(['--expose-gc', 'test/bench/router.ts', '--seconds', quick ? '1' : '3']);
    return said
      .split('\n')
      .filter((line) => line.startsWith('{'))
      .map((line): Figure => {
        const { name, goal, value } = JSON.parse(line) as RouterLine;
        const isMemory = name.startsWith('bytes');
        return {
          name: name.replaceAll('_', ' '),
          value: isMemory ? value / 1e6 : value,
          unit: isMemory ? 'MB' : '/s of CPU',
          goal: isMemory ? ['<=', goal / 1e6] : ['>=', goal],
        };
      });
  },
};

interface WireReport {
  readonly small: { readonly callsPerSecond: number; readonly controllerCpuMicrosPerCall: number };
  readonly single: { readonly p50Ms: number };
  readonly bulk: { readonly mebibytesPerSecond: number };
  readonly streams: { readonly lateP99Ms: number; readonly lateP999Ms: number };
}

export const wire: Row = {
  name: 'wire alone',
  async run() {
    const said = await node(['test/bench/wire.ts']);
    const { small, single, bulk, streams } = JSON.parse(said.slice(said.indexOf('{'))) as WireReport;
    const info = (name: string, value: number, unit: string): Figure => ({ name, value, unit, goal: null });
    return [
      info('small calls', small.callsPerSecond, '/s'),
      info("control plane's CPU per call", small.controllerCpuMicrosPerCall, 'us'),
      info('one call at a time: p50', single.p50Ms, 'ms'),
      info('bulk', bulk.mebibytesPerSecond, 'MiB/s'),
      info('500 streams x 50 chunks/s: p99.9 lateness', streams.lateP999Ms, 'ms'),
    ];
  },
};
