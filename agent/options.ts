import { homedir } from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { type EngineAddress, parseEngineAddress } from './engines/address.ts';
import { type EnrolOptions, parseEnrolment } from './enrol/options.ts';
import { DEFAULT_PORT } from './session/ports.ts';
import { UsageError } from './usage-error.ts';

export { UsageError };

export const USAGE = `npm run agent -- [options]            run an agent
npm run agent -- code [--new]         show the join code (--new: a fresh one; the old one dies)
npm run agent -- controllers          list the paired control planes
npm run agent -- controllers rm ID    remove one
npm run agent -- identity             show the machine's key
npm run agent -- identity rotate      change it, when every control plane has heard of the next one
                                      (--now: at once; a control plane that has not must be paired again)

  --listen HOST:PORT     where control planes reach it (default 0.0.0.0:${DEFAULT_PORT}; port 0: any free one)
  --engine URL           an engine beyond those found by themselves; may be repeated
  --alias NAME=MODEL     a further name for a model of these engines; may be repeated
  --no-detect            use only the engines named, and the built-in encoder
  --no-encoder           do not offer the built-in encoder
  --openrouter-url URL   base address of the cloud account's API
  --data-dir DIR         where identity and pairings are kept; the commands above need the agent's own
  --name NAME            how people call this machine (default: its host name)
  --no-advertise         do not announce it on the network
  --no-show-code         do not print the join code (\`code\` shows it)
  --json                 JSON lines on stdout: one when ready, one for each control plane paired or removed
  --version              print the version`;

export interface AgentOptions {
  readonly command: 'run';
  readonly host: string;
  readonly port: number;
  readonly engines: readonly EngineAddress[];
  /** Further names, by the engine's own name of the model. */
  readonly aliases: ReadonlyMap<string, readonly string[]>;
  readonly detect: boolean;
  /** The built-in encoder is offered. */
  readonly encoder: boolean;
  readonly openrouterUrl: string | null;
  readonly dataDir: string;
  readonly name: string | null;
  readonly advertise: boolean;
  /** The join code is printed at the start. */
  readonly showCode: boolean;
  readonly json: boolean;
  readonly embedded: boolean;
}

export type AgentCommand =
  | AgentOptions
  | { readonly command: 'help' }
  | { readonly command: 'version' }
  | { readonly command: 'code'; readonly fresh: boolean; readonly dataDir: string; readonly json: boolean }
  | {
      readonly command: 'controllers';
      readonly remove: string | null;
      readonly dataDir: string;
      readonly json: boolean;
    }
  | {
      readonly command: 'identity';
      /** `next`: prepare another key; `now`: take it, heard of or not. */
      readonly change: 'none' | 'next' | 'now';
      readonly dataDir: string;
      readonly json: boolean;
    }
  | EnrolOptions;

/**
 * @param args the arguments after the program
 * @throws UsageError with a sentence for people, which repeats no value
 */
export function parseAgentArguments(args: readonly string[], env: NodeJS.ProcessEnv): AgentCommand {
  const { values, positionals } = parse(args);
  const dataDir = path.resolve(values['data-dir'] ?? defaultDataFolder(env));
  const json = values.json === true;
  if (values.help === true) return { command: 'help' };
  if (values.version === true) return { command: 'version' };
  const [command, verb, id, ...more] = positionals;
  if (command === 'code' && verb === undefined) return { command, fresh: values.new === true, dataDir, json };
  if (command === 'controllers' && verb === undefined) return { command, remove: null, dataDir, json };
  if (command === 'controllers' && verb === 'rm' && id !== undefined && more.length === 0) {
    return { command, remove: id, dataDir, json };
  }
  if (command === 'identity' && verb === undefined) return { command, change: 'none', dataDir, json };
  if (command === 'identity' && verb === 'rotate' && id === undefined) {
    return { command, change: values.now === true ? 'now' : 'next', dataDir, json };
  }
  if (command === 'enrol' && verb === undefined) {
    const name = values.name === undefined ? null : parseName(values.name);
    return { command, ...parseEnrolment(values), dataDir, name };
  }
  if (command !== undefined) throw new UsageError(strangeCommand(command));
  const embedded = values.embedded === true;
  return {
    command: 'run',
    ...(embedded ? { host: '127.0.0.1', port: 0 } : parseListen(values.listen)),
    engines: (values.engine ?? []).map(parseEngine),
    aliases: parseAliases(values.alias ?? []),
    detect: values['no-detect'] !== true,
    encoder: values['no-encoder'] !== true,
    openrouterUrl: values['openrouter-url'] === undefined ? null : parseCloudUrl(values['openrouter-url']),
    dataDir,
    name: values.name === undefined ? null : parseName(values.name),
    advertise: values['no-advertise'] !== true && !embedded,
    showCode: values['no-show-code'] !== true,
    json,
    embedded,
  };
}

const OPTIONS = {
  listen: { type: 'string' },
  engine: { type: 'string', multiple: true },
  alias: { type: 'string', multiple: true },
  'no-detect': { type: 'boolean' },
  'no-encoder': { type: 'boolean' },
  'openrouter-url': { type: 'string' },
  'data-dir': { type: 'string' },
  name: { type: 'string' },
  'no-advertise': { type: 'boolean' },
  'no-show-code': { type: 'boolean' },
  json: { type: 'boolean' },
  /** Given by a control plane that starts its own agent; of no use to people. */
  embedded: { type: 'boolean' },
  /** Given by the script that adds a machine; of no use to people either. */
  from: { type: 'string' },
  pin: { type: 'string' },
  port: { type: 'string' },
  ollama: { type: 'string' },
  mirror: { type: 'string' },
  account: { type: 'string' },
  'dry-run': { type: 'boolean' },
  new: { type: 'boolean' },
  now: { type: 'boolean' },
  version: { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
} as const;

function parse(args: readonly string[]) {
  try {
    return parseArgs({ args: [...args], allowPositionals: true, options: OPTIONS });
  } catch {
    throw new UsageError(strangeOption(args)); // the parser's own message would quote values
  }
}

/** What is wrong with options, by their names alone. */
function strangeOption(args: readonly string[]): string {
  const known = new Map<string, { readonly type: string }>(Object.entries(OPTIONS));
  const { tokens } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: OPTIONS,
    strict: false,
    tokens: true,
  });
  for (const token of tokens) {
    if (token.kind !== 'option') continue;
    const { name, rawName, value, inlineValue } = token;
    const type = known.get(name)?.type;
    if (type === undefined)
      return /^--?[A-Za-z][A-Za-z-]{0,31}$/.test(rawName) ? `There is no option ${rawName}.` : STRANGE;
    if (type === 'boolean' && value !== undefined) return `--${name} takes no value.`;
    if (type === 'string' && (value === undefined || (inlineValue === false && value.startsWith('-')))) {
      return `--${name} needs a value.`;
    }
  }
  return STRANGE;
}

/** Where the name itself might be a slip of what should not be repeated. */
const STRANGE = 'There is an option that the agent does not know.';

function strangeCommand(command: string): string {
  return /^[a-z-]{1,24}$/.test(command)
    ? `There is no command ${command}, or not with these words behind it.`
    : 'There is a command that the agent does not know.';
}

function parseEngine(text: string): EngineAddress {
  try {
    return parseEngineAddress(text);
  } catch {
    throw new UsageError('--engine takes http://HOST:PORT, for instance http://127.0.0.1:9931.');
  }
}

/** `HOST:PORT`, `HOST`, `:PORT`, `[IPv6]:PORT`. */
function parseListen(text: string | undefined): { readonly host: string; readonly port: number } {
  if (text === undefined) return { host: '0.0.0.0', port: DEFAULT_PORT };
  const match = /^(?:\[([0-9a-fA-F:.%a-z]+)\]|([^:[\]]*))(?::(\d{1,5}))?$/.exec(text);
  const port = match?.[3] === undefined ? DEFAULT_PORT : Number(match[3]);
  if (match === null || port > 65_535) throw new UsageError('--listen takes HOST:PORT, for instance 0.0.0.0:7412.');
  const host = match[1] ?? match[2] ?? '';
  return { host: host === '' ? '0.0.0.0' : host, port };
}

/** `NAME=MODEL`: the first `=` divides, so a model may have one in its name. */
function parseAliases(texts: readonly string[]): ReadonlyMap<string, readonly string[]> {
  const aliases = new Map<string, string[]>();
  for (const text of texts) {
    const at = text.indexOf('=');
    const [name, model] = [text.slice(0, at).trim(), text.slice(at + 1).trim()];
    const fits = (part: string) => part !== '' && part.length <= 512;
    if (at < 0 || !fits(name) || !fits(model)) {
      throw new UsageError('--alias takes NAME=MODEL, for instance qwen3:8b=Qwen/Qwen3-8B.');
    }
    aliases.set(model, [...(aliases.get(model) ?? []), name]);
  }
  return aliases;
}

/** https; plain http only to this machine, where tests and stand-ins live. */
function parseCloudUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : null;
  const loopback = url !== null && ['127.0.0.1', '[::1]', 'localhost'].includes(url.hostname);
  const plain = url !== null && url.username === '' && url.password === '' && url.search === '' && url.hash === '';
  if (url === null || !plain || !(url.protocol === 'https:' || (url.protocol === 'http:' && loopback))) {
    throw new UsageError('--openrouter-url takes an https address without user or query.');
  }
  return url.href.replace(/\/$/, '');
}

function parseName(text: string): string {
  const name = text.trim();
  if (name === '' || name.length > 63) throw new UsageError('--name takes 1 to 63 characters.');
  return name;
}

/** Where each system keeps what a program remembers. */
export function defaultDataFolder(env: NodeJS.ProcessEnv, platform: NodeJS.Platform = process.platform): string {
  const home = homedir();
  if (platform === 'darwin') return path.join(home, 'Library', 'Application Support', 'Switchyard Agent');
  if (platform === 'win32')
    return path.join(env.LOCALAPPDATA ?? path.join(home, 'AppData', 'Local'), 'Switchyard Agent');
  return path.join(env.XDG_STATE_HOME ?? path.join(home, '.local', 'state'), 'switchyard-agent');
}
