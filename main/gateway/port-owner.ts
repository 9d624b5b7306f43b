import { readdir, readFile, readlink } from 'node:fs/promises';

/** Where Linux tells about sockets and processes; another folder in tests. */
const PROC = '/proc';
const LISTENING = '0A';

/**
 * Who listens on a TCP port of this machine, for a refusal that helps: e.g. `llama-server (pid 4711)`.
 * @returns null where it cannot be known: not Linux, or a process of another user.
 */
export async function portOwner(port: number, proc: string = PROC): Promise<string | null> {
  const inodes = new Set<string>();
  for (const table of ['tcp', 'tcp6']) {
    const text = await readFile(`${proc}/net/${table}`, 'utf8').catch(() => '');
    for (const line of text.split('\n').slice(1)) {
      const [, local, , state, , , , , , inode] = line.trim().split(/\s+/);
      if (state === LISTENING && inode !== undefined && Number.parseInt(local?.split(':').at(-1) ?? '', 16) === port) {
        inodes.add(`socket:[${inode}]`);
      }
    }
  }
  if (inodes.size === 0) return null;
  for (const pid of (await readdir(proc).catch(() => [])).filter((name) => /^\d+$/.test(name))) {
    for (const handle of await readdir(`${proc}/${pid}/fd`).catch(() => [])) {
      if (!inodes.has(await readlink(`${proc}/${pid}/fd/${handle}`).catch(() => ''))) continue;
      // The command's own name: the kernel's short one is a thread's ("MainThread" for every Node program).
      const command = (await readFile(`${proc}/${pid}/cmdline`, 'utf8').catch(() => '')).split('\0')[0] ?? '';
      const name = command.split('/').at(-1) || (await readFile(`${proc}/${pid}/comm`, 'utf8').catch(() => '')).trim();
      return `${name || 'a process'} (pid ${pid})`;
    }
  }
  return null;
}
