import { describe, expect, it } from 'vitest';
import { defaultRoleSettings, ROLE_IDS, type RoleId } from '../../main/domain/roles.ts';
import type { House } from '../../main/operator/house.ts';
import { namingNotes } from '../../main/operator/role-naming.ts';

const MODELS = [
  { model: 'bge-m3', aliases: ['bge'], tasks: ['embed'] },
  { model: 'wide-4096', aliases: [], tasks: ['embed'] },
  { model: 'fresh', aliases: [], tasks: ['embed'] },
  { model: 'qwen3:8b', aliases: [], tasks: ['chat'] },
];
const VERDICTS: Readonly<Record<string, string>> = {
  'bge-m3': 'pass',
  'wide-4096': 'dimension-mismatch',
  fresh: 'unverified',
};

function house(pulls = true): House {
  return {
    roles: () => Object.fromEntries(ROLE_IDS.map((id) => [id, defaultRoleSettings(id)])),
    fleet: { nodes: () => [{ pulls, heartbeat: { engines: [{ reach: 'loopback', models: MODELS }] } }] },
    gate: {
      roleSpace: () => ({ state: 'founded', space: { id: 's1' } }),
      candidates: () =>
        MODELS.map(({ model, aliases }) => ({ provider: model, encoder: { provider: { model, aliases } } })),
      verdictFor: (provider: string) => VERDICTS[provider],
      admitted: (provider: string) => VERDICTS[provider] === 'pass',
    },
  } as unknown as House;
}
const notes = (role: RoleId, localModels: 'auto' | string[], of = house()) =>
  namingNotes(role, { localModels }, of).map(({ code, params }) => [code, params?.models]);

describe('naming models by hand', () => {
  it('is explained where nobody serves one, or where it does not fit the space', () => {
    expect(notes('embedding', ['wide-4096', 'bge-m4', 'bge'])).toEqual([
      ['models_absent', 'bge-m4'],
      ['models_misfit', 'wide-4096'],
    ]);
    // A model of another task is as good as none; an agent that is away serves nothing.
    expect(notes('rlm', ['bge-m3', 'qwen3:8b'])).toEqual([['models_absent', 'bge-m3']]);
    expect(notes('rlm', ['qwen3:8b'], house(false))).toEqual([['models_absent', 'qwen3:8b']]);
  });

  it('needs no word where it works, is not known yet, or nothing was named', () => {
    expect([notes('embedding', ['bge', 'fresh']), notes('embedding', 'auto'), notes('rlm', ['qwen3:8b'])]).toEqual([
      [],
      [],
      [],
    ]);
    expect(namingNotes('embedding', { policy: 'cloud' }, house())).toEqual([]);
  });
});
