import { expect, it } from 'vitest';
import { tokenCounter } from '../../main/dispatch/token-counter.ts';
import type { SpaceId } from '../../main/domain/ids.ts';
import type { Encoder, ProbePort } from '../../main/gate/probe-port.ts';

it('counting ends with the client that asked for it, and no other engine is asked for one that has left', async () => {
  const asked: string[] = [];
  const probes = {
    tokenize: ({ id }, _texts, signal) => {
      asked.push(id);
      return new Promise((resolve) => signal.addEventListener('abort', () => resolve(null), { once: true }));
    },
  } as Pick<ProbePort, 'tokenize'> as ProbePort;
  const encoder = (id: string) =>
    ({ tokenCounting: 'exact', provider: { id, reachable: true, nodePulls: true } }) as unknown as Encoder;
  const count = tokenCounter({
    probes,
    gate: { admitted: () => true },
    encoders: () => [encoder('a'), encoder('b')],
  });
  const leave = new AbortController();
  const counted = count('embedding-00000001' as SpaceId, leave.signal)(['a text']);
  leave.abort();
  expect(await counted).toBeNull();
  expect(asked).toEqual(['a']);
});
