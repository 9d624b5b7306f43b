import { spawn } from 'node:child_process';
import { createReadStream, existsSync } from 'node:fs';
import { mkdir, rename, rm, statfs } from 'node:fs/promises';
import path from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createZstdDecompress } from 'node:zlib';
import pins from '../../assets/enrol/pins.json' with { type: 'json' };
import { childEnvironment } from '../child-environment.ts';
import { atMirror, fetchFile, type PinnedFile } from './fetch-file.ts';
import { isTooOld, type Ollama, runningVersion } from './ollama.ts';
import { findAccount, run, until } from './programs.ts';
import { type Progress, StepFailed } from './steps.ts';
import { ollamaUnit, writeUnit } from './systemd.ts';

const START_MS = 60_000;
/** The archive, and what comes out of it. */
const NEEDED_BYTES = 6e9;
const ACCOUNT = 'ollama';

export interface OllamaWish {
  readonly ollama: Ollama;
  readonly mirror: string | null;
  /** In front of every path; empty but for tests. */
  readonly root: string;
  readonly cache: string;
  /** What this release was built with; tests bring an archive of their own. */
  readonly pinned?: PinnedFile | null;
}

/**
 * Makes Ollama run: takes the one that does, starts the one that is installed, installs one.
 * @throws StepFailed
 */
export async function provideOllama(wish: OllamaWish, progress: Progress): Promise<'adopted' | null> {
  const version = await runningVersion(wish.ollama);
  if (version !== null) {
    if (isTooOld(version))
      throw new StepFailed('engine_old', `Ollama ${version} is too old. Update it to 0.17.1 or later.`);
    progress.say(`Ollama ${version} runs at ${wish.ollama.origin} and is used as it is.`);
    return 'adopted';
  }
  if (process.platform !== 'linux') throw missing();
  const program = await findProgram(wish.root);
  if (progress.dryRun) {
    progress.say(program === null ? `would install Ollama ${pins.ollama.version}` : `would start ${program}`);
    return null;
  }
  await serve(wish, program ?? (await install(wish, progress)));
  return null;
}

const missing = () =>
  new StepFailed('engine_missing', 'Ollama does not run here. Install Ollama yourself and run the same command again.');

async function findProgram(root: string): Promise<string | null> {
  const own = `${root}/usr/local/bin/ollama`;
  if (existsSync(own)) return own;
  if (root !== '') return null; // a test never takes what the machine has
  return ['/usr/bin/ollama', '/bin/ollama', '/opt/ollama/bin/ollama'].find((file) => existsSync(file)) ?? null;
}

function pinnedFile(): PinnedFile | null {
  const files = new Map<string, PinnedFile>(Object.entries(pins.ollama.files));
  return files.get(`${process.platform}-${process.arch}`) ?? null;
}

/** Where Ollama's own installer puts it, so that its updates find it. @returns the program */
async function install({ root, cache, mirror, pinned }: OllamaWish, progress: Progress): Promise<string> {
  const file = pinned === undefined ? pinnedFile() : pinned;
  if (file === null) throw missing();
  const folder = `${root}/usr/local`;
  await mkdir(folder, { recursive: true });
  const { bavail, bsize } = await statfs(folder);
  if (bavail * bsize < NEEDED_BYTES && pinned === undefined) {
    throw new StepFailed('disk_full', `Ollama needs ${NEEDED_BYTES / 1e9} GB on the disk of ${folder}.`);
  }
  progress.say(`Ollama ${pins.ollama.version} is downloaded, about 1.4 GB.`);
  const archive = await fetchFile(atMirror(file, mirror), cache, progress);
  progress.say('Ollama is unpacked.');
  const staging = path.join(folder, '.ollama-new');
  await rm(staging, { recursive: true, force: true });
  await mkdir(staging, { mode: 0o755 });
  if (!(await unpack(archive, staging)) || !existsSync(path.join(staging, 'bin/ollama'))) {
    throw new StepFailed('unpack_failed', 'Ollama cannot be unpacked.');
  }
  // The program last: where it is, everything is.
  await mkdir(path.join(folder, 'lib'), { recursive: true });
  await mkdir(path.join(folder, 'bin'), { recursive: true });
  const libraries = path.join(staging, 'lib/ollama');
  if (existsSync(libraries)) {
    await rm(path.join(folder, 'lib/ollama'), { recursive: true, force: true });
    await rename(libraries, path.join(folder, 'lib/ollama'));
  }
  await rename(path.join(staging, 'bin/ollama'), path.join(folder, 'bin/ollama'));
  await rm(staging, { recursive: true, force: true });
  await rm(archive, { force: true });
  return path.join(folder, 'bin/ollama');
}

async function unpack(archive: string, folder: string): Promise<boolean> {
  const tar = spawn('tar', ['-xof', '-', '-C', folder], {
    stdio: ['pipe', 'ignore', 'ignore'],
    env: childEnvironment(process.env),
  });
  const ended = new Promise<number | null>((resolve) => {
    tar.once('close', resolve);
    tar.once('error', () => resolve(null));
  });
  // tar closes its end where the archive ends, which may be before the last byte is written: its own status is what counts.
  await pipeline(createReadStream(archive), createZstdDecompress(), tar.stdin).catch(() => tar.stdin.destroy());
  return (await ended) === 0;
}

/** Runs it as a service: the one that it has, or one that listens on loopback alone. */
async function serve({ ollama, root }: OllamaWish, program: string): Promise<void> {
  const failed = (sentence: string) => new StepFailed('engine_failed', sentence);
  const has = await run('systemctl', ['cat', 'ollama.service']);
  if (has.status !== 0) {
    const home = `${root}/usr/share/ollama`;
    if ((await findAccount(ACCOUNT)) === null) {
      const args = ['--system', '--user-group', '--create-home', '--home-dir', home, '--shell', '/usr/sbin/nologin'];
      if ((await run('useradd', [...args, ACCOUNT])).status !== 0) throw failed('The account ollama cannot be made.');
    }
    // Where they exist, these may use the graphics cards.
    for (const group of ['render', 'video']) await run('usermod', ['--append', '--groups', group, ACCOUNT]);
    await writeUnit(
      `${root}/etc/systemd/system/ollama.service`,
      ollamaUnit({ program, home, account: ACCOUNT, ollama }),
    );
    await run('systemctl', ['daemon-reload']);
  }
  const { status } = await run('systemctl', ['enable', '--now', 'ollama.service']);
  const answers = status === 0 && (await until(async () => (await runningVersion(ollama)) !== null, START_MS));
  if (!answers) throw failed(`Ollama does not answer at ${ollama.origin}. See: journalctl -u ollama`);
  const version = await runningVersion(ollama);
  if (version !== null && isTooOld(version)) {
    throw new StepFailed('engine_old', `Ollama ${version} is too old. Update it to 0.17.1 or later.`);
  }
}
