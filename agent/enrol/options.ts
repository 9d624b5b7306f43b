import { type EngineAddress, parseEngineAddress, reachOf } from '../engines/address.ts';
import { DEFAULT_PORT } from '../session/ports.ts';
import { UsageError } from '../usage-error.ts';
import { parsePin } from './pin.ts';

/** Given by the script that adds this machine to a fleet. */
export interface EnrolOptions {
  readonly command: 'enrol';
  readonly from: URL;
  /** SHA-256 of the control plane's key. */
  readonly pin: Buffer;
  readonly port: number;
  readonly ollama: EngineAddress;
  readonly mirror: string | null;
  /** That the service runs as. */
  readonly account: string;
  readonly dataDir: string;
  readonly name: string | null;
  readonly dryRun: boolean;
}

interface Values {
  readonly from?: string | undefined;
  readonly pin?: string | undefined;
  readonly port?: string | undefined;
  readonly ollama?: string | undefined;
  readonly mirror?: string | undefined;
  readonly account?: string | undefined;
  readonly 'dry-run'?: boolean | undefined;
}

/** @throws UsageError with a sentence for people, which repeats no value */
export function parseEnrolment(values: Values): Omit<EnrolOptions, 'command' | 'dataDir' | 'name'> {
  return {
    ...parseOrigin(values.from, values.pin),
    port: parsePort(values.port),
    ollama: parseOllama(values.ollama ?? 'http://127.0.0.1:11434'),
    mirror: values.mirror === undefined ? null : parseMirror(values.mirror),
    account: parseAccount(values.account ?? 'switchyard-agent'),
    dryRun: values['dry-run'] === true,
  };
}

function parseOrigin(
  from: string | undefined,
  pinText: string | undefined,
): { readonly from: URL; readonly pin: Buffer } {
  const url = from !== undefined && URL.canParse(from) ? new URL(from) : null;
  const pin = pinText === undefined ? null : parsePin(pinText);
  if (url === null || pin === null || url.protocol !== 'https:' || !/^\/e\/[A-Za-z0-9_-]{22}$/.test(url.pathname)) {
    throw new UsageError('enrol takes --from URL and --pin PIN of the command that the console shows.');
  }
  return { from: url, pin };
}

function parsePort(text: string | undefined): number {
  if (text === undefined) return DEFAULT_PORT;
  const port = /^\d{1,5}$/.test(text) ? Number(text) : 0;
  if (port < 1 || port > 65_535) throw new UsageError('--port takes a number from 1 to 65535.');
  return port;
}

/** Loopback alone: what is installed listens there. */
function parseOllama(text: string): EngineAddress {
  try {
    const address = parseEngineAddress(text);
    if (reachOf(address.host) === 'loopback' && address.origin.startsWith('http:')) return address;
  } catch {
    // said below, like an address elsewhere
  }
  throw new UsageError('--ollama takes http://127.0.0.1:PORT.');
}

function parseMirror(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || !['http:', 'https:'].includes(url.protocol)) throw new UsageError('--mirror takes an address.');
  return url.href.replace(/\/$/, '');
}

function parseAccount(text: string): string {
  if (!/^[a-z_][a-z0-9_-]{0,30}$/.test(text)) throw new UsageError('--account takes the name of an account.');
  return text;
}
