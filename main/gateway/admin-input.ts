import type { z } from 'zod';
import { SwitchyardError } from '../domain/errors.ts';
import { isRoleId } from '../domain/roles.ts';
import type { Clock } from '../domain/time.ts';
import type { AdminEntry } from './admin-table.ts';
import { BODY_LIMITS, checkBodyHeaders } from './body.ts';
import { checkJsonType, readJsonBody } from './json-body.ts';
import type { Call } from './routes.ts';

/** Members of an operation's input as HTTP carries them. */
export interface AdminInput {
  readonly members: ReadonlyMap<string, unknown>;
  /** They came as text in path and query, so numbers and booleans are still strings. */
  readonly fromText: boolean;
}

/** Puts an operation's input together. @throws SwitchyardError as `readObject` */
export async function adminInput(entry: AdminEntry, call: Call, clock: Clock): Promise<AdminInput> {
  const fromText = entry.method === 'GET' || entry.method === 'DELETE';
  const sent = fromText ? new Map<string, unknown>(call.query) : await readObject(call, clock);
  const members = new Map<string, unknown>();
  if (entry.bodyIs !== undefined) {
    // `confirm` belongs to the change, not to what is changed.
    if (sent.has('confirm')) members.set('confirm', sent.get('confirm'));
    sent.delete('confirm');
    members.set(entry.bodyIs, objectOf(sent));
  } else for (const [name, value] of sent) members.set(name, value);
  for (const [name, contractName] of Object.entries(entry.renamed ?? {})) {
    if (!members.has(name)) continue;
    if (!members.has(contractName)) members.set(contractName, members.get(name));
    members.delete(name);
  }
  const role = entry.path.startsWith('/admin/roles/') ? call.parameters.get('id') : undefined;
  if (role !== undefined && !isRoleId(role)) throw new SwitchyardError('role_not_found');
  // The path names the thing; a body cannot point elsewhere.
  for (const [name, value] of call.parameters) members.set(name, value);
  const providerName = entry.operation === 'providers.weigh' ? 'id' : 'providerId';
  const provider = members.get(providerName);
  if (typeof provider === 'string') members.set(providerName, canonicalProviderId(provider));
  return { members, fromText };
}

/** @returns the members of a JSON object; none for an empty body. Throws what reading and scanning throw. */
export async function readObject(call: Call, clock: Clock, limits = BODY_LIMITS): Promise<Map<string, unknown>> {
  if (checkBodyHeaders(call.request, limits) === 0) return new Map();
  checkJsonType(call.request);
  call.continueBody();
  return (await readJsonBody(call.request, limits, clock)).all();
}

/** A provider id whose parts lost their percent-encoding on the way through a URL gets it back. */
export function canonicalProviderId(text: string): string {
  const parts = text.split('~');
  const isId = parts.every((part) => /^(?:[A-Za-z0-9\-_.!*'()]|%[0-9A-F]{2})*$/.test(part));
  return isId ? text : parts.map((part) => encodeURIComponent(part.toWellFormed())).join('~');
}

/** @throws SwitchyardError invalid_request naming the field, never what was in it */
export function parseInput(schema: z.ZodType, input: AdminInput): unknown {
  const first = schema.safeParse(objectOf(input.members));
  if (first.success) return first.data;
  if (!input.fromText) throw inputError(first.error);
  const second = schema.safeParse(objectOf(readText(input.members, first.error)));
  if (second.success) return second.data;
  throw inputError(second.error);
}

/** Where the schema wants a number or a boolean and the text is one, it is read as such. */
function readText(members: ReadonlyMap<string, unknown>, error: z.ZodError): ReadonlyMap<string, unknown> {
  const read = new Map(members);
  for (const issue of error.issues) {
    const name = String(issue.path[0]);
    const text = members.get(name);
    if (issue.code !== 'invalid_type' || typeof text !== 'string') continue;
    if (/^(?:number|int)$/.test(issue.expected) && /^-?\d{1,16}(?:\.\d{1,16})?$/.test(text))
      read.set(name, Number(text));
    else if (issue.expected === 'boolean' && /^(?:true|false)$/.test(text)) read.set(name, text === 'true');
  }
  return read;
}

/** Without a prototype, so that a member named `__proto__` is a member like any other, which schemas then refuse. */
function objectOf(members: ReadonlyMap<string, unknown>): Record<string, unknown> {
  const object: Record<string, unknown> = Object.create(null);
  for (const [name, value] of members) object[name] = value;
  return object;
}

function inputError(error: z.ZodError): SwitchyardError {
  const issue = error.issues[0];
  const path = (issue?.path ?? []).filter((part) => /^[A-Za-z0-9]{1,40}$/.test(String(part))).join('.');
  if (issue?.code === 'unrecognized_keys') {
    const where = path === '' ? 'The input' : path;
    return new SwitchyardError('invalid_request', `${where} has a member that this operation does not know.`);
  }
  if (path === '') return new SwitchyardError('invalid_request');
  return new SwitchyardError('invalid_request', `${path} is missing or has a value that is not taken.`, {
    extra: { param: path },
  });
}
