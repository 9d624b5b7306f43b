import { globSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { said } from '../../main/domain/said.ts';
import {
  CHECK_IDS,
  ERRORS,
  ERRORS_FR,
  HEALTH_ACTIONS,
  NODE_STATES,
  OPERATIONS,
  PAGE_IDS,
  POLICIES,
  PRIORITY_CLASSES,
  TOPICS,
  VERDICT_KINDS,
} from '../../preload/contract.ts';
import { CATALOGUE, type MessageKey } from '../../renderer/i18n/catalogue.ts';
import { CONSOLE_ERRORS } from '../../renderer/i18n/errors.ts';
import { createI18n, fill } from '../../renderer/i18n/i18n.tsx';
import { CallError } from '../../renderer/transport/port.ts';

const holes = (text: string) => [...text.matchAll(/\{(\w+)\}/g)].map(([, name]) => name).sort();
const entries = Object.entries(CATALOGUE);

describe('the catalogue', () => {
  it('says everything in both languages, with the same names and figures in it', () => {
    for (const [key, { en, fr }] of entries) {
      expect(en.trim(), key).not.toBe('');
      expect(fr.trim(), key).not.toBe('');
      expect(holes(fr), key).toEqual(holes(en));
    }
  });

  it('has words for every page, state, verdict, check, policy, class and error', () => {
    const wanted = [
      ...PAGE_IDS.map((id) => `page.${id}`),
      ...HEALTH_ACTIONS.map((id) => `go.${id}`),
      ...NODE_STATES.map((id) => `node.${id}`),
      ...VERDICT_KINDS.map((id) => `verdict.${id}`),
      ...CHECK_IDS.map((id) => `check.${id}`),
      ...POLICIES.flatMap((id) => [`policy.${id}`, `policyMeans.${id}`]),
      ...PRIORITY_CLASSES.map((id) => `class.${id}`),
      ...options(TOPICS.cloud.schema, 'state').map((id) => `cloud.${id}`),
      ...options(TOPICS.budget.schema, 'state').map((id) => `budget.${id}`),
      ...options(TOPICS.budget.schema, 'source').map((id) => `budgetSource.${id}`),
      ...options(TOPICS.providers.schema, 'state').map((id) => `provider.${id}`),
      ...options(TOPICS.requests.schema, 'outcome').map((id) => `outcome.${id}`),
    ];
    expect(wanted.filter((key) => !Object.hasOwn(CATALOGUE, key))).toEqual([]);
    expect(Object.keys(OPERATIONS).length).toBeGreaterThan(40);
  });

  it('holds nothing that no page says', () => {
    const source = globSync('renderer/**/*.{ts,tsx}')
      .filter((file) => !file.includes('i18n/catalogue'))
      .map((file) => readFileSync(file, 'utf8'))
      .join('\n');
    // Keys are written whole, or as a template whose last part is a code.
    const unused = entries
      .map(([key]) => key)
      .filter((key) => !source.includes(`'${key}'`) && !source.includes(`\`${key.slice(0, key.indexOf('.') + 1)}\${`));
    expect(unused).toEqual([]);
  });
});

function options(schema: z.ZodType, member: string): string[] {
  const json = z.toJSONSchema(schema) as { properties: Record<string, { enum?: string[] }> };
  return json.properties[member]?.enum ?? [];
}

describe('a message', () => {
  it('fills its holes and writes figures as its language does', () => {
    expect(fill('{a} of {b}', { a: 1234, b: 'x' }, (value) => `<${value}>`)).toBe('<1234> of x');
    expect(fill('{toString} {a}', {}, String)).toBe('{toString} {a}');
    const fr = createI18n('fr');
    expect(fr.t('role.wide' satisfies MessageKey, { width: 2560 })).toBe('dimension 2\u202f560');
  });

  it('keeps our English where a reason is not known in French with all its figures', () => {
    const fr = createI18n('fr');
    expect(fr.say({ code: 'never_heard_of', sentence: 'The machine sleeps.' })).toBe('The machine sleeps.');
    expect(createI18n('en').say({ code: 'x', sentence: 'It sleeps.' })).toBe('It sleeps.');
    // A figure that did not come leaves a hole, so the English sentence with the figure in it is kept.
    const backup = { code: 'backup', sentence: 'Local first; to the cloud when the wait would pass 3 s.' };
    expect(fr.say(backup)).toBe(backup.sentence);
    expect(fr.say({ ...backup, params: { waitMs: 3000 } })).toBe(
      'Local d’abord ; vers le cloud si l’attente devait dépasser 3\u00a0s.',
    );
    expect(fr.say({ code: 'node_unreachable', sentence: 'x' })).toBe('Sa machine est injoignable.');
  });

  it('says what stands beside a sentence in its language, and an event of before in the English it was stored with', () => {
    const sentence = 'studio: the agent stopped.';
    const says = { code: 'node_bye', params: { name: 'studio' } };
    expect(createI18n('en').sayBeside(sentence, says)).toBe(sentence);
    expect(createI18n('fr').sayBeside(sentence, says)).toBe('studio : l’agent s’est arrêté.');
    expect(createI18n('fr').sayBeside(sentence, undefined)).toBe(sentence);
  });

  it('writes the figures of a sentence as its language and its clock do', () => {
    const { sentence, ...says } = said('permits_credit', { permits: 16, creditUsd: 412.5 });
    expect(sentence).toBe('16 permits: the key may still spend 412.50 USD.');
    expect(createI18n('en').sayBeside(sentence, says)).toBe('16 permits: the key may still spend $412.50.');
    expect(createI18n('fr').sayBeside(sentence, says)).toBe('16 permis : la clé peut encore dépenser 412,50\u00a0$.');
  });

  it('tells an error by its code, and a foreign one not at all', () => {
    const en = createI18n('en');
    const fr = createI18n('fr');
    expect(en.sayError(new CallError('store_unavailable'))).toBe(ERRORS.store_unavailable.sentence);
    expect(en.sayError(new CallError('no_provider', 'lab-box: asleep.'))).toBe('lab-box: asleep.');
    expect(fr.sayError(new CallError('store_unavailable'))).toBe(ERRORS_FR.store_unavailable);
    expect(fr.sayError(new CallError('console_disconnected'))).toBe(CONSOLE_ERRORS.console_disconnected?.fr);
    const refused = said('found_reads_little', { limit: 100 });
    const detailed = new CallError('founder_refused', refused.sentence, refused);
    expect(en.sayError(detailed)).toBe('It reads only 100 tokens.');
    expect(fr.sayError(detailed)).toBe('Il ne lit que 100 jetons.');
    expect(en.sayError(new Error('sk-or-v1-secret'))).toBe(CATALOGUE['error.internal'].en);
    expect(en.sayError(new CallError('constructor'))).toBe(CATALOGUE['error.internal'].en);
  });
});
