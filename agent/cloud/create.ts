import { join } from 'node:path';
import type { Clock } from '../../main/domain/time.ts';
import type { CloudFromAgent } from '../wire/cloud.ts';
import { parseKeyring, SealedFile } from './at-rest.ts';
import { OPENROUTER_URL, safeBaseUrl } from './base-url.ts';
import { Credentials } from './credential.ts';
import { OpenRouterEngine } from './openrouter.ts';

export interface CloudOptions {
  readonly clock: Clock;
  /** The agent's data folder. */
  readonly folder: string;
  /** `SWITCHYARD_KEYRING`, if the environment has it: only then a key may rest. */
  readonly keyring: string | undefined;
  /** `--openrouter-url`; null: OpenRouter itself. */
  readonly baseUrl: string | null;
}

/** What the engine is given of the agent around it. */
export interface CloudSide {
  /** To the session of a control plane, if it has one now. */
  send(controller: string, message: CloudFromAgent): void;
  onChange(): void;
}

/**
 * Reads what rests of keys; the result makes the OpenRouter engine inside its agent.
 * @throws RangeError when the keyring or the base URL cannot be used; nothing of either is quoted
 */
export async function prepareOpenRouter(options: CloudOptions): Promise<(side: CloudSide) => OpenRouterEngine> {
  const { clock, folder } = options;
  const keyring = parseKeyring(options.keyring);
  const baseUrl = safeBaseUrl(options.baseUrl ?? OPENROUTER_URL);
  if (baseUrl === null) throw new RangeError('--openrouter-url must be an https address, or http on this machine.');
  const atRest = keyring === null ? null : new SealedFile(join(folder, 'cloud-keys.json'), keyring);
  const credentials = new Credentials({ clock, baseUrl, atRest });
  await credentials.load();
  return (side) => new OpenRouterEngine({ clock, credentials, ...side });
}
