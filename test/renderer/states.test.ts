import { expect, it } from 'vitest';
import { servedBy } from '../../renderer/pages/states.ts';

it('a machine serves what it does work of, and not what it could do', () => {
  const role = (name: 'embedding' | 'reranker' | 'rlm', serving: boolean) => ({ role: name, serving, reason: null });
  expect(servedBy({ roles: [role('embedding', false), role('reranker', true), role('rlm', true)] })).toBe(
    'reranker, rlm',
  );
  expect(servedBy({ roles: [role('embedding', false)] })).toBe('');
});
