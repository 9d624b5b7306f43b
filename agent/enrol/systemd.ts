import { randomBytes } from 'node:crypto';
import { mkdir, open, readFile, rename } from 'node:fs/promises';
import path from 'node:path';
import type { Ollama } from './ollama.ts';
import type { ServicePlan } from './service.ts';

/** One word of a command line in a unit: systemd reads `%` and `$` in it, also between quotes. */
function word(text: string): string {
  const plain = text.replaceAll('%', '%%').replaceAll('$', '$$$$');
  return /^[A-Za-z0-9_./:=%$-]+$/.test(plain) ? plain : `"${plain.replace(/[\\"]/g, '\\$&')}"`;
}

/** Paths in settings are read without quotes. */
const place = (text: string) => text.replaceAll('%', '%%');

/** Of both services. */
const COMMON = ['ProtectSystem=strict', 'ProtectHome=yes', 'PrivateTmp=yes', 'LimitCORE=0', 'UMask=0077'];

/** No memory goes to the swap or into a core dump: it may hold a key. */
const OF_THE_AGENT = [
  'NoNewPrivileges=yes',
  ...COMMON,
  'MemorySwapMax=0',
  'CapabilityBoundingSet=',
  'AmbientCapabilities=',
  'ProtectHostname=yes',
  'ProtectKernelLogs=yes',
  'ProtectKernelModules=yes',
  'ProtectKernelTunables=yes',
  'ProtectControlGroups=yes',
  'RestrictSUIDSGID=yes',
  'RestrictRealtime=yes',
  'RestrictNamespaces=yes',
  'RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK',
  'LockPersonality=yes',
  'SystemCallArchitectures=native',
];

/**
 * Devices stay visible, because the graphics cards are read: neither PrivateDevices nor ProtectClock, which shuts all of them out with
 * its rule for one. Memory may be executable, because V8 compiles.
 */
export function agentUnit({ command, account, dataDir, mark }: ServicePlan): string {
  return [
    '[Unit]',
    'Description=Switchyard agent',
    'After=network-online.target ollama.service',
    'Wants=network-online.target',
    'StartLimitIntervalSec=0',
    '',
    '[Service]',
    `# ${mark}: another agent under the same path is another unit`,
    'Type=exec',
    `User=${account}`,
    `Group=${account}`,
    `ExecStart=${command.map(word).join(' ')}`,
    'WorkingDirectory=/',
    'Restart=always',
    'RestartSec=2',
    'TimeoutStopSec=20',
    ...OF_THE_AGENT,
    `ReadWritePaths=${place(dataDir)}`,
    '',
    '[Install]',
    'WantedBy=multi-user.target',
    '',
  ].join('\n');
}

export interface OllamaPlan {
  readonly program: string;
  readonly home: string;
  readonly account: string;
  readonly ollama: Ollama;
}

/**
 * Without NoNewPrivileges, and what brings it along: NVIDIA's libraries make the devices of a card by a program that has root's
 * rights, and where they cannot, Ollama silently works on the processor. Models larger than the memory may use the swap.
 */
export function ollamaUnit({ program, home, account, ollama }: OllamaPlan): string {
  return [
    '[Unit]',
    'Description=Ollama',
    'After=network-online.target',
    'Wants=network-online.target',
    '',
    '[Service]',
    'Type=exec',
    `User=${account}`,
    `Group=${account}`,
    `ExecStart=${word(program)} serve`,
    // Other machines reach the models through the agent, which knows who may.
    `Environment=OLLAMA_HOST=${new URL(ollama.origin).host}`,
    'Restart=always',
    'RestartSec=3',
    ...COMMON,
    `ReadWritePaths=${place(home)}`,
    '',
    '[Install]',
    'WantedBy=multi-user.target',
    '',
  ].join('\n');
}

/** Writes a file whole or not at all. @returns false when it has that content already */
export async function writeUnit(file: string, content: string): Promise<boolean> {
  if ((await readFile(file, 'utf8').catch(() => null)) === content) return false;
  await mkdir(path.dirname(file), { recursive: true });
  const next = path.join(path.dirname(file), `.${randomBytes(6).toString('hex')}.tmp`);
  const handle = await open(next, 'wx', 0o644);
  try {
    await handle.writeFile(content);
    await handle.chmod(0o644);
    await handle.sync();
  } finally {
    await handle.close();
  }
  await rename(next, file);
  return true;
}
