import { randomBytes } from 'node:crypto';
import { networkInterfaces } from 'node:os';
import { parseArgs } from 'node:util';
import { ControlPlane } from './control-plane.ts';
import { LanDiscovery, noDiscovery } from './discovery/lan-discovery.ts';
import { SwitchyardError } from './domain/errors.ts';
import { nodeAgentProcess } from './platform/agent-process.ts';
import { createSystemClock } from './platform/clock.ts';
import { readConsoleFiles } from './platform/console-files.ts';
import { bundledFile, defaultDataFolder, PRODUCT_VERSION } from './platform/places.ts';

const USAGE = `npm start -- --headless [options]
  --port PORT           where to listen (0: any free port; default 7411)
  --data-dir DIR        where everything is kept
  --json                one JSON line on stdout when ready
  --no-embedded-agent   no agent for this machine
  --no-discovery        do not look for agents on the network
  --openrouter-url URL  base address of the cloud account's API, for the agent of this machine
  --engine URL          an engine of this machine beyond those found by themselves; may be repeated`;

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
      help: { type: 'boolean', default: false },
    },
  });
  const port = values.port === undefined ? null : Number(values.port);
  if (port !== null && !(Number.isInteger(port) && port >= 0 && port <= 65_535)) {
    throw new Error('--port takes a number from 0 to 65535.');
  }
  return { ...values, port, dataDir: values['data-dir'] ?? defaultDataFolder() };
}

/** The Node entry: the same control plane without a window; its console opens in a browser. */
async function main(): Promise<void> {
  process.umask(0o077);
  const chosen = options();
  if (chosen.help) {
    console.log(USAGE);
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
    port: chosen.port,
    embeddedAgent: chosen['no-embedded-agent']
      ? null
      : nodeAgentProcess({
          entry: bundledFile(import.meta.url, '../agent/index.js', '../agent/index.ts').pathname,
          args: agentArgs,
          onLog: (line) => process.stderr.write(`agent: ${line}\n`),
        }),
    consoleFiles: await readConsoleFiles(bundledFile(import.meta.url, '../renderer/', '../out/renderer/')),
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
  const { endpoint, secrets } = await plane.start();
  const consoleUrl = plane.consoleUrl();
  if (chosen.json) {
    const shown = Object.fromEntries(Object.entries(secrets).filter(([, secret]) => secret !== null));
    process.stdout.write(`${JSON.stringify({ ready: true, endpoint, consoleUrl, ...shown })}\n`);
    return;
  }
  console.log(`Switchyard serves at ${endpoint}`);
  console.log(`Console (good for one use within 10 minutes): ${consoleUrl}`);
  if (secrets.adminToken) console.log(`Admin token, shown this once: ${secrets.adminToken}`);
  if (secrets.apiKey) console.log(`API key for your tools, shown this once: ${secrets.apiKey}`);
}

main().catch((error: unknown) => {
  // Ours say what to do; anything else is a fault of this program and keeps its stack for the report.
  if (error instanceof SwitchyardError) console.error(`${error.message} (${error.code})`);
  else if (error instanceof Error && 'code' in error && String(error.code).startsWith('ERR_PARSE_ARGS'))
    console.error(`${error.message}\n\n${USAGE}`);
  else console.error(error instanceof Error ? error.message : 'The start failed.');
  process.exit(1);
});
