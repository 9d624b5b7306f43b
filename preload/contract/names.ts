/**
 * Names that every side of the contract shares, without the schemas: what runs inside a window imports these values and only the
 * types of the rest, because schema code compiles functions, which the window's content policy forbids.
 */
export { PRIORITY_CLASSES } from '../../main/domain/classes.ts';
export { ERRORS } from '../../main/domain/errors.ts';
export { ERRORS_FR } from '../../main/domain/errors-fr.ts';
export { POLICIES } from '../../main/domain/policy.ts';
export { ROLE_IDS } from '../../main/domain/roles.ts';
export { type Language, SENTENCES, sayIn } from '../../main/domain/said.ts';
export { VERDICT_KINDS } from '../../main/domain/verdict.ts';

export { isListenAddress, isOrigin, isServedName } from './addresses.ts';

export const PAGE_IDS = [
  'overview',
  'fleet',
  'roles',
  'gate',
  'budget',
  'requests',
  'keys',
  'events',
  'settings',
] as const;
export type PageId = (typeof PAGE_IDS)[number];

/** What a person does about a health item, on the page that it names; `look` when there is no better word. */
export const HEALTH_ACTIONS = [
  'see-gate',
  'enter-key',
  'see-budget',
  'see-machine',
  'found-space',
  'add-machine',
  'look',
] as const;

/** Columns of the gate's matrix, in this order. */
export const CHECK_IDS = [
  'width',
  'min-cosine',
  'centred',
  'batch',
  'norm',
  'drift',
  'nearest',
  'repeat',
  'collapse',
  'limit',
] as const;
export type CheckId = (typeof CHECK_IDS)[number];

export const NODE_STATES = ['ready', 'degraded', 'draining', 'unreachable', 'unknown', 'maintenance', 'error'] as const;
export const RANGES = ['5m', '1h', '24h'] as const;

/**
 * What a console hears by itself. A `rows` topic is a set of rows with an `id`: a snapshot first, then rows that changed and ids
 * that went. A `log` topic is the same, but a reader keeps only the newest `keep` rows. A `value` topic sends its whole value.
 */
export const TOPIC_KINDS = {
  nodes: { kind: 'rows' },
  providers: { kind: 'rows' },
  roles: { kind: 'rows' },
  gate: { kind: 'rows' },
  /** Few and urgent: sent at once, never held for the next half second. */
  health: { kind: 'rows' },
  requests: { kind: 'log', keep: 500 },
  events: { kind: 'log', keep: 1000 },
  /** Live samples, one a second: their `id` is the time in text. What the charts of five minutes need, and a little. */
  series: { kind: 'log', keep: 400 },
  budget: { kind: 'value' },
  cloud: { kind: 'value' },
  app: { kind: 'value' },
  /** Whoever changed them: the desktop and every open console follow. */
  settings: { kind: 'value' },
} as const;
export type TopicName = keyof typeof TOPIC_KINDS;
export const TOPIC_NAMES = Object.keys(TOPIC_KINDS) as TopicName[];

/** The OpenRouter key's bytes after trimming: printable ASCII, this many. */
export const KEY_BYTES = { min: 8, max: 512 } as const;
export const OVERRIDE_MAX = 256;
/** Where agents make their cloud calls unless they were started with another `--openrouter-url`. */
export const OPENROUTER_HOST = 'openrouter.ai';
