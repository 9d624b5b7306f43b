import { randomBytes } from 'node:crypto';
import { networkInterfaces } from 'node:os';
import { parseArgs } from 'node:util';
import { engineUrl } from '../agent/wire/engine-address.ts';
import { ControlPlane } from './control-plane.ts';
import { LanDiscovery, noDiscovery } from './discovery/lan-discovery.ts';
import { SwitchyardError } from './domain/errors.ts';
import { nodeAgentProcess } from './platform/agent-process.ts';
import { createSystemClock } from './platform/clock.ts';
import { consoleFolder, readConsoleFiles } from './platform/console-files.ts';
import { thisComputer } from './platform/enrol-files.ts';
import { bundledFile, defaultDataFolder, PRODUCT_VERSION } from './platform/places.ts';

const USAGE = `npm start -- --headless [options]
  --port PORT           where to listen (0: any free port; default 7411)
  --data-dir DIR        where everything is kept (default ${defaultDataFolder()})
  --new-admin-token     replace the admin token and print the new one
  --json                one JSON line on stdout when ready
  --no-embedded-agent   no agent for this machine
  --no-discovery        do not look for agents on the network
  --openrouter-url URL  base address of the cloud account's API, for the agent of this machine
  --engine URL          an engine of this machine beyond those found by themselves; may be repeated
  --version             print the version`;

/** The command line is wrong: the sentence says how, the usage follows, the exit code is 2. */
class UsageError extends Error {}

function options() {
  const { values } = parseArgs({
    options: {
      port: { type: 'string' },
      'data-dir': { type: 'string' },
      json: { type: 'boolean', default: false },
      'no-embedded-agent': { type: 'boolean', default: false },
      'no-discovery': { type: 'boolean', default: false },
      engine: { type: 'string', multiple: true, default: [] },
      'openrouter-url': { type: 'string' },
      'new-admin-token': { type: 'boolean', default: false },
      version: { type: 'boolean', default: false },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  const port = values.port === undefined ? null : Number(values.port);
  if (port !== null && !(Number.isInteger(port) && port >= 0 && port <= 65_535)) {
    throw new UsageError('--port takes a number from 0 to 65535.');
  }
  const strange = values.engine.find((text) => engineUrl(text) === null);
  if (strange !== undefined)
    throw new UsageError('--engine takes http://HOST:PORT, for instance http://127.0.0.1:9931.');
  return { ...values, port, dataDir: values['data-dir'] ?? defaultDataFolder() };
}

/** The Node entry: the same control plane without a window; its console opens in a browser. */
async function main(): Promise<void> {
  process.umask(0o077);
  const chosen = options();
  if (chosen.help || chosen.version) {
    console.log(chosen.help ? USAGE : PRODUCT_VERSION);
    return;
  }
  const clock = createSystemClock();
  const agentArgs = [
    '--embedded',
    '--data-dir',
    `${chosen.dataDir}/agent`,
    ...chosen.engine.flatMap((url) => ['--engine', url]),
    ...(chosen['openrouter-url'] === undefined ? [] : ['--openrouter-url', chosen['openrouter-url']]),
  ];
  const plane = new ControlPlane({
    clock,
    random: Math.random,
    randomBytes,
    version: PRODUCT_VERSION,
    shell: 'headless',
    dataFolder: chosen.dataDir,
    storeWorker: bundledFile(import.meta.url, './store-worker.js', './store/worker.ts'),
    vaultKeys: { text: process.env.SWITCHYARD_KEYRING, file: process.env.SWITCHYARD_KEYRING_FILE },
    newAdminToken: chosen['new-admin-token'],
    port: chosen.port,
    embeddedAgent: chosen['no-embedded-agent']
      ? null
      : nodeAgentProcess({
          entry: bundledFile(import.meta.url, '../agent/index.js', '../agent/index.ts').pathname,
          args: agentArgs,
          onLog: (line) => process.stderr.write(`agent: ${line}\n`),
        }),
    consoleFiles: await readConsoleFiles(consoleFolder(import.meta.url)),
    enrolment: thisComputer(bundledFile(import.meta.url, '../enrol/', '../out/enrol/')),
    discovery: chosen['no-discovery']
      ? noDiscovery
      : new LanDiscovery({ clock, randomBytes, interfaces: networkInterfaces }),
  });
  let stopping = false;
  const stop = () => {
    if (stopping) process.exit(1); // asked twice: do not wait for what runs
    stopping = true;
    plane.stop().then(
      () => process.exit(0),
      () => process.exit(1),
    );
  };
  process.on('SIGINT', stop);
  process.on('SIGTERM', stop);
  const { endpoint, secrets, listens, warning } = await plane.start();
  if (warning !== null) process.stderr.write(`Warning: ${warning}\n`);
  const consoleUrl = plane.consoleUrl();
  if (chosen.json) {
    const shown = Object.fromEntries(Object.entries(secrets).filter(([, secret]) => secret !== null));
    process.stdout.write(`${JSON.stringify({ ready: true, endpoint, consoleUrl, ...shown })}\n`);
    return;
  }
  console.log(`Switchyard serves at ${endpoint}, and listens on ${listens.join(' and ')}`);
  console.log(`Console (good for one use within 10 minutes): ${consoleUrl}`);
  console.log(`Data folder: ${chosen.dataDir}`);
  if (secrets.adminToken) console.log(`Admin token, shown this once: ${secrets.adminToken}`);
  if (secrets.apiKey) console.log(`API key for your tools, shown this once: ${secrets.apiKey}`);
}

main().catch((error: unknown) => {
  const misused =
    error instanceof UsageError ||
    (error instanceof Error && 'code' in error && String(error.code).startsWith('ERR_PARSE_ARGS'));
  // Ours say what to do; anything else is a fault of this program.
  if (error instanceof SwitchyardError) console.error(`${error.message} (${error.code})`);
  else console.error(error instanceof Error ? error.message : 'The start failed.');
  if (misused) console.error(`\n${USAGE}`);
  process.exit(misused ? 2 : 1);
});
