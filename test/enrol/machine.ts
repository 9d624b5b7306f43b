import { spawn } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';

/** Whom the agent runs as here: an account that every Linux has and that owns nothing. */
const NOBODY = 65_534;

/**
 * A machine below a folder: the script's SWITCHYARD_PREFIX, and stand-ins of the programs that would change the real one. They
 * note how they were called; systemctl does start what a unit says, under another user.
 */
export class Machine {
  readonly root: string;

  constructor(root: string) {
    this.root = root;
    chmodSync(root, 0o711);
    for (const folder of ['tools', 'state', 'run/systemd/system', 'etc/systemd/system']) {
      mkdirSync(path.join(root, folder), { recursive: true });
    }
    for (const [name, body] of Object.entries(TOOLS)) {
      writeFileSync(path.join(root, 'tools', name), `#!/bin/sh\nset -eu\nROOT='${root}'\n${body}`, { mode: 0o755 });
    }
  }

  at(...parts: string[]): string {
    return path.join(this.root, ...parts);
  }

  has(file: string): boolean {
    return existsSync(this.at(file));
  }

  read(file: string): string {
    return readFileSync(this.at(file), 'utf8');
  }

  /** Calls of the stand-ins that change something, in order. */
  calls(): string[] {
    return this.has('state/calls') ? this.read('state/calls').trimEnd().split('\n') : [];
  }

  forgetCalls(): void {
    rmSync(this.at('state/calls'), { force: true });
  }

  /** Every file with its size, mode and time, but for what the stand-ins note. */
  tree(): string[] {
    return readdirSync(this.root, { recursive: true, encoding: 'utf8' })
      .filter((name) => name !== 'state' && !name.startsWith('state/'))
      .map((name) => {
        const { mode, size, mtimeMs, uid } = statSync(this.at(name));
        return `${name} ${mode.toString(8)} ${uid} ${size} ${mtimeMs}`;
      })
      .sort();
  }

  /** Ends what systemctl has started. */
  stop(): void {
    const folder = this.at('state');
    for (const name of readdirSync(folder).filter((file) => file.endsWith('.pid'))) {
      try {
        process.kill(Number(readFileSync(path.join(folder, name), 'utf8')), 'SIGKILL');
      } catch {
        // ended by itself
      }
    }
  }
}

const TOOLS = {
  id: `
for last; do :; done
case $last in
  switchyard-agent | ollama) [ -e "$ROOT/state/account-$last" ] || exit 1; echo ${NOBODY} ;;
  *) exec /usr/bin/id "$@" ;;
esac
`,
  useradd: `
echo "useradd $*" >>"$ROOT/state/calls"
for last; do :; done
: >"$ROOT/state/account-$last"
case " $* " in *' --create-home '*) mkdir -p "$ROOT/usr/share/$last"; chown ${NOBODY}:${NOBODY} "$ROOT/usr/share/$last" ;; esac
`,
  usermod: 'echo "usermod $*" >>"$ROOT/state/calls"\n',
  userdel: `
echo "userdel $*" >>"$ROOT/state/calls"
rm -f "$ROOT/state/account-$1"
`,
  systemctl: `
for last; do :; done
unit=\${last%.service}.service
pid_file=$ROOT/state/$unit.pid
file=$ROOT/etc/systemd/system/$unit
runs() { [ -s "$pid_file" ] && grep -q '^State:.[RSD]' "/proc/$(cat "$pid_file")/status" 2>/dev/null; }
stop() {
  runs || return 0
  kill "$(cat "$pid_file")"
  while runs; do sleep 0.05; done
}
start() {
  command=$(sed -n 's/^ExecStart=//p' "$file")
  setting=$(sed -n 's/^Environment=//p' "$file")
  # shellcheck disable=SC2086
  (cd / && exec setpriv --reuid ${NOBODY} --regid ${NOBODY} --clear-groups env $setting $command </dev/null >>"$ROOT/state/$unit.log" 2>&1) &
  echo $! >"$pid_file"
}
case $1 in
  is-active) runs && exit 0; exit 3 ;;
  cat) [ -e "$file" ] && exit 0; exit 1 ;;
esac
echo "systemctl $*" >>"$ROOT/state/calls"
case "$*" in
  'enable --now '*) runs || start ;;
  restart*) stop; start ;;
  'disable --now '*) [ -e "$file" ] || exit 1; stop ;;
esac
`,
} as const;

export interface Run {
  readonly status: number | null;
  readonly output: string;
}

export interface RunningScript {
  readonly done: Promise<Run>;
  kill(signal: NodeJS.Signals): void;
}

/** The script under dash, which takes nothing for granted that POSIX does not. */
export function runScript(machine: Machine, script: string, args: readonly string[]): RunningScript {
  const child = spawn('dash', [script, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
    env: { PATH: process.env.PATH, SWITCHYARD_PREFIX: machine.root },
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
  }
  return {
    done: new Promise((resolve) => child.once('close', (status) => resolve({ status, output }))),
    kill: (signal) => {
      if (child.pid !== undefined) process.kill(-child.pid, signal);
    },
  };
}
