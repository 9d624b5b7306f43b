import { readFileSync } from 'node:fs';
import path from 'node:path';
import { z } from 'zod';
import type { EnrolmentOptions } from '../wire/enrolment.ts';
import { hasModel, runningVersion } from './ollama.ts';
import { provideOllama } from './ollama-install.ts';
import type { EnrolOptions } from './options.ts';
import { Origin, OriginFailure } from './origin.ts';
import { type Account, findAccount } from './programs.ts';
import { pull } from './pull.ts';
import { askAgent, provideService, type ServicePlan } from './service.ts';
import { type Progress, StepFailed, Steps } from './steps.ts';

/**
 * Engine, model, service, join. Each step looks first, so that a second run does nothing twice.
 * @throws Error with a sentence for people; the control plane has been told
 */
export async function enrol(command: EnrolOptions): Promise<void> {
  // The agent's own files are for its owner alone; what is installed here must be readable by the accounts that run it.
  process.umask(0o022);
  const origin = new Origin(command.from, command.pin);
  const say = (sentence: string) => console.log(sentence);
  const send = origin.step.bind(origin);
  const steps = new Steps({ dryRun: command.dryRun, send, say, nowMs: () => performance.now() });
  endOnSignals(steps);
  const options = await readOptions(origin);
  const root = process.env.SWITCHYARD_PREFIX ?? '';
  const plan = planOf(command, root);
  const wantsOllama = options.engine === 'ollama' || options.model !== null;

  await steps.run('engine', 'Engine.', async (progress) => {
    if (!wantsOllama) return (await runningVersion(command.ollama)) === null ? 'not_asked' : 'adopted';
    const cache =
      process.platform === 'win32' ? path.join(command.dataDir, 'cache') : `${root}/var/cache/switchyard-agent`;
    return provideOllama({ ollama: command.ollama, mirror: command.mirror, root, cache }, progress);
  });
  await steps.run('model', `Model: ${options.model ?? 'none was asked for'}.`, (progress) =>
    provideModel(command, options, progress),
  );
  const account = process.platform === 'win32' ? null : await findAccount(command.account);
  await steps.run('service', `Service: the agent, on port ${plan.port}.`, async (progress) => {
    if (process.platform !== 'win32' && account === null && !command.dryRun) {
      throw new StepFailed('account_failed', `There is no account ${command.account}.`);
    }
    return provideService(plan, account, progress);
  });
  await steps.run('join', `Join: the control plane ${options.controlPlane}.`, async ({ dryRun, say: tell }) => {
    if (dryRun) tell('would tell it this agent’s port, join code and key');
    else await join(origin, plan, account);
    return null;
  });
  if (!command.dryRun) say('This machine is part of the fleet.');
}

async function readOptions(origin: Origin): Promise<EnrolmentOptions> {
  try {
    return await origin.options();
  } catch (error) {
    throw new Error(error instanceof OriginFailure ? SENTENCES[error.fault] : 'The control plane cannot be reached.');
  }
}

const SENTENCES = {
  unreachable: 'The control plane cannot be reached from this machine.',
  'other-key': 'What answers there does not have the key of your control plane.',
  refused:
    'The control plane does not know this command any more: it was used, withdrawn or has expired. Make a new one.',
  malformed: 'The control plane is of another version than this agent. Make a new command.',
} as const;

async function provideModel({ ollama }: EnrolOptions, { model }: EnrolmentOptions, progress: Progress) {
  if (model === null) return 'not_asked' as const;
  if (await hasModel(ollama, model)) return 'already' as const;
  if (progress.dryRun) progress.say(`would pull ${model}`);
  else await pull(ollama, model, progress);
  return null;
}

function planOf({ account, dataDir, port, ollama, name }: EnrolOptions, root: string): ServicePlan {
  const script = path.resolve(process.argv[1] ?? '');
  const isUsual = ollama.origin === 'http://127.0.0.1:11434';
  return {
    root,
    account,
    dataDir,
    port,
    mark: markOf(script),
    command: [
      process.execPath,
      '--disable-sigusr1',
      '--report-exclude-env',
      script,
      '--data-dir',
      dataDir,
      '--listen',
      `0.0.0.0:${port}`,
      // The packages of the built-in encoder are not part of what a machine is given.
      '--no-encoder',
      // What it prints is in the system's log, which others read.
      '--no-show-code',
      ...(isUsual ? [] : ['--engine', ollama.origin]),
      ...(name === null ? [] : ['--name', name]),
    ],
  };
}

/** The checksum that the installer left beside the agent. */
function markOf(script: string): string {
  try {
    return readFileSync(path.join(path.dirname(script), 'checked'), 'utf8')
      .trim()
      .slice(0, 64);
  } catch {
    return 'no checksum';
  }
}

const Code = z.object({ joinCode: z.string() });
const Key = z.object({ fingerprint: z.string() });

async function join(origin: Origin, plan: ServicePlan, account: Account | null): Promise<void> {
  const code = Code.safeParse(await askAgent(plan, account, ['code']));
  const key = Key.safeParse(await askAgent(plan, account, ['identity']));
  if (!code.success || !key.success) throw new StepFailed('agent_not_ready', 'The agent shows no join code.');
  const { port } = plan;
  const report = { v: 1, port, joinCode: code.data.joinCode, fingerprint: key.data.fingerprint } as const;
  try {
    const answer = await origin.join(report);
    if (answer.state === 'joined') return;
    throw new StepFailed(
      'join_failed',
      `The control plane could not pair with this machine (${answer.code}). Does a firewall hold port ${port} (TCP) closed? ` +
        'Open it and run the same command again.',
    );
  } catch (error) {
    if (error instanceof StepFailed) throw error;
    throw new StepFailed(
      'join_failed',
      error instanceof OriginFailure ? SENTENCES[error.fault] : SENTENCES.unreachable,
    );
  }
}

/** Told before this ends, so that the console does not wait for a run that somebody has stopped. */
function endOnSignals(steps: Steps): void {
  const end = () => void steps.fail('interrupted').then(() => process.exit(130));
  process.once('SIGINT', end);
  process.once('SIGTERM', end);
  process.once('SIGHUP', end);
}
