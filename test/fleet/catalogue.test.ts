import { describe, expect, it } from 'vitest';
import type { EngineReport, ModelReport } from '../../agent/wire/control.ts';
import type { NodeId } from '../../main/domain/ids.ts';
import { defaultRoleSettings, ROLE_IDS, type RoleId, type RoleSettings } from '../../main/domain/roles.ts';
import { buildCatalogue, type CatalogueInput } from '../../main/fleet/catalogue.ts';

const model = (name: string, parts: Partial<ModelReport> = {}): ModelReport => ({
  model: name,
  aliases: [],
  digest: null,
  tasks: ['chat'],
  contextTokens: 4096,
  maxInputTokens: null,
  width: null,
  maxBatch: 32,
  tokenCounting: 'exact',
  loaded: true,
  sizeBytes: null,
  tokensPerSecond: null,
  ttftMs: null,
  remoteHost: null,
  trial: false,
  ...parts,
});

const engine = (name: string, models: ModelReport[], parts: Partial<EngineReport> = {}): EngineReport => ({
  engine: name,
  kind: 'llama.cpp',
  version: 'b1',
  address: '127.0.0.1:8080',
  reach: 'loopback',
  state: 'ready',
  reason: null,
  processMark: '1:2',
  slots: 4,
  running: 0,
  queued: 0,
  foreign: 0,
  errorsTotal: 0,
  probesAnswered: 0,
  models,
  ...parts,
});

const node = (id: string, engines: EngineReport[]) =>
  ({ id: id as NodeId, name: id, state: 'ready', pulls: true, engines }) as const;

function input(
  nodes: CatalogueInput['nodes'],
  change: Partial<Record<RoleId, Partial<RoleSettings>>> = {},
  width: number | null = null,
) {
  const roles = Object.fromEntries(
    ROLE_IDS.map((role) => [role, { ...defaultRoleSettings(role), ...change[role] }]),
  ) as Record<RoleId, RoleSettings>;
  return {
    nodes,
    roles,
    spaceWidths: () => (width === null ? [] : [width]),
    baseWeight: () => 1,
  } satisfies CatalogueInput;
}

const serving = (catalogue: ReturnType<typeof buildCatalogue>, role: RoleId) =>
  catalogue.providers.filter((provider) => provider.role === role).map(({ node: at, model: name }) => `${at}:${name}`);

const encoder = (name: string, width: number, trial = false) => model(name, { tasks: ['embed'], width, trial });

describe('auto models', () => {
  it('names the chat model on most nodes, before a larger one on fewer', () => {
    const catalogue = buildCatalogue(
      input([
        node('a', [engine('e', [model('small', { sizeBytes: 1e9 }), model('huge', { sizeBytes: 9e9 })])]),
        node('b', [engine('e', [model('small', { sizeBytes: 1e9 })])]),
      ]),
    );
    expect(serving(catalogue, 'code-assistant')).toEqual(['a:small', 'b:small']);
    expect(catalogue.models['code-assistant']).toEqual(['small']);
  });

  it('names the larger of two on equally many nodes', () => {
    const catalogue = buildCatalogue(
      input([node('a', [engine('e', [model('small', { sizeBytes: 1 }), model('large', { sizeBytes: 2 })])])]),
    );
    expect(serving(catalogue, 'rlm')).toEqual(['a:large']);
  });

  it('counts models under one given name as one', () => {
    const catalogue = buildCatalogue(
      input([
        node('a', [engine('e', [model('qwen3:8b', { sizeBytes: 5 }), model('other', { sizeBytes: 9 })])]),
        node('b', [engine('e', [model('Qwen/Qwen3-8B', { aliases: ['qwen3:8b'], sizeBytes: 16 })])]),
      ]),
    );
    expect(serving(catalogue, 'rlm')).toEqual(['a:qwen3:8b', 'b:Qwen/Qwen3-8B']);
  });
});

describe('named models', () => {
  it('serves names and explicit aliases, and guesses none', () => {
    const catalogue = buildCatalogue(
      input(
        [
          node('a', [engine('e', [model('qwen3:8b', { aliases: ['qwen'] })])]),
          node('b', [engine('e', [model('Qwen/Qwen3-8B')])]),
        ],
        { 'code-assistant': { localModels: ['qwen'] } },
      ),
    );
    expect(serving(catalogue, 'code-assistant')).toEqual(['a:qwen3:8b']);
  });
});

describe('encoders', () => {
  it('are providers whatever their width: that one does not fit is for the gate to say and for people to see', () => {
    const nodes = [node('a', [engine('e', [encoder('wide', 1024), encoder('narrow', 384)])])];
    expect(serving(buildCatalogue(input(nodes)), 'embedding')).toEqual(['a:wide', 'a:narrow']);
    expect(serving(buildCatalogue(input(nodes, {}, 384)), 'embedding')).toEqual(['a:wide', 'a:narrow']);
  });

  it('leave out the trial encoder while a real one could found, and never offer it to code', () => {
    const alone = [node('a', [engine('builtin', [encoder('trial', 512, true)])])];
    expect(serving(buildCatalogue(input(alone)), 'embedding')).toEqual(['a:trial']);
    expect(serving(buildCatalogue(input(alone)), 'code-embedding')).toEqual([]);
    const both = [node('a', [engine('builtin', [encoder('trial', 512, true)]), engine('e', [encoder('real', 512)])])];
    expect(serving(buildCatalogue(input(both)), 'embedding')).toEqual(['a:real']);
  });

  it('keep the trial encoder in a space of its width, so that a founded trial goes on serving', () => {
    const both = [node('a', [engine('builtin', [encoder('trial', 512, true)]), engine('e', [encoder('real', 1024)])])];
    expect(serving(buildCatalogue(input(both, {}, 512)), 'embedding')).toEqual(['a:trial', 'a:real']);
    expect(serving(buildCatalogue(input(both, {}, 1024)), 'embedding')).toEqual(['a:real']);
  });
});

describe('kind', () => {
  it('is cloud for a model that runs elsewhere and for an engine on a public address, whatever their names', () => {
    const catalogue = buildCatalogue(
      input([
        node('a', [engine('here', [model('m', { remoteHost: 'ollama.example' })])]),
        node('b', [engine('away', [model('m')], { reach: 'public' })]),
        node('c', [engine('lan', [model('m')], { reach: 'private' })]),
      ]),
    );
    const kinds = catalogue.providers.filter(({ role }) => role === 'rlm').map(({ node: at, kind }) => [at, kind]);
    expect(kinds).toEqual([
      ['a', 'cloud'],
      ['b', 'cloud'],
      ['c', 'local'],
    ]);
  });
});

describe('OpenRouter', () => {
  const offered = (role: RoleId, name: string, present = true) => {
    const base = input([node('a', [engine('e', [model('m')])])], { 'code-assistant': {}, rlm: {} });
    const [entry] = buildCatalogue(base).entries;
    if (!entry) throw new Error('no entry');
    const provider = { ...entry.provider, role, model: name, kind: 'cloud' as const, present };
    return { ...entry, provider };
  };

  it('is no candidate among the engines: its providers are handed in, with their names where they are offered', () => {
    const reported = engine('openrouter', [model('author/slug')], { kind: 'openrouter', reach: 'public' });
    const cloud = [offered('code-assistant', 'author/slug'), offered('code-assistant', 'author/gone', false)];
    const catalogue = buildCatalogue({ ...input([node('a', [reported])]), cloud });
    expect(serving(catalogue, 'rlm')).toEqual([]);
    expect(serving(catalogue, 'code-assistant')).toEqual(['a:author/slug', 'a:author/gone']);
    expect(catalogue.models['code-assistant']).toEqual(['author/slug']);
  });

  it('serves no role that is switched off', () => {
    const cloud = [offered('code-assistant', 'author/slug')];
    const off = input([node('a', [])], { 'code-assistant': { enabled: false } });
    expect(serving(buildCatalogue({ ...off, cloud }), 'code-assistant')).toEqual([]);
  });
});

describe('slots', () => {
  it('are the engine’s: providers of one engine share one pool over roles', () => {
    const catalogue = buildCatalogue(input([node('a', [engine('e', [model('m')])])]));
    const pools = new Set(catalogue.providers.map(({ slotPool }) => slotPool));
    expect(catalogue.providers).toHaveLength(2);
    expect(pools).toEqual(new Set(['a/e']));
  });
});
