import { mkdir, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';

/** An autostart entry as freedesktop.org asks for it; quoted so that a path with spaces stays one word. */
export function autostartEntry(executable: string): string {
  const quoted = `"${executable.replace(/(["`$\\])/g, '\\$1')}"`;
  return [
    '[Desktop Entry]',
    'Type=Application',
    'Name=Switchyard',
    `Exec=${quoted} --hidden`,
    'X-GNOME-Autostart-enabled=true',
    '',
  ].join('\n');
}

export interface LoginPorts {
  readonly platform: string;
  readonly executable: string;
  /** `$XDG_CONFIG_HOME`, usually ~/.config. */
  readonly configFolder: string;
  readonly setLoginItem: (settings: { openAtLogin: boolean; args: string[] }) => void;
}

/** Starts the app at login, or no longer. Linux has no call for it, only a file. */
export async function setStartAtLogin(enabled: boolean, ports: LoginPorts): Promise<void> {
  if (ports.platform !== 'linux') {
    ports.setLoginItem({ openAtLogin: enabled, args: ['--hidden'] });
    return;
  }
  const folder = path.join(ports.configFolder, 'autostart');
  const file = path.join(folder, 'switchyard.desktop');
  if (!enabled) {
    await rm(file, { force: true });
    return;
  }
  await mkdir(folder, { recursive: true });
  await writeFile(file, autostartEntry(ports.executable), { mode: 0o644 });
}
