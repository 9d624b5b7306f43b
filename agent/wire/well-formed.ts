import { CallHead, ResponseHead, Trailers } from './calls.ts';

/**
 * The schemas of a call's head, response head and trailers, decided without a schema library where a value is exactly what both
 * ends write: no member more, none missing, no cloud part. Then it is returned as it is. Everything else is the schema's to
 * say, so that there is one truth. A call meets six of these checks; zod takes a microsecond and a copy for each.
 */
type Members = Readonly<Record<string, unknown>>;

/** Null: it does not fit the schema. */
export function callHeadOf(value: unknown): CallHead | null {
  if (isRecord(value) && (isChatHead(value) || isEmbedHead(value))) return value as unknown as CallHead;
  return CallHead.safeParse(value).data ?? null;
}

/** Null: it does not fit the schema. */
export function responseHeadOf(value: unknown): ResponseHead | null {
  if (isRecord(value) && isResponseHead(value)) return value as unknown as ResponseHead;
  return ResponseHead.safeParse(value).data ?? null;
}

/** Null: it does not fit the schema. */
export function trailersOf(value: unknown): Trailers | null {
  if (isRecord(value) && isTrailers(value)) return value as unknown as Trailers;
  return Trailers.safeParse(value).data ?? null;
}

function isChatHead(head: Members): boolean {
  return (
    head.op === 'chat' &&
    isText(head.engine) &&
    isText(head.model) &&
    typeof head.stream === 'boolean' &&
    typeof head.wantsUsage === 'boolean' &&
    (head.path === '/v1/chat/completions' || head.path === '/v1/completions') &&
    isCount(head.firstByteMs) &&
    isCount(head.betweenTokensMs) &&
    members(head) === 8
  );
}

function isEmbedHead(head: Members): boolean {
  return (
    head.op === 'embed' &&
    isText(head.engine) &&
    isText(head.model) &&
    isCount(head.count) &&
    isCountOrNull(head.width) &&
    isCountOrNull(head.cut) &&
    typeof head.normalise === 'boolean' &&
    isTextOrNull(head.processMark) &&
    isCount(head.timeoutMs) &&
    members(head) === 9
  );
}

function isResponseHead(head: Members): boolean {
  return (
    isCount(head.status) &&
    isText(head.contentType) &&
    isCountOrNull(head.count) &&
    isCountOrNull(head.width) &&
    members(head) === 4
  );
}

function isTrailers(trailers: Members): boolean {
  return (
    (trailers.usage === null || isUsage(trailers.usage)) &&
    isFingerprint(trailers.fingerprint) &&
    isAmount(trailers.engineMs) &&
    isAmountOrNull(trailers.firstByteMs) &&
    isAmountOrNull(trailers.tokensPerSecond) &&
    typeof trailers.finished === 'boolean' &&
    members(trailers) === 6
  );
}

function isUsage(usage: unknown): boolean {
  return (
    isRecord(usage) &&
    isCount(usage.promptTokens) &&
    isCount(usage.completionTokens) &&
    typeof usage.exact === 'boolean' &&
    isAmountOrNull(usage.costUsd) &&
    members(usage) === 4
  );
}

function isFingerprint(mark: unknown): boolean {
  return (
    isRecord(mark) &&
    isText(mark.engine) &&
    isTextOrNull(mark.version) &&
    isTextOrNull(mark.modelDigest) &&
    isTextOrNull(mark.upstream) &&
    isTextOrNull(mark.pin) &&
    isTextOrNull(mark.processMark) &&
    members(mark) === 6
  );
}

const isRecord = (value: unknown): value is Members =>
  typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype;
const isText = (value: unknown) => typeof value === 'string' && value.length <= 512;
const isTextOrNull = (value: unknown) => value === null || isText(value);
const isCount = (value: unknown) => Number.isInteger(value) && (value as number) >= 0 && (value as number) <= 1e9;
const isCountOrNull = (value: unknown) => value === null || isCount(value);
const isAmount = (value: unknown) => Number.isFinite(value) && (value as number) >= 0;
const isAmountOrNull = (value: unknown) => value === null || isAmount(value);

function members(value: Members): number {
  let count = 0;
  for (const _ in value) count += 1;
  return count;
}
