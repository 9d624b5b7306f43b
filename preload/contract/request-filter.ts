import { PRIORITY_CLASSES, ROLE_IDS } from './names.ts';
import type { RequestView } from './requests.ts';

/**
 * The words that a list of requests is filtered with: one meaning for the rows that a console holds and for those the core keeps.
 * No schema here: it runs in the window too.
 */

/** Fields a filter may name, as in `role:embedding`. Without a field every one is looked at. */
export const FILTER_FIELDS = [
  'role',
  'project',
  'route',
  'outcome',
  'model',
  'provider',
  'error',
  'class',
  'id',
] as const;
export type FilterField = (typeof FILTER_FIELDS)[number];

export interface FilterToken {
  readonly field: FilterField | null;
  readonly value: string;
}

/** `role:embedding` or any word; null when nothing is left. */
export function parseToken(typed: string): FilterToken | null {
  const text = typed.trim();
  const colon = text.indexOf(':');
  const field = FILTER_FIELDS.find((name) => name === text.slice(0, Math.max(0, colon)).toLowerCase()) ?? null;
  const value = (field === null ? text : text.slice(colon + 1)).trim().toLowerCase();
  return value === '' ? null : { field, value };
}

export const tokenText = (token: FilterToken): string =>
  token.field === null ? token.value : `${token.field}:${token.value}`;

/** Values of the fields that have few. */
const VALUES: Readonly<Partial<Record<FilterField, readonly string[]>>> = {
  role: ROLE_IDS,
  route: ['local', 'cloud', 'overflowed'],
  outcome: ['ok', 'failed', 'cancelled'],
  class: PRIORITY_CLASSES,
};

export type TokenDoubt =
  | { readonly about: 'field'; readonly name: string }
  | { readonly about: 'value'; readonly name: string; readonly values: readonly string[] };

/** Why a token may not mean what its author thinks: a field that there is not, a value that its field never has. */
export function doubtOf(token: FilterToken): TokenDoubt | null {
  if (token.field === null) {
    // A model has a colon too; its digits or dots tell it from a field (`qwen3:8b`).
    const name = /^([a-z]+):/.exec(token.value)?.[1];
    return name === undefined ? null : { about: 'field', name };
  }
  const values = VALUES[token.field];
  return !values || values.includes(token.value) ? null : { about: 'value', name: token.field, values };
}

function fieldOf(row: RequestView, field: FilterField): string {
  switch (field) {
    case 'role':
      return row.role;
    case 'project':
      return row.projectName;
    case 'route':
      return row.overflowed ? 'overflowed cloud' : (row.route ?? '');
    case 'outcome':
      return row.outcome;
    case 'model':
      return row.model;
    case 'provider':
      return row.providerName ?? '';
    case 'error':
      return row.errorCode ?? '';
    case 'class':
      return row.class;
    case 'id':
      return row.id;
  }
}

/** Fields with few values are compared whole, so that `role:embedding` leaves out `code-embedding`. */
const WHOLE: ReadonlySet<FilterField> = new Set(['role', 'outcome', 'class', 'error']);

export function matchesAll(row: RequestView, tokens: readonly FilterToken[]): boolean {
  return tokens.every(({ field, value }) => {
    if (field === null) return FILTER_FIELDS.some((name) => fieldOf(row, name).toLowerCase().includes(value));
    const held = fieldOf(row, field).toLowerCase();
    return WHOLE.has(field) ? held === value : held.includes(value);
  });
}
