import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import type { UpdateFacts, Updater } from './updates.ts';

export interface UpdatePlace {
  readonly version: string;
  readonly packaged: boolean;
  readonly platform: NodeJS.Platform;
  /** Electron's `process.resourcesPath`. */
  readonly resources: string;
  /** Electron's `process.execPath`. */
  readonly executable: string;
}

/** Runs a program of the system; resolves with whether it ended with 0. */
export type RunProgram = (program: string, args: readonly string[]) => Promise<boolean>;

const runProgram: RunProgram = (program, args) =>
  new Promise((resolve) => {
    execFile(program, [...args], { timeout: 30_000 }, (error) => resolve(error === null));
  });

/** Reads how this copy was made. Whatever cannot be read counts as not signed, or as no address. */
export async function readUpdateFacts(place: UpdatePlace, run: RunProgram = runProgram): Promise<UpdateFacts> {
  const { version, packaged, platform, resources, executable } = place;
  const config = packaged ? await readFile(path.join(resources, 'app-update.yml'), 'utf8').catch(() => '') : '';
  return {
    version,
    packaged,
    platform,
    feedUrl: feedOf(config),
    signed: config !== '' && (await isSigned(platform, config, executable, run)),
  };
}

/** The file is written by the build with plain scalars, one member a line. */
function feedOf(config: string): string | null {
  const url = /^url: *['"]?([^'"\s]+)['"]? *$/m.exec(config)?.[1];
  return url !== undefined && URL.canParse(url) && new URL(url).protocol === 'https:' ? url : null;
}

async function isSigned(
  platform: NodeJS.Platform,
  config: string,
  executable: string,
  run: RunProgram,
): Promise<boolean> {
  // The updater compares the installer's publisher with these names, and compares nothing where there are none.
  if (platform === 'win32') return /^publisherName:(?: *\S+| *\r?\n\s*- *\S+)/m.test(config);
  if (platform !== 'darwin') return false;
  // Contents/MacOS/Switchyard -> Switchyard.app; an ad-hoc signature is no signature of anybody.
  const bundle = path.resolve(executable, '..', '..', '..');
  return run('/usr/bin/codesign', ['--verify', '--strict', '--test-requirement', '=anchor apple generic', bundle]);
}

/** electron-updater for this system; it reads `app-update.yml` itself. Needs Electron. */
export async function loadElectronUpdater(): Promise<Updater> {
  const { default: updater } = await import('electron-updater');
  return updater.autoUpdater;
}
