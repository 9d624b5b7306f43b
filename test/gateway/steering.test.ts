import { describe, expect, it } from 'vitest';
import { PRIORITY_CLASSES } from '../../main/domain/classes.ts';
import type { ProjectId } from '../../main/domain/ids.ts';
import { POLICIES, type Policy } from '../../main/domain/policy.ts';
import { resolveModel } from '../../main/gateway/models.ts';
import { type SteeringRights, type SteeringWishes, steer } from '../../main/gateway/steering.ts';
import { MODELS } from './harness.ts';

const NOTHING: SteeringWishes = {
  header: null,
  field: null,
  suffix: null,
  maxWaitMs: null,
  priority: null,
  project: null,
};
const NARROW: SteeringRights = {
  project: 'mine' as ProjectId,
  allowWiden: false,
  anyProject: false,
  classCap: 'interactive',
};
const WIDE: SteeringRights = { ...NARROW, allowWiden: true };
const rolled = (policy: Policy): { policy: Policy; maxLocalWaitMs: number } => ({ policy, maxLocalWaitMs: 3000 });
const exists = (project: string): boolean => project === 'other';
const steered = (wishes: Partial<SteeringWishes>, role: Policy, rights: SteeringRights = NARROW) =>
  steer({ ...NOTHING, ...wishes }, rolled(role), rights, exists);

describe('precedence', () => {
  it.each([
    [{ header: 'local', field: 'backup', suffix: 'aggregate' }, 'local', 'header'],
    [{ field: 'backup', suffix: 'aggregate' }, 'backup', 'field'],
    [{ suffix: 'local' }, 'local', 'suffix'],
    [{}, 'cloud', 'role'],
  ] as const)('%j ends as %s from %s', (wishes, policy, policyFrom) => {
    expect(steered(wishes, 'cloud')).toMatchObject({ policy, policyFrom });
  });

  it('tells which wishes were overruled, and only those that differ', () => {
    expect(steered({ header: 'local', field: 'local', suffix: 'cloud' }, 'cloud').overruled).toEqual(['suffix=cloud']);
    expect(steered({ header: 'local', field: 'local' }, 'cloud').overruled).toEqual([]);
  });
});

describe('exposure', () => {
  // local < backup < aggregate < cloud: every pair of role and wish, with and without the right.
  for (const [from, role] of POLICIES.entries()) {
    for (const [to, wish] of POLICIES.entries()) {
      const narrows = to <= from;
      it(`${wish} for a role under ${role} is ${narrows ? 'taken' : 'refused without the right'}`, () => {
        if (narrows) expect(steered({ field: wish }, role).policy).toBe(wish);
        else
          expect(() => steered({ field: wish }, role)).toThrow(expect.objectContaining({ code: 'policy_not_allowed' }));
        if (!narrows && role === 'local') {
          expect(() => steered({ field: wish }, role, WIDE)).toThrow(
            expect.objectContaining({ code: 'policy_not_allowed' }),
          );
        } else expect(steered({ field: wish }, role, WIDE).policy).toBe(wish);
      });
    }
  }

  it('a weaker wish that would widen is no matter when a stronger one narrows', () => {
    expect(steered({ header: 'local', suffix: 'cloud' }, 'aggregate').policy).toBe('local');
  });

  it('a shorter wait widens, a longer one does not', () => {
    expect(() => steered({ maxWaitMs: 2999 }, 'backup')).toThrow(
      expect.objectContaining({ code: 'policy_not_allowed' }),
    );
    expect(steered({ maxWaitMs: 2999 }, 'backup', WIDE).maxWaitMs).toBe(2999);
    expect(steered({ maxWaitMs: 3000 }, 'backup').maxWaitMs).toBe(3000);
    expect(steered({ maxWaitMs: 60_000 }, 'backup').maxWaitMs).toBe(60_000);
  });
});

it('a key caps the class', () => {
  for (const [capAt, classCap] of PRIORITY_CLASSES.entries()) {
    for (const [at, priority] of PRIORITY_CLASSES.entries()) {
      expect(steered({ priority }, 'local', { ...NARROW, classCap }).class).toBe(PRIORITY_CLASSES[Math.max(at, capAt)]);
    }
  }
  expect(steered({}, 'local').class).toBe('normal');
  expect(steered({}, 'local', { ...NARROW, classCap: 'batch' }).class).toBe('batch');
});

it('a key names its own project, or any that exists when it may', () => {
  expect(steered({}, 'local').project).toBe('mine');
  expect(steered({ project: 'mine' }, 'local').project).toBe('mine');
  expect(() => steered({ project: 'other' }, 'local')).toThrow(
    expect.objectContaining({ code: 'project_not_allowed' }),
  );
  expect(steered({ project: 'other' }, 'local', { ...NARROW, anyProject: true }).project).toBe('other');
  expect(() => steered({ project: 'none' }, 'local', { ...NARROW, anyProject: true })).toThrow(
    expect.objectContaining({ code: 'invalid_request' }),
  );
});

describe('model names', () => {
  it.each([
    ['code-assistant', { role: 'code-assistant', model: null, suffix: null }],
    ['code-assistant:local', { role: 'code-assistant', model: null, suffix: 'local' }],
    ['rlm:backup', { role: 'rlm', model: null, suffix: 'backup' }],
    ['tiny:local', { role: 'code-assistant', model: 'tiny:local', suffix: null }],
    ['tiny:local:cloud', { role: 'code-assistant', model: 'tiny:local', suffix: 'cloud' }],
  ])('%s is %j', (name, expected) => {
    expect(resolveModel(name, 'chat', MODELS)).toEqual(expected);
  });

  it('of several roles for this work need the role', () => {
    for (const name of ['Qwen/Qwen3-8B', 'qwen3:8b', 'qwen3:8b:local']) {
      expect(() => resolveModel(name, 'chat', MODELS)).toThrow(expect.objectContaining({ code: 'ambiguous_model' }));
    }
  });

  it('are compared exactly', () => {
    for (const name of [
      'tiny',
      'TINY:LOCAL',
      'code-assistant:',
      'code-assistant:nowhere',
      ':local',
      'constructor',
      '__proto__',
      'a'.repeat(10_000),
    ]) {
      expect(() => resolveModel(name, 'chat', MODELS)).toThrow(expect.objectContaining({ code: 'model_not_found' }));
    }
  });

  it('that are unknown are answered with what exists for this work', () => {
    expect(() => resolveModel('x', 'embed', MODELS)).toThrow(
      expect.objectContaining({ extra: { param: 'model', models: ['embedding', 'code-embedding', 'bge-m3'] } }),
    );
  });
});
