import { globSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { ERRORS } from '../../main/domain/errors.ts';
import { ERRORS_FR } from '../../main/domain/errors-fr.ts';
import { knownFrom, SENTENCES, said, sayPlainly, together } from '../../main/domain/said.ts';
import { REFUSALS } from '../../main/domain/sentences/cloud.ts';
import { AGENTS } from '../../main/domain/sentences/fleet.ts';

const holes = (text: string) => [...new Set([...text.matchAll(/\{(\w+)[^}]*\}/g)].map(([, name]) => name))].sort();
const entries = Object.entries(SENTENCES);
const sources = globSync('main/**/*.ts')
  .filter((file) => !/^main\/domain\/(sentences\/|errors|said)/.test(file))
  .map((file) => ({ file, text: readFileSync(file, 'utf8') }));

describe('the sentences of the control plane', () => {
  it('stand in both languages, with the same names and figures in them', () => {
    for (const [code, { en, fr }] of entries) {
      expect(en.trim(), code).not.toBe('');
      expect(fr.trim(), code).not.toBe('');
      expect(fr, code).not.toBe(en);
      expect(holes(fr), code).toEqual(holes(en));
    }
    expect(Object.keys(ERRORS_FR).sort()).toEqual(Object.keys(ERRORS).sort());
  });

  it('share no code but where a reason is meant by the same word as an error', () => {
    expect(Object.keys(SENTENCES).filter((code) => Object.hasOwn(ERRORS, code))).toEqual([
      'role_disabled',
      'node_unreachable',
    ]);
  });

  it('are all said somewhere, and no room writes one of its own', () => {
    const all = sources.map(({ text }) => text).join('\n');
    // Codes stand whole, or as a template whose last part is a word of a closed list; rows and agents' own are looked up.
    const begun = [...all.matchAll(/`(\w+_)\$\{/g)].map(([, start]) => start ?? '');
    const dialled = ['closed', 'silent', 'bye', 'revoked', 'violation', 'superseded'];
    const policies = ['local', 'cloud', 'aggregate', 'backup'];
    const unsaid = Object.keys(SENTENCES).filter(
      (code) =>
        !all.includes(`'${code}'`) &&
        !begun.some((start) => code.startsWith(start)) &&
        !Object.hasOwn(AGENTS, code) &&
        !Object.hasOwn(REFUSALS, code) &&
        !new RegExp(`^ +${code}: `, 'm').test(all) &&
        ![...dialled, ...policies].includes(code),
    );
    expect(unsaid).toEqual([]);
    const own = sources.flatMap(({ file, text }) =>
      [...text.matchAll(/\bsentence: (?:['`"][A-Z]|$)/gm)].map(() => file),
    );
    expect([...new Set(own)].sort()).toEqual(BY_THEMSELVES);
  });

  it('are what the agent says, word for word', () => {
    const agent = globSync('agent/**/*.ts')
      .map((file) => readFileSync(file, 'utf8'))
      .join('\n');
    for (const { en } of Object.values(AGENTS)) expect(agent, en).toContain(en);
    expect(knownFrom('The engine is loading its model.')?.code).toBe('engine_loading_model');
    expect(knownFrom('CUDA error: out of memory')).toBeNull();
  });
});

/** A row that no version knows any more, and the failure of a call, which its code says on a trace. */
const BY_THEMSELVES = ['main/budget/sources.ts', 'main/cloud/lane.ts'];

describe('a sentence', () => {
  it('is English on the wire, with its figures beside it', () => {
    expect(said('backup', { waitMs: 1500 })).toEqual({
      code: 'backup',
      sentence: 'Local first; to the cloud when the wait would pass 1.5 s.',
      params: { waitMs: 1500 },
    });
    expect(said('key_none')).toEqual({ code: 'key_none', sentence: 'No key was given yet.' });
  });

  it('counts as each language does', () => {
    const permits = (count: number) => said('permits_override', { permits: count });
    expect(permits(1).sentence).toBe('1 permit, set by the operator.');
    expect(permits(0).sentence).toBe('0 permits, set by the operator.');
    expect(sayPlainly('fr', permits(1))).toBe('1 permis, fixé par l’opérateur.');
    expect(sayPlainly('fr', permits(2))).toBe('2 permis, fixés par l’opérateur.');
    const rows = (count: number) => sayPlainly('fr', said('drift_rows', { rows: count }));
    expect(rows(0)).toMatch(/^0 ligne écrite/);
    expect(rows(6)).toMatch(/^6 lignes écrites/);
  });

  it('may be several, each said by itself', () => {
    const both = together(said('unfounded'), said('source_credit'));
    expect(both.sentence).toBe(
      'No vector space yet: The credit is used up. Add credit at OpenRouter, then resume the cloud.',
    );
    expect(sayPlainly('fr', both)).toBe(
      'Pas encore d’espace vectoriel. Le crédit est épuisé. Ajoutez du crédit chez OpenRouter, puis reprenez le cloud.',
    );
    // A composition within a composition is taken apart again.
    const three = together(said('unfounded'), together(said('cannot_found'), said('found_reads_little', { limit: 9 })));
    expect(three.more?.map(({ code }) => code)).toEqual(['cannot_found', 'found_reads_little']);
    expect(three.sentence).toBe('No vector space yet: This encoder cannot found a space. It reads only 9 tokens.');
    expect(three.more?.[0]?.sentence).toBe('This encoder cannot found a space.');
  });

  it('writes a moment, a span, money, a share and a cosine by the end of their names', () => {
    const untilAtMs = Date.UTC(2026, 0, 1, 12, 0, 2);
    expect(said('budget_cooling', { untilAtMs }).sentence).toContain('until 12:00:02 UTC');
    expect(said('permits_credit', { permits: 4, creditUsd: 0.5 }).sentence).toContain('0.50 USD');
    expect(said('gate_scale', { offPercent: 12.34 }).sentence).toContain('by up to 12.3 %');
    expect(sayPlainly('fr', said('gate_scale', { offPercent: 12.34 }))).toContain('jusqu’à 12,3 %');
    // Cut, not rounded.
    expect(said('gate_pass', { minCosine: 0.98996 }).sentence).toContain('0.9899.');
    expect(said('clock_gap', { gapMs: 5_400_000 }).sentence).toContain('by 1 h;');
    // A name that people gave is never taken for a figure.
    expect(said('node_removed', { name: '{address}' }).sentence).toBe('{address} was removed.');
  });

  it('keeps its English where a figure did not come along, and where nobody here knows its code', () => {
    expect(sayPlainly('fr', { code: 'node_bye', sentence: 'attic: the agent stopped.' })).toBe(
      'attic: the agent stopped.',
    );
    expect(sayPlainly('fr', { code: 'of_tomorrow', sentence: 'It flew.' })).toBe('It flew.');
    const mixed = together(said('machine_says', { name: 'attic' }), { code: 'engine_says', sentence: 'CUDA error.' });
    expect(sayPlainly('fr', mixed)).toBe('attic : CUDA error.');
  });

  it('of an error is the error’s, also where a reason has the same code', () => {
    const { sentence } = ERRORS.node_unreachable;
    expect(sayPlainly('fr', { code: 'node_unreachable', sentence })).toBe(ERRORS_FR.node_unreachable);
    expect(sayPlainly('fr', said('node_unreachable'))).toBe('Sa machine est injoignable.');
  });
});
