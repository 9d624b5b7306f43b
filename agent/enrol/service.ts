import { connect } from 'node:net';
import { z } from 'zod';
import { agentPlist, LABEL } from './launchd.ts';
import { type Account, run, until } from './programs.ts';
import { type Progress, StepFailed } from './steps.ts';
import { agentUnit, writeUnit } from './systemd.ts';
import { createArguments, SERVICE } from './windows-service.ts';

/** The agent as a service of its system. */
export interface ServicePlan {
  /** In front of every path; empty but for tests. */
  readonly root: string;
  /** Program and arguments. */
  readonly command: readonly string[];
  readonly account: string;
  readonly dataDir: string;
  readonly port: number;
  /** Tells this agent from another one at the same path. */
  readonly mark: string;
}

const UNIT = 'switchyard-agent.service';
const READY_MS = 60_000;

/** @throws StepFailed */
export async function provideService(plan: ServicePlan, account: Account | null, progress: Progress) {
  const manager = MANAGERS.get(process.platform);
  if (manager === undefined) throw new StepFailed('system_unsupported', 'There is no service for this system.');
  if (progress.dryRun) {
    progress.say(`would run as ${plan.account}: ${plan.command.join(' ')}`);
    return null;
  }
  const runs = await manager.runs();
  if (!runs && (await isTaken(plan.port))) {
    const sentence = `Another program listens on port ${plan.port}. Stop it, or add --port and another number to the command.`;
    throw new StepFailed('port_taken', sentence);
  }
  const changed = await manager.install(plan);
  if (changed || !runs) await manager.start();
  const isReady = async () => (await isTaken(plan.port)) && (await askAgent(plan, account, ['code'])) !== null;
  if (!(await until(isReady, READY_MS)))
    throw new StepFailed('agent_not_ready', `The agent does not start. ${manager.hint}`);
  return changed || !runs ? null : ('already' as const);
}

interface Manager {
  readonly hint: string;
  runs(): Promise<boolean>;
  /** True when something was changed. */
  install(plan: ServicePlan): Promise<boolean>;
  /** Again, if it runs. @throws StepFailed */
  start(): Promise<void>;
}

const failed = (hint: string) => new StepFailed('service_failed', `The service cannot be started. ${hint}`);

const systemd: Manager = {
  hint: `See: journalctl -u ${UNIT}`,
  runs: async () => (await run('systemctl', ['is-active', '--quiet', UNIT])).status === 0,
  install: async (plan) => {
    const changed = await writeUnit(`${plan.root}/etc/systemd/system/${UNIT}`, agentUnit(plan));
    if (changed) await run('systemctl', ['daemon-reload']);
    return changed;
  },
  start: async () => {
    const enabled = await run('systemctl', ['enable', UNIT]);
    const started = await run('systemctl', ['restart', UNIT]);
    if (enabled.status !== 0 || started.status !== 0) throw failed(systemd.hint);
  },
};

const launchd: Manager = {
  hint: `See: launchctl print system/${LABEL}`,
  runs: async () => (await run('launchctl', ['print', `system/${LABEL}`])).status === 0,
  install: (plan) => writeUnit(`${plan.root}/Library/LaunchDaemons/${LABEL}.plist`, agentPlist(plan)),
  start: async () => {
    await run('launchctl', ['bootout', `system/${LABEL}`]);
    await run('launchctl', ['enable', `system/${LABEL}`]);
    const started = await run('launchctl', ['bootstrap', 'system', `/Library/LaunchDaemons/${LABEL}.plist`]);
    if (started.status !== 0) throw failed(launchd.hint);
  },
};

/** The program that Windows starts stands beside the runtime; install.ps1 has made it. */
const windows: Manager = {
  hint: `See the service ${SERVICE} in services.msc.`,
  runs: async () => /\bRUNNING\b/.test((await run('sc.exe', ['query', SERVICE])).stdout),
  install: async (plan) => {
    const [verb, ...rest] = createArguments(plan, (await run('sc.exe', ['query', SERVICE])).status === 0);
    if ((await run('sc.exe', [verb, ...rest])).status !== 0) throw failed(windows.hint);
    await run('sc.exe', ['failure', SERVICE, 'reset=', '3600', 'actions=', 'restart/2000/restart/5000/restart/30000']);
    await run('icacls', [plan.dataDir, '/inheritance:r', '/grant:r', ...WINDOWS_RIGHTS]);
    return true;
  },
  start: async () => {
    await run('sc.exe', ['stop', SERVICE]);
    await until(async () => !(await windows.runs()), 20_000);
    if ((await run('sc.exe', ['start', SERVICE])).status !== 0) throw failed(windows.hint);
  },
};

/** The service's own account, the administrators and the system; by number, because their names are translated. */
const WINDOWS_RIGHTS = [`NT SERVICE\\${SERVICE}:(OI)(CI)F`, '*S-1-5-32-544:(OI)(CI)F', '*S-1-5-18:(OI)(CI)F'] as const;

const MANAGERS = new Map<NodeJS.Platform, Manager>([
  ['linux', systemd],
  ['darwin', launchd],
  ['win32', windows],
]);

function isTaken(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: '127.0.0.1', port, timeout: 2000 });
    const end = (taken: boolean) => {
      socket.destroy();
      resolve(taken);
    };
    socket.once('connect', () => end(true));
    socket.once('error', () => end(false));
    socket.once('timeout', () => end(false));
  });
}

/**
 * What the agent's own commands tell, as its user: root would leave files there that the agent cannot read.
 * @returns their line of JSON; null when they have none yet
 */
export async function askAgent(
  { command, dataDir }: ServicePlan,
  account: Account | null,
  words: readonly string[],
): Promise<unknown> {
  const [program = '', ...rest] = command;
  const script = rest.find((argument) => !argument.startsWith('--')) ?? '';
  const { status, stdout } = await run(program, [script, ...words, '--json', '--data-dir', dataDir], account);
  if (status !== 0) return null;
  try {
    const answer: unknown = JSON.parse(stdout);
    return words[0] !== 'code' || Running.safeParse(answer).success ? answer : null;
  } catch {
    return null;
  }
}

/** A code is of use only while the agent that it belongs to runs. */
const Running = z.object({ agentRuns: z.literal(true) });
