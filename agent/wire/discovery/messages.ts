import { z } from 'zod';

/** DNS-SD type: `_switchyard._tcp.local`. */
export const SERVICE_TYPE = 'switchyard';
export const SERVICE_NAME = `_${SERVICE_TYPE}._tcp.local`;
/** UDP port on which agents answer queries. The number of the agents' TCP port, so that a firewall needs one rule. */
export const QUERY_PORT = 7412;
export const DISCOVERY_VERSION = 1;

/** Node id and fingerprint as announced: hints until a session proves them. */
export const NodeHint = z.object({
  id: z.string().regex(/^[0-9a-f]{32}$/),
  fp: z.string().regex(/^[0-9a-f]{64}$/),
});
export type NodeHint = z.infer<typeof NodeHint>;

const nonce = z.string().regex(/^[0-9a-f]{16}$/);
const Query = z.object({ switchyard: z.literal('query'), v: z.number().int().min(1), nonce });
const Answer = NodeHint.extend({
  switchyard: z.literal('answer'),
  v: z.number().int().min(1),
  nonce,
  port: z.number().int().min(1).max(65_535),
  name: z.string().max(256),
});
export type Answer = Omit<z.infer<typeof Answer>, 'switchyard' | 'v'>;

/** A query is padded to this many bytes and an answer is never longer: nobody can be flooded by way of an agent. */
export const QUERY_BYTES = 512;
const MAX_NAME_BYTES = 63;

export function encodeQuery(queryNonce: string): Buffer {
  const text = JSON.stringify({ switchyard: 'query', v: DISCOVERY_VERSION, nonce: queryNonce });
  return Buffer.from(text.padEnd(QUERY_BYTES), 'utf8');
}

/** @returns its nonce; null for anything else, and for a query that is shorter than its answer may be. */
export function parseQuery(datagram: Uint8Array): string | null {
  if (datagram.length < QUERY_BYTES || datagram.length > 2 * QUERY_BYTES) return null;
  const query = Query.safeParse(parseJson(datagram));
  return query.success ? query.data.nonce : null;
}

export function encodeAnswer({ id, fp, port, name, nonce: of }: Answer): Buffer {
  const answer = { switchyard: 'answer', v: DISCOVERY_VERSION, nonce: of, id, fp, port, name: plainName(name) };
  return Buffer.from(JSON.stringify(answer), 'utf8');
}

export function parseAnswer(datagram: Uint8Array): Answer | null {
  if (datagram.length > QUERY_BYTES) return null;
  const answer = Answer.safeParse(parseJson(datagram));
  return answer.success ? { ...answer.data, name: plainName(answer.data.name) } : null;
}

function parseJson(datagram: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(datagram).toString('utf8'));
  } catch {
    return null;
  }
}

/** A foreign name made fit to be shown: no control or direction characters, at most 63 bytes of UTF-8. */
export function plainName(text: string): string {
  const plain = text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, '').trim();
  return cutToBytes(plain, MAX_NAME_BYTES);
}

/** `workstation (1a2b3c4d)`: for people, and unique because the id is. `attempt` > 1 after somebody else took that name. */
export function instanceName(host: string, id: string, attempt = 1): string {
  const mark = ` (${id.slice(0, 8)}${attempt > 1 ? `-${attempt}` : ''})`;
  // A dot would begin a new label.
  const machine = cutToBytes(plainName(host).replaceAll('.', '-'), MAX_NAME_BYTES - mark.length);
  return `${machine || 'agent'}${mark}`;
}

/** The machine's part of an instance name. */
export function machineName(instance: string): string {
  return plainName(instance.replace(/ \([0-9a-f]{8}(-\d+)?\)$/, ''));
}

function cutToBytes(text: string, limit: number): string {
  let cut = '';
  let bytes = 0;
  for (const character of text) {
    bytes += Buffer.byteLength(character);
    if (bytes > limit) break;
    cut += character;
  }
  return cut;
}
