/**
 * Environment of programs that the agent starts: what they need to run, and nothing that may hold a secret. A list of what is
 * allowed, because a list of what is secret is never complete.
 */
const ALLOWED = [
  'PATH',
  'HOME',
  'USER',
  'LOGNAME',
  'LANG',
  'LC_ALL',
  'TZ',
  'TMPDIR',
  'TEMP',
  'TMP',
  'SystemRoot',
  'SYSTEMROOT',
  'windir',
  'COMSPEC',
  'PATHEXT',
  'USERPROFILE',
  'APPDATA',
  'LOCALAPPDATA',
  'ProgramFiles',
  'ProgramData',
];

export function childEnvironment(own: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const environment: NodeJS.ProcessEnv = {};
  for (const name of ALLOWED) {
    const value = own[name];
    if (value !== undefined) environment[name] = value;
  }
  return environment;
}
