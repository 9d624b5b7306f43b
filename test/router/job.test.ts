import { expect, it } from 'vitest';
import type { ProviderId } from '../../main/domain/ids.ts';
import { StripedJob } from '../../main/router/job.ts';

const owner = { id: 'a' as ProviderId, local: true, expectedAtMs: null };

it('hands out inputs from the first on, and knows what is left', () => {
  const job = new StripedJob(10, 0);
  expect(job.take(4, 1, owner, 0)).toMatchObject({ start: 0, count: 4 });
  expect(job.take(6, 2, owner, 0)).toMatchObject({ start: 4, count: 6 });
  expect(job.front()).toBeNull();
  expect(job.left).toBe(0);
});

it('gives back to the front, in parts if need be, never across two pieces', () => {
  const job = new StripedJob(10, 0);
  const first = job.take(4, 1, owner, 0);
  job.take(2, 2, owner, 0);
  job.attemptOver(first, 1, owner.id);
  job.giveBack(first, owner.id);
  expect(job.left).toBe(8);
  expect(job.front()).toMatchObject({ start: 0, count: 4, failures: 1, failedBy: ['a'] });
  expect(job.take(3, 3, owner, 0)).toMatchObject({ start: 0, count: 3 });
  expect(() => job.take(2, 4, owner, 0)).toThrow(RangeError);
  expect(job.take(1, 4, owner, 0)).toMatchObject({ start: 3, count: 1, failures: 1 });
  expect(job.take(4, 5, owner, 0)).toMatchObject({ start: 6, count: 4, failures: 0 });
});

it('is finished when every input has been answered once', () => {
  const job = new StripedJob(3, 0);
  const one = job.take(1, 1, owner, 0);
  const two = job.take(2, 2, owner, 0);
  job.answer(two, 5);
  expect(job.finished).toBe(false);
  job.answer(one, 6);
  expect(job.finished).toBe(true);
});

it('counts the chunks that a provider has in flight, copies included', () => {
  const job = new StripedJob(3, 0);
  const chunk = job.take(1, 1, owner, 0);
  job.copy(chunk, 2, 'b' as ProviderId);
  expect([job.chunksAt(owner.id), job.chunksAt('b' as ProviderId)]).toEqual([1, 1]);
  job.attemptOver(chunk, 1, owner.id);
  expect([job.chunksAt(owner.id), job.chunksAt('b' as ProviderId)]).toEqual([0, 1]);
});
