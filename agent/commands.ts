import { stat } from 'node:fs/promises';
import path from 'node:path';
import type { AgentCommand } from './options.ts';
import { type Acquaintance, Acquaintances } from './session/acquaintances.ts';
import { Controllers } from './session/controllers.ts';
import { agentOf } from './session/folder-lock.ts';
import { loadIdentity, prepareNextKey, takeNextKey } from './session/identity.ts';
import { formatJoinCode } from './wire/joincode.ts';

type Command<Name extends AgentCommand['command']> = AgentCommand & { readonly command: Name };

/** `agent code`: what to type on the other side. */
export function showCode({ dataDir, fresh, json }: Command<'code'>): Promise<void> {
  return inFolder(dataDir, async (controllers) => {
    const code = controllers.code();
    const joinCode = fresh || code === null ? await controllers.newCode() : formatJoinCode(code);
    const agentRuns = agentOf(dataDir) !== null;
    console.log(json ? JSON.stringify({ joinCode, dataDir, agentRuns }) : joinCode);
    if (!agentRuns)
      console.error(
        `No agent runs with the data folder ${dataDir} now: start it there, or if it runs elsewhere ${WHICH}`,
      );
  });
}

/** `agent controllers`, and `rm`. */
export function showControllers({ dataDir, remove, json }: Command<'controllers'>): Promise<void> {
  return inFolder(dataDir, async (controllers) => {
    if (remove !== null && !(await controllers.revoke(remove))) {
      throw new Error('No control plane of that id is paired. List them with: npm run agent -- controllers');
    }
    const known = await Acquaintances.load(dataDir);
    const ids = controllers.ids();
    if (json) console.log(JSON.stringify({ controllers: ids, details: ids.map((id) => ({ id, ...known.of(id) })) }));
    else
      console.log(ids.length === 0 ? 'No control plane is paired.' : ids.map((id) => row(id, known.of(id))).join('\n'));
  });
}

/** `agent identity`, and `rotate`. */
export function showIdentity({ dataDir, change, json }: Command<'identity'>): Promise<void> {
  return inFolder(dataDir, async () => {
    const { node, fingerprint, next } = await (change === 'none'
      ? loadIdentity(dataDir)
      : change === 'next'
        ? prepareNextKey(dataDir)
        : takeNextKey(dataDir));
    if (json) {
      console.log(JSON.stringify({ node, fingerprint, next: next?.fingerprint ?? null }));
      return;
    }
    console.log(`Node ${node}, key ${fingerprint}`);
    if (next !== null) console.log(`Next key ${next.fingerprint}: shown when every paired control plane has kept it.`);
  });
}

const WHICH = 'give the folder that it was started with: --data-dir DIR';

/**
 * Works in the folder of an agent that has been started once. A command makes none: a code or a key in a folder that no agent reads
 * looks right and opens nothing.
 *
 * @throws Error with a sentence that says where was looked and what to do
 */
async function inFolder(folder: string, work: (controllers: Controllers) => Promise<void>): Promise<void> {
  try {
    await stat(path.join(folder, 'identity.json'));
    await work(await Controllers.load(folder));
  } catch (error) {
    const { code, syscall } = error as NodeJS.ErrnoException;
    if (syscall === undefined) throw error;
    throw new Error(
      code === 'ENOENT' || code === 'ENOTDIR'
        ? `No agent was ever started with the data folder ${folder}. Start it first (npm run agent), or ${WHICH}`
        : `The data folder ${folder} cannot be used (${code}). Run this as the user whose agent it is, or ${WHICH}`,
    );
  }
}

function row(id: string, { pairedAtMs, lastSeenAtMs }: Acquaintance): string {
  const at = (ms: number) => `${new Date(ms).toISOString().slice(0, 16).replace('T', ' ')} UTC`;
  return [
    id,
    ...(pairedAtMs === null ? [] : [`paired ${at(pairedAtMs)}`]),
    ...(lastSeenAtMs === null ? [] : [`last seen ${at(lastSeenAtMs)}`]),
  ].join('  ');
}
