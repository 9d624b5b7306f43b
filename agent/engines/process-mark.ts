import { execFile } from 'node:child_process';
import { readdirSync, readlinkSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { childEnvironment } from '../child-environment.ts';
import { SharedLook } from './shared-look.ts';

/**
 * What identifies the process that listens on a loopback port: pid and start time. A server restarted on the same port with
 * other flags differs in nothing else, and its vectors may differ in everything.
 */
export interface ProcessMarks {
  /** `pid@start`; several listeners joined by `+`; null where it cannot be read. */
  read(port: number): Promise<string | null>;
  /** Names of the listener's parent processes, nearest first; empty where they cannot be read. */
  ancestors(port: number): Promise<readonly string[]>;
}

const run = promisify(execFile);
const TOOL_TIMEOUT_MS = 3000;

async function tool(command: string, args: readonly string[]): Promise<string> {
  const options = { timeout: TOOL_TIMEOUT_MS, env: childEnvironment(process.env), windowsHide: true };
  return (await run(command, [...args], options)).stdout.trim();
}

export function createProcessMarks(platform: NodeJS.Platform = process.platform): ProcessMarks {
  const marks = platform === 'linux' ? new LinuxMarks() : platform === 'win32' ? new WindowsMarks() : new UnixMarks();
  const reads = new Map<number, SharedLook<string | null>>();
  return {
    read(port) {
      let shared = reads.get(port);
      if (shared === undefined) {
        shared = new SharedLook(() => marks.read(port).catch(() => null));
        reads.set(port, shared);
      }
      return shared.read();
    },
    ancestors: (port) => marks.ancestors(port).catch(() => []),
  };
}

/** Reads /proc; runs nothing. */
class LinuxMarks implements ProcessMarks {
  /** Owner of a listening socket by its inode, which is never used again while the machine runs. */
  readonly #owners = new Map<string, number>();

  async read(port: number): Promise<string | null> {
    const inodes = await listeners(port);
    if (inodes.length === 0) return null;
    const marks: string[] = [];
    for (const inode of inodes) marks.push(await this.#markOf(inode));
    return marks.sort().join('+');
  }

  async ancestors(port: number): Promise<readonly string[]> {
    const [inode] = await listeners(port);
    let pid = inode === undefined ? null : await this.#owner(inode);
    const names: string[] = [];
    while (pid !== null && pid > 1 && names.length < 16) {
      const parent: number = (await statOf(pid)).parent;
      if (parent > 1) names.push((await readFile(`/proc/${parent}/comm`, 'utf8')).trim());
      pid = parent;
    }
    return names;
  }

  async #markOf(inode: string): Promise<string> {
    const pid = await this.#owner(inode);
    // Another user's process hides its files, but the inode is a mark as good: a new listener is a new socket.
    if (pid === null) return `socket:${inode}`;
    return `${pid}@${(await statOf(pid)).start}`;
  }

  async #owner(inode: string): Promise<number | null> {
    const wanted = `socket:[${inode}]`;
    const known = this.#owners.get(inode);
    if (known !== undefined && holds(known, wanted)) return known;
    this.#owners.delete(inode);
    for (const entry of readdirSync('/proc')) {
      const pid = Number(entry);
      if (!Number.isInteger(pid)) continue;
      if (holds(pid, wanted)) {
        this.#owners.set(inode, pid);
        return pid;
      }
      await new Promise(setImmediate); // a desktop has hundreds of processes; calls go on in between
    }
    return null;
  }
}

function holds(pid: number, link: string): boolean {
  try {
    const folder = `/proc/${pid}/fd`;
    return readdirSync(folder).some((fd) => {
      try {
        return readlinkSync(`${folder}/${fd}`) === link;
      } catch {
        return false; // closed since
      }
    });
  } catch {
    return false; // gone, or another user's
  }
}

const LISTENING = '0A';

/** Inodes of the sockets that listen on `port` on a loopback or wildcard address. */
async function listeners(port: number): Promise<string[]> {
  const hex = port.toString(16).toUpperCase().padStart(4, '0');
  const inodes = new Set<string>();
  for (const table of ['/proc/net/tcp', '/proc/net/tcp6']) {
    const rows = await readFile(table, 'utf8').catch(() => '');
    for (const row of rows.split('\n').slice(1)) {
      const [, local, , state, , , , , , inode] = row.trim().split(/\s+/);
      if (state !== LISTENING || inode === undefined || local === undefined) continue;
      const [address = '', localPort] = local.split(':');
      if (localPort === hex && (/^0+$/.test(address) || isLoopback(address))) inodes.add(inode);
    }
  }
  return [...inodes];
}

/** 127.x.x.x, ::1 and ::ffff:127.x.x.x in the kernel's notation (32-bit words, little-endian). */
function isLoopback(address: string): boolean {
  if (address.length === 8) return address.endsWith('7F');
  return address === '00000000000000000000000001000000' || /^0{16}FFFF0000.{6}7F$/.test(address);
}

async function statOf(pid: number): Promise<{ readonly parent: number; readonly start: string }> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8');
  // The name in parentheses may hold blanks and parentheses: fields are counted from the last one. Start time is field 22.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return { parent: Number(fields[1]), start: fields[19] ?? '' };
}

/** macOS and other Unixes: lsof and ps. */
class UnixMarks implements ProcessMarks {
  async read(port: number): Promise<string | null> {
    const pids = await this.#pids(port);
    const marks: string[] = [];
    for (const pid of pids) {
      const start = await tool('ps', ['-o', 'lstart=', '-p', String(pid)]);
      if (start !== '') marks.push(`${pid}@${start.replace(/\s+/g, ' ')}`);
    }
    return marks.length > 0 ? marks.sort().join('+') : null;
  }

  async ancestors(port: number): Promise<readonly string[]> {
    let [pid] = await this.#pids(port);
    const names: string[] = [];
    while (pid !== undefined && pid > 1 && names.length < 16) {
      const parent: number = Number(await tool('ps', ['-o', 'ppid=', '-p', String(pid)]));
      if (parent > 1) names.push((await tool('ps', ['-o', 'comm=', '-p', String(parent)])).split('/').at(-1) ?? '');
      pid = parent;
    }
    return names;
  }

  async #pids(port: number): Promise<number[]> {
    const lines = (await tool('lsof', ['-nP', `-iTCP:${port}`, '-sTCP:LISTEN', '-Fp'])).split('\n');
    return lines.filter((line) => line.startsWith('p')).map((line) => Number(line.slice(1)));
  }
}

/** Windows: one PowerShell for both questions. */
class WindowsMarks implements ProcessMarks {
  async read(port: number): Promise<string | null> {
    const script =
      `Get-NetTCPConnection -State Listen -LocalPort ${port} | Select-Object -ExpandProperty OwningProcess -Unique | ` +
      'ForEach-Object { $p = Get-CimInstance Win32_Process -Filter "ProcessId = $_"; "$($p.ProcessId)@$($p.CreationDate.ToFileTimeUtc())" }';
    const lines = (await this.#shell(script)).split(/\r?\n/).filter((line) => /^\d+@\d+$/.test(line));
    return lines.length > 0 ? lines.sort().join('+') : null;
  }

  async ancestors(port: number): Promise<readonly string[]> {
    const script =
      `$i = (Get-NetTCPConnection -State Listen -LocalPort ${port} | Select-Object -First 1).OwningProcess; ` +
      'for ($n = 0; $n -lt 8 -and $i; $n++) { $p = Get-CimInstance Win32_Process -Filter "ProcessId = $i"; ' +
      'if ($n) { $p.Name }; $i = $p.ParentProcessId }';
    return (await this.#shell(script)).split(/\r?\n/).filter((line) => line !== '');
  }

  #shell(script: string): Promise<string> {
    return tool('powershell.exe', ['-NoProfile', '-NonInteractive', '-Command', script]);
  }
}
