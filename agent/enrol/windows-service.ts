import path from 'node:path';
import type { ServicePlan } from './service.ts';

export const SERVICE = 'SwitchyardAgent';

/**
 * Arguments of sc.exe. Windows starts only programs that speak with its service manager, which Node.js does not: what it starts is
 * the small host that install.ps1 made, and that starts the agent. The account is the service's own, which has no password and no rights.
 */
export function createArguments({ command }: ServicePlan, exists: boolean): [string, ...string[]] {
  const [program = '', ...rest] = command;
  const host = path.win32.join(path.win32.dirname(program), 'service-host.exe');
  return [
    exists ? 'config' : 'create',
    SERVICE,
    'binPath=',
    [host, program, ...rest].map(quoted).join(' '),
    'start=',
    'auto',
    'obj=',
    `NT SERVICE\\${SERVICE}`,
    'DisplayName=',
    'Switchyard agent',
  ];
}

/** As Windows programs read their command line. */
export function quoted(text: string): string {
  if (text !== '' && !/[\s"]/.test(text)) return text;
  return `"${text.replace(/(\\*)"/g, '$1$1\\"').replace(/(\\+)$/, '$1$1')}"`;
}
