import { z } from 'zod';
import { SwitchyardError } from '../domain/errors.ts';
import type { ProviderId, SpaceId } from '../domain/ids.ts';
import { ROLE_IDS, ROLES } from '../domain/roles.ts';
import { type Digest, fromBytes, toBytes } from './bytes.ts';
import { anchorTexts } from './probes.ts';
import { type AnchoredSpace, MIN_THRESHOLD, type SpaceFacts } from './space.ts';

const FORMAT = 'switchyard-space';
const FORMAT_VERSION = 1;

const text = z.string().max(200_000);
const name = z.string().max(512);
const probe = z.object({ id: z.string().min(1).max(64), text });
const tokens = z.number().int().min(1).max(1e9);

const Facts = z.object({
  id: z.string().regex(/^[a-z-]+-[0-9a-f]{8}$/),
  role: z.enum(ROLE_IDS),
  width: z.number().int().min(1).max(65_536),
  regime: z.enum(['local', 'cloud']),
  probes: z.object({
    version: z.number().int().min(1),
    texts: z.array(probe).min(1).max(1024),
    equalLength: z.array(probe).min(1).max(64),
    overLimit: z.object({ base: z.string(), otherTail: z.string(), otherHead: z.string() }),
  }),
  limitTokens: tokens,
  counted: z.boolean(),
  normalise: z.boolean(),
  threshold: z.number().min(MIN_THRESHOLD).max(1),
  founder: z.object({
    provider: z.string().max(2048),
    nodeName: name,
    engineKind: name,
    model: name,
    fingerprint: z.object({
      engine: name,
      version: name.nullable(),
      modelDigest: name.nullable(),
      upstream: name.nullable(),
      pin: name.nullable(),
      processMark: name.nullable(),
    }),
  }),
  trial: z.boolean(),
  createdAtMs: z.number().min(0),
  retiredAtMs: z.number().min(0).nullable(),
  cutDimensions: z.array(z.number().int().min(1).max(65_536)).max(64),
});

const Envelope = z.object({
  format: z.literal(FORMAT),
  version: z.literal(FORMAT_VERSION),
  sha256: z.string().length(64),
  space: z.record(z.string(), z.unknown()),
  anchor: z.string(),
});

/** The digest covers facts and anchor together: an anchor moved under another space's facts is refused too. */
function digestOf(space: unknown, anchor: string, digest: Digest): string {
  return digest(new TextEncoder().encode(JSON.stringify([FORMAT, FORMAT_VERSION, space, anchor])));
}

/** A space as one JSON document: facts, probes and anchor. It holds no key and no text of a user. */
export function exportSpace(space: AnchoredSpace, digest: Digest): string {
  const { anchor, ...facts } = space;
  const packed = Buffer.from(toBytes(anchor)).toString('base64');
  const sha256 = digestOf(facts, packed, digest);
  return JSON.stringify({ format: FORMAT, version: FORMAT_VERSION, sha256, space: facts, anchor: packed });
}

/** @throws SwitchyardError invalid_space_file when a single bit is not as it was exported */
export function importSpace(content: string, digest: Digest): AnchoredSpace {
  const envelope = Envelope.safeParse(parseJson(content));
  if (!envelope.success) throw refused('it is not an export of a space');
  const { sha256, space, anchor } = envelope.data;
  if (digestOf(space, anchor, digest) !== sha256) throw refused('its content does not match its checksum');
  const facts = Facts.safeParse(space);
  if (!facts.success) throw refused('a field of it is missing or has the wrong form');
  const { data } = facts;
  if (ROLES[data.role].task !== 'embed') throw refused('its role has no vectors');
  if (!data.id.startsWith(`${data.role}-`)) throw refused('its id belongs to another role');
  // The casts only brand: both were made by this product and their form was checked above.
  const parsed: SpaceFacts = {
    ...data,
    id: data.id as SpaceId,
    founder: { ...data.founder, provider: data.founder.provider as ProviderId },
  };
  const vectors = fromBytes(Buffer.from(anchor, 'base64'));
  if (vectors === null || vectors.length !== anchorTexts(parsed.probes).length * parsed.width) {
    throw refused('its reference vectors are not complete');
  }
  if (!vectors.every(Number.isFinite)) throw refused('its reference vectors are not all finite');
  return { ...parsed, anchor: vectors };
}

function parseJson(content: string): unknown {
  try {
    return JSON.parse(content);
  } catch {
    return null;
  }
}

function refused(why: string): SwitchyardError {
  return new SwitchyardError('invalid_space_file', `This file cannot be imported: ${why}. Export the space again.`);
}
