import { parseArgs } from 'node:util';
import { ROLE_IDS } from '../../main/domain/roles.ts';
import { type Figures, Tally } from './figures.ts';
import { DemoFleet } from './fleet.ts';
import { Traffic } from './traffic.ts';
import { Weather } from './weather.ts';

const USAGE = `npm run demo -- [options]
  --once         run for a while, print the figures and end
  --seconds N    how long with --once (default 60)
  --json         with --once: the figures as one JSON object on stdout, everything else on stderr
  --calm         nothing goes wrong
  --port PORT    where the control plane listens (default: any free port)`;

const TELLS_EVERY_MS = 10_000;

/** A rehearsal until somebody ends it, or for a while. @returns the exit code */
async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      once: { type: 'boolean', default: false },
      json: { type: 'boolean', default: false },
      calm: { type: 'boolean', default: false },
      seconds: { type: 'string', default: '60' },
      port: { type: 'string', default: '0' },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  if (values.help) {
    console.log(USAGE);
    return 0;
  }
  const seconds = Number(values.seconds);
  if (!(seconds >= 1 && seconds <= 86_400)) throw new RangeError('--seconds takes a number from 1 to 86400.');
  const say = (sentence: string) => (values.json ? console.error(sentence) : console.log(sentence));
  const fleet = new DemoFleet({ planeArgs: ['--no-embedded-agent', '--no-discovery', '--port', values.port] });
  const tally = new Tally();
  let traffic: Traffic | null = null;
  let weather: Weather | null = null;
  const asked = askedToEnd();
  try {
    const started = fleet.start(say);
    if (await Promise.race([started.then(() => false), asked])) {
      started.catch(() => undefined); // what was being started ends below
      return 0;
    }
    traffic = new Traffic({
      endpoint: fleet.plane.endpoint,
      keyOf: (project) => fleet.keys.get(project) ?? '',
      random: Math.random,
      onEnd: (outcome) => tally.record(outcome),
    });
    weather = new Weather(fleet, (sentence) => say(`${clock()} ${sentence}`));
    say(`Console (good for one use within 10 minutes): ${fleet.plane.consoleUrl}`);
    if (!values.once) say(`Admin token: ${fleet.plane.adminToken}\nCtrl-C ends everything.`);
    const beganMs = performance.now();
    traffic.start();
    if (!values.calm) weather.start();
    const telling = values.once ? null : setInterval(() => void tell(fleet, tally, say), TELLS_EVERY_MS);
    const over = values.once ? after(seconds * 1000) : new Promise<never>(() => undefined);
    const interrupted = await Promise.race([over.then(() => false), asked]);
    if (telling) clearInterval(telling);
    await Promise.all([traffic.stop(), weather.stop()]);
    if (values.once && !interrupted) {
      const figures = await figuresOf(fleet, tally, (performance.now() - beganMs) / 1000);
      console.log(values.json ? JSON.stringify(figures) : shown(figures));
    }
    return interrupted && values.once ? 1 : 0;
  } finally {
    say('Ending all that was started…');
    await Promise.all([traffic?.stop(0), weather?.stop()]);
    await fleet.stop();
  }
}

const after = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms).unref());
const clock = () => new Date().toTimeString().slice(0, 8);

/** Resolves at the first wish to end; at the second the process goes at once. */
function askedToEnd(): Promise<true> {
  return new Promise((resolve) => {
    let asked = false;
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
      process.on(signal, () => {
        if (asked) process.exit(1);
        asked = true;
        resolve(true);
      });
    }
  });
}

async function tell(fleet: DemoFleet, tally: Tally, say: (sentence: string) => void): Promise<void> {
  const budget = await fleet.operator
    .get<{ inFlight: number; usable: number; state: string }>('budget')
    .catch(() => null);
  const { local, cloud, p50Ms, p95Ms } = tally.summary();
  say(
    [
      `${clock()} ${tally.total} requests, ${tally.failed} failed`,
      `${local} local, ${cloud} cloud`,
      `p50 ${p50Ms ?? '—'} ms, p95 ${p95Ms ?? '—'} ms`,
      ...(budget ? [`permits ${budget.inFlight} of ${budget.usable}, ${budget.state}`] : []),
    ].join('; '),
  );
}

async function figuresOf(fleet: DemoFleet, tally: Tally, seconds: number): Promise<Figures> {
  return {
    seconds: Math.round(seconds),
    ...tally.summary(),
    failuresByCode: tally.failuresByCode(),
    roles: Object.fromEntries(ROLE_IDS.map((role) => [role, tally.summary(role)])),
    ...(await fleet.books()),
  };
}

function shown(figures: Figures): string {
  const line = (name: string, of: Figures['roles'][keyof Figures['roles']]) =>
    of &&
    `${name.padEnd(16)}${[of.requests, of.failures, of.local, of.cloud, of.p50Ms ?? '—', of.p95Ms ?? '—'].map((value) => String(value).padStart(10)).join('')}`;
  const { account, gate } = figures;
  return [
    `${figures.seconds} s`,
    `${' '.repeat(16)}${['requests', 'failed', 'local', 'cloud', 'p50 ms', 'p95 ms'].map((head) => head.padStart(10)).join('')}`,
    ...ROLE_IDS.map((role) => line(role, figures.roles[role])),
    line('all', figures),
    `failures: ${JSON.stringify(figures.failuresByCode)}`,
    `account: ${account.calls} calls, ${account.tooMany} answered with 429, at most ${account.mostAtOnce} at once, ${account.cuts} cuts, ${account.spentUsd.toFixed(4)} USD`,
    `gate: ${gate.refused.length} encoders refused, ${gate.textsToRefused} texts reached them`,
    ...gate.refused.map(({ name, minCosine }) => `  ${name}: minimum cosine ${minCosine?.toFixed(4) ?? '—'}`),
  ].join('\n');
}

process.exitCode = await main().catch((error: unknown) => {
  console.error(error instanceof Error ? error.message : 'The rehearsal failed.');
  return 1;
});
// A question to a frozen engine may still be open.
process.exit();
