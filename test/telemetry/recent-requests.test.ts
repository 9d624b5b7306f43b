import { describe, expect, it } from 'vitest';
import type { RequestId } from '../../main/domain/ids.ts';
import type { RequestSummary } from '../../main/domain/observation.ts';
import { RecentRequests } from '../../main/telemetry/recent-requests.ts';

const trace = (number: number) => ({ number, summary: { id: `r${number}` } as RequestSummary });
const id = (number: number) => `r${number}` as RequestId;

describe('recent requests', () => {
  it.each([3, 1000, 1001, 2500])('are the newest thousand of %i, newest first', (count) => {
    const recent = new RecentRequests<ReturnType<typeof trace>>();
    for (let number = 1; number <= count; number += 1) recent.add(trace(number));
    const kept = Math.min(count, 1000);
    expect(recent.list().map(({ number }) => number)).toEqual(Array.from({ length: kept }, (_, at) => count - at));
    expect(recent.get(id(count))?.number).toBe(count);
    expect(recent.get(id(count - kept + 1))?.number).toBe(count - kept + 1);
    expect(recent.get(id(count - kept))).toBeNull();
  });

  it('are told to who listens, until it does not', () => {
    const recent = new RecentRequests<ReturnType<typeof trace>>();
    const heard: number[] = [];
    const leave = recent.subscribe(({ number }) => heard.push(number));
    recent.add(trace(1));
    leave();
    recent.add(trace(2));
    expect(heard).toEqual([1]);
  });
});
