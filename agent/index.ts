import { watch } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { Agent, type AgentAddress, type AgentParts } from './agent.ts';
import { createAgentClock } from './clock.ts';
import { prepareOpenRouter } from './cloud/create.ts';
import { showCode, showControllers, showIdentity } from './commands.ts';
import { parentChannel } from './embedded.ts';
import { limitYoungGeneration } from './frugality.ts';
import { harden } from './hardening.ts';
import { addressesToType, howToPair, shown } from './next-step.ts';
import { type AgentOptions, parseAgentArguments, USAGE, UsageError } from './options.ts';
import { Acquaintances } from './session/acquaintances.ts';
import { Controllers } from './session/controllers.ts';
import { makeSecretFolder } from './session/files.ts';
import { FolderLocked, lockFolder } from './session/folder-lock.ts';
import { loadIdentity, takeNextKey } from './session/identity.ts';
import { sentenceOf, Visitors } from './session/visitors.ts';

/** Of the product; the wire has a version of its own. */
const VERSION = '0.1.0';

async function main(): Promise<void> {
  limitYoungGeneration();
  const command = parseAgentArguments(process.argv.slice(2), process.env);
  harden();
  switch (command.command) {
    case 'help':
      console.log(USAGE);
      return;
    case 'version':
      console.log(VERSION);
      return;
    case 'code':
      await showCode(command);
      return;
    case 'controllers':
      await showControllers(command);
      return;
    case 'identity':
      await showIdentity(command);
      return;
    case 'enrol':
      // Loaded for this alone: an agent that runs holds nothing of it in memory.
      await (await import('./enrol/enrol.ts')).enrol(command);
      return;
    case 'run':
      if (command.embedded) await runEmbedded(command);
      else await run(command);
  }
}

/** An agent whose control plane was killed ends by itself, a moment after the next one has started its own. */
const PREDECESSOR_MS = 5000;
const LOOK_AGAIN_MS = 100;

/**
 * Makes the data folder and takes it for this process, within `patienceMs`.
 * @throws Error with a sentence for people
 */
async function takeFolder(folder: string, patienceMs: number): Promise<void> {
  const untilMs = performance.now() + patienceMs;
  for (;;) {
    try {
      await makeSecretFolder(folder);
      process.once('exit', lockFolder(folder));
      return;
    } catch (error) {
      if (!(error instanceof FolderLocked)) throw new Error(unusable(folder, error));
      if (performance.now() >= untilMs) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, LOOK_AGAIN_MS));
  }
}

function unusable(folder: string, error: unknown): string {
  const { code = 'an error' } = error as NodeJS.ErrnoException;
  return `The data folder ${folder} cannot be made or written (${code}). Choose another one with --data-dir DIR.`;
}

type Listeners = Pick<AgentParts, 'onControllers' | 'onSeen'>;

async function makeAgent(options: AgentOptions, controllers: Controllers, listeners: Listeners = {}): Promise<Agent> {
  const clock = createAgentClock();
  const cloud = await prepareOpenRouter({
    clock,
    folder: options.dataDir,
    keyring: await keyringText(process.env),
    baseUrl: options.openrouterUrl,
  });
  return new Agent({
    clock,
    cloud,
    version: VERSION,
    identity: await loadIdentity(options.dataDir),
    keys: { read: () => loadIdentity(options.dataDir), take: () => takeNextKey(options.dataDir) },
    controllers,
    host: options.host,
    port: options.port,
    name: options.name,
    engines: options.engines,
    aliases: options.aliases,
    detect: options.detect,
    ...(options.encoder ? {} : { startEncoder: null }),
    advertise: options.advertise,
    onFault: (sentence) => console.error(sentence),
    ...listeners,
  });
}

/** A keyring in the environment, or in the file that it names. @throws RangeError when that file cannot be read */
async function keyringText(env: NodeJS.ProcessEnv): Promise<string | undefined> {
  const { SWITCHYARD_KEYRING: text, SWITCHYARD_KEYRING_FILE: file } = env;
  if (text !== undefined || file === undefined || file === '') return text;
  try {
    return await readFile(file, 'utf8');
  } catch {
    throw new RangeError('The file that SWITCHYARD_KEYRING_FILE names cannot be read.');
  }
}

async function run(options: AgentOptions): Promise<void> {
  await takeFolder(options.dataDir, 0);
  const controllers = await Controllers.load(options.dataDir);
  const visitors = new Visitors(controllers, await Acquaintances.load(options.dataDir), Date.now, (change) =>
    console.log(options.json ? JSON.stringify(change) : sentenceOf(change)),
  );
  const agent = await makeAgent(options, controllers, {
    onControllers: () => visitors.look(),
    onSeen: (controller) => visitors.seen(controller),
  });
  const address = await agent.start();
  // `agent code`, `agent controllers rm` and `agent identity rotate` write the same folder from another process.
  const watcher = watch(options.dataDir, (event, file) => {
    // The file is always replaced whole; anything else that happens to it (a read may touch it) is no news.
    if (event !== 'rename') return;
    if (file === 'controllers.json') void agent.server.reload().catch(() => undefined);
    if (file === 'identity.json') void agent.reloadIdentity().catch(() => undefined);
  });
  watcher.on('error', () => undefined); // without it a change is seen at the next start
  endOnSignals(async () => {
    watcher.close();
    await agent.stop();
    await visitors.settled();
  });
  announce(options, agent, address, (await loadIdentity(options.dataDir)).fingerprint);
}

function announce(options: AgentOptions, agent: Agent, address: AgentAddress, fingerprint: string): void {
  const listen = shown(address);
  const code = agent.server.joinCode();
  const joinCode = options.showCode ? code : null;
  const addresses = addressesToType(address);
  const nextStep =
    code === null ? 'It is paired. Another control plane: npm run agent -- code --new' : howToPair(addresses);
  if (options.json) {
    process.stdout.write(`${JSON.stringify({ ready: true, listen, addresses, joinCode, fingerprint, nextStep })}\n`);
    return;
  }
  console.log(`The agent listens on ${listen}.`);
  if (joinCode !== null) console.log(`Join code: ${joinCode}`);
  console.log(nextStep);
}

/** Serves the one control plane that started it; keeps no key, ends when that is gone. */
async function runEmbedded(options: AgentOptions): Promise<void> {
  const parent = parentChannel();
  const { controller, nodeKey } = await parent.introduction;
  await takeFolder(options.dataDir, PREDECESSOR_MS);
  const controllers = await Controllers.load(options.dataDir, async () => undefined); // in memory only
  await controllers.admit(controller, nodeKey);
  const identity = await loadIdentity(options.dataDir);
  const agent = await makeAgent(options, controllers);
  const address = await agent.start();
  const end = endOnSignals(() => agent.stop());
  parent.tell({ ready: true, node: identity.node, listen: shown(address), fingerprint: identity.fingerprint });
  await parent.gone;
  end();
}

/** @returns what ends the process in order */
function endOnSignals(stop: () => Promise<void>): () => void {
  let ending = false;
  const end = () => {
    if (ending) process.exit(1); // asked twice: at once
    ending = true;
    stop().then(
      () => process.exit(0),
      () => process.exit(1),
    );
  };
  process.on('SIGINT', end);
  process.on('SIGTERM', end);
  return end;
}

main().catch((error: unknown) => {
  if (error instanceof UsageError) {
    console.error(`${error.message}\nEvery option: npm run agent -- --help`);
    process.exit(2);
  }
  const { code } = error as NodeJS.ErrnoException;
  if (code === 'EADDRINUSE')
    console.error('Another program listens on that address. Choose one with --listen HOST:PORT.');
  else console.error(error instanceof Error ? error.message : 'The agent could not start.');
  process.exit(1);
});
