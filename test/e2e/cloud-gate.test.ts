import { setTimeout as wait } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { referenceVector } from '../engines/openrouter/numerics.ts';
import { TeiStandIn } from '../engines/stand-ins/tei.ts';
import { HashVectors } from '../engines/stand-ins/vectors.ts';
import { CloudHouse, until } from '../support/cloud.ts';
import { removeTemporaryFolders } from '../support/processes.ts';

const MODEL = 'qwen/qwen3-embedding-8b';
const WIDTH = 256;
/** Texts that only requests send begin so; no probe does. */
const MARK = 'marked text number';

/** A local engine whose numerics are those of the first upstream. */
class ReferenceVectors extends HashVectors {
  delayMs = 0;

  constructor() {
    super(WIDTH);
  }

  override async encode(text: string): Promise<Float32Array> {
    if (this.delayMs > 0) await wait(this.delayMs);
    return Float32Array.from(referenceVector(text, WIDTH));
  }
}

interface VerdictRow {
  readonly providerId: string;
  readonly spaceId: string | null;
  readonly upstream: string | null;
  readonly kind: string;
  readonly verdict: string;
  readonly minCosine: number | null;
  readonly running: boolean;
  readonly reason: { readonly code: string; readonly sentence: string } | null;
}

interface SpaceRow {
  readonly id: string;
  readonly state: string;
  readonly regime: string;
}

function watch(house: () => CloudHouse) {
  const verdicts = async () =>
    (await house().operator.get<{ verdicts: VerdictRow[] }>('gate')).verdicts.filter(({ providerId }) =>
      providerId.startsWith('embedding~'),
    );
  const verdictOf = async (upstream: string | null, space: string) =>
    (await verdicts()).find((row) => row.upstream === upstream && row.spaceId === space && row.providerId !== '');
  const current = async () => {
    const { spaces } = await house().operator.get<{ spaces: SpaceRow[] }>('spaces');
    return spaces.find(({ state }) => state === 'current') ?? null;
  };
  /** Upstreams that saw a text of a request. */
  const sawTexts = async () => {
    const calls = await house().standIn.calls();
    const marked = calls.filter(({ body }) => JSON.stringify(body.input ?? '').includes(MARK));
    return [...new Set(marked.map(({ upstream }) => upstream))].sort();
  };
  return { verdicts, verdictOf, current, sawTexts };
}

/** The suites run beside each other, their own tests one after the other. */
const IN_TURN = { concurrent: false } as const;
afterAll(removeTemporaryFolders);

describe.concurrent('two upstreams of one model, 0.976 apart', () => {
  let house: CloudHouse;
  const numerics = new ReferenceVectors();
  let tei: TeiStandIn;
  let first: string;
  const { verdictOf, verdicts, current, sawTexts } = watch(() => house);
  const found = (founder: string, confirm: boolean) =>
    house.operator.post<SpaceRow>('spaces', { role: 'embedding', founder, confirm });
  const route = (answer: { headers: Headers }) => answer.headers.get('x-switchyard-route');

  beforeAll(async () => {
    tei = new TeiStandIn({ vectors: numerics, model: 'org/encoder', window: 512 });
    await tei.start();
    house = await CloudHouse.start({
      agents: [{ engines: [tei.url] }],
      roles: {
        embedding: {
          policy: 'aggregate',
          localModels: ['org/encoder'],
          cloud: { model: MODEL, upstreams: ['deepinfra/turbo', 'nebius'] },
        },
      },
    });
    await until(async () => (await current()) !== null);
    first = (await current())?.id ?? '';
    await until(async () => {
      const both = [await verdictOf('deepinfra/turbo', first), await verdictOf('nebius', first)];
      return both.every((row) => row !== undefined && row.verdict !== 'unverified' && !row.running);
    });
  });
  afterAll(async () => {
    await house?.stop();
    await tei?.stop();
  });

  it('an operator finds both among the upstreams to pin to', IN_TURN, async () => {
    const { cloud } = await house.operator.get<{
      cloud: { model: string; upstreams: { slug: string; quantization: string | null }[] | null }[] | null;
    }>('roles/embedding/models');
    const pins = (model: string, of = cloud) => of?.find((entry) => entry.model === model)?.upstreams;
    expect(pins(MODEL)?.map(({ slug, quantization }) => [slug, quantization])).toEqual([
      ['deepinfra/turbo', 'bf16'],
      ['nebius', 'fp8'],
    ]);
    expect(pins('baai/bge-m3')).toBeNull();
    // Of a model that the role is not set to yet.
    const other = await house.operator.get<{ cloud: typeof cloud }>('roles/embedding/models?model=baai/bge-m3');
    expect(pins('baai/bge-m3', other.cloud)?.map(({ slug }) => slug)).toEqual(['novita']);
  });

  it('admits the one and refuses the other under aggregate, with its figure', IN_TURN, async () => {
    expect(await verdictOf('deepinfra/turbo', first)).toMatchObject({ verdict: 'pass' });
    const other = await verdictOf('nebius', first);
    expect(other).toMatchObject({ verdict: 'vector-incompatible' });
    expect(other?.minCosine).toBeGreaterThan(0.97);
    expect(other?.minCosine).toBeLessThan(0.98);
    expect(other?.reason?.sentence).toContain('0.97');
  });

  it('stripes over the network and the upstream that passed, and no other ever sees a text', IN_TURN, async () => {
    numerics.delayMs = 20;
    const texts = Array.from({ length: 300 }, (_, at) => `${MARK} ${at}`);
    const answer = await house.embed(texts);
    numerics.delayMs = 0;
    expect(answer.status).toBe(200);
    expect(answer.headers.get('x-switchyard-space')).toBe(first);
    const rows = (answer.json as unknown as { data: { embedding: number[] }[] }).data;
    expect(rows).toHaveLength(300);
    for (const [at, { embedding }] of rows.entries()) {
      const own = referenceVector(texts[at] ?? '', WIDTH);
      expect(embedding.reduce((sum, value, index) => sum + value * (own[index] ?? 0), 0)).toBeGreaterThan(0.9999);
    }
    expect(await sawTexts()).toEqual(['DeepInfra']);
  });

  it('cannot be let in by flipping the policy to cloud and back', IN_TURN, async () => {
    await house.role('embedding', { policy: 'cloud' });
    await house.ready('embedding', 'cloud', 1);
    const answer = await house.embed(`${MARK} under cloud`);
    expect([answer.status, route(answer), answer.headers.get('x-switchyard-space')]).toEqual([200, 'cloud', first]);
    await until(async () => (await verdicts()).every(({ running }) => !running));
    expect(await verdictOf('nebius', first)).toMatchObject({ verdict: 'vector-incompatible' });
    await house.role('embedding', { policy: 'aggregate' });
    await house.ready('embedding', 'local', 1);
    for (let at = 0; at < 10; at++) expect((await house.embed(`${MARK} back ${at}`)).status).toBe(200);
    expect(await sawTexts()).toEqual(['DeepInfra']);
  });

  it(
    'may found a space of its own, on confirmation; the old one answers until it is retired, then 409',
    IN_TURN,
    async () => {
      const founder = (await verdictOf('nebius', first))?.providerId ?? '';
      // A space of this role must come from the network while the role is not cloud only.
      await expect(found(founder, true)).rejects.toMatchObject({ status: 409 });
      // A changed policy has everybody checked again.
      await until(async () => (await verdictOf('deepinfra/turbo', first))?.verdict === 'pass');
      await house.role('embedding', { policy: 'cloud' });
      await expect(found(founder, false)).rejects.toMatchObject({ code: 'confirmation_required' });
      const second = await found(founder, true);
      expect(second).toMatchObject({ regime: 'cloud', state: 'current' });
      await until(async () => (await verdictOf('deepinfra/turbo', second.id))?.verdict === 'vector-incompatible');
      await house.standIn.order({ forget: true });
      const fresh = await house.embed(`${MARK} in the new space`);
      expect([fresh.status, fresh.headers.get('x-switchyard-space')]).toEqual([200, second.id]);
      expect(await sawTexts()).toEqual(['Nebius']);

      await house.standIn.order({ forget: true });
      const asserted = await house.embed(`${MARK} in the old space`, {}, { 'x-switchyard-space': first });
      expect([asserted.status, asserted.headers.get('x-switchyard-space')]).toEqual([200, first]);
      expect(await sawTexts()).toEqual(['DeepInfra']);

      await house.operator.post(`spaces/${first}/retire`, { confirm: true });
      const late = await house.embed(`${MARK} too late`, {}, { 'x-switchyard-space': first });
      expect([late.status, late.json.error?.code]).toEqual([409, 'space_mismatch']);
      const unknown = await house.embed(`${MARK} nowhere`, {}, { 'x-switchyard-space': 'embedding-00000000' });
      expect([unknown.status, unknown.json.error?.code]).toEqual([409, 'space_mismatch']);
    },
  );

  it('refuses a policy that no encoder can follow', IN_TURN, async () => {
    await expect(house.role('embedding', { policy: 'local' })).rejects.toMatchObject({
      status: 409,
      code: 'new_space_required',
    });
  });

  it('and makes it with the founding of a space that can, in one step: both or neither', IN_TURN, async () => {
    const { effect, founders } = await house.operator.post<{ effect: string; founders: { kind: string }[] }>(
      'roles/embedding/preview',
      { policy: 'local' },
    );
    expect([effect, founders.map(({ kind }) => kind)]).toEqual(['new-space', ['local']]);
    const rows = await verdicts();
    const by = (kind: string) => rows.find((row) => row.kind === kind)?.providerId ?? '';
    const change = (founder: string) =>
      house.operator.post<SpaceRow>('spaces', {
        role: 'embedding',
        founder,
        patch: { policy: 'local' },
        confirm: true,
      });
    const policy = async () => (await house.operator.get<{ policy: string }>('roles/embedding')).policy;
    const spaces = async () => (await house.operator.get<{ spaces: SpaceRow[] }>('spaces?role=embedding')).spaces;
    const before = await spaces();
    await expect(change(by('cloud'))).rejects.toMatchObject({ status: 409, code: 'founder_refused' });
    expect([await policy(), await spaces()]).toEqual(['cloud', before]);
    const third = await change(by('local'));
    expect([await policy(), third.regime, third.state]).toEqual(['local', 'local', 'current']);
    expect((await spaces()).length).toBe(before.length + 1);
    const answer = await house.embed(`${MARK} at home`);
    expect([answer.status, route(answer)]).toEqual([200, 'local']);
  });
});

describe.concurrent('a single upstream in the cloud', () => {
  let house: CloudHouse;
  let space: string;
  const { verdictOf, current, sawTexts } = watch(() => house);

  beforeAll(async () => {
    house = await CloudHouse.start({
      roles: { embedding: { policy: 'cloud', cloud: { model: 'baai/bge-m3', upstreams: [] } } },
    });
  });
  afterAll(async () => {
    await house?.stop();
  });

  it('without a pin the role refuses, and nothing is asked', IN_TURN, async () => {
    const answer = await house.embed(`${MARK} without a pin`);
    expect([answer.status, answer.json.error?.code]).toEqual([503, 'space_unfounded']);
    expect(await house.standIn.calls()).toEqual([]);
  });

  it('founds by itself once it is pinned, and passes reduced with the reason', IN_TURN, async () => {
    await house.role('embedding', { cloud: { upstreams: ['novita'] } });
    await until(async () => (await current()) !== null);
    space = (await current())?.id ?? '';
    await until(async () => (await verdictOf('novita', space))?.verdict === 'pass-reduced');
    expect((await verdictOf('novita', space))?.reason?.sentence).toMatch(/peer|upstream/i);
    const answer = await house.embed([`${MARK} one`, `${MARK} two`]);
    expect([answer.status, answer.headers.get('x-switchyard-space')]).toEqual([200, space]);
    const calls = await house.standIn.calls();
    for (const { body } of calls) {
      expect(body.provider).toMatchObject({ only: ['novita'], allow_fallbacks: false });
    }
  });

  it('an error object in a 200 gives the permit back and no vector', IN_TURN, async () => {
    await house.standIn.order({ forget: true, fail: { error: 'overloaded', as: 'ok', retryAfterS: 2 } });
    const answer = await house.embed(`${MARK} after an error`);
    expect(answer.status).toBe(200);
    const [refused, again] = await house.standIn.calls();
    expect([refused?.status, again?.status]).toEqual([200, 200]);
    expect((again?.startMs ?? 0) - (refused?.endMs ?? 0)).toBeGreaterThanOrEqual(2000);
    await until(async () => (await house.budget()).inFlight === 0);
  });

  it('an answer from another upstream than the pin is thrown away, and the provider parked', IN_TURN, async () => {
    await house.standIn.order({ forget: true, claimUpstream: 'Elsewhere' });
    const leave = new AbortController();
    const pending = fetch(`${house.plane.endpoint}/v1/embeddings`, {
      method: 'POST',
      headers: { authorization: `Bearer ${house.plane.apiKey}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'embedding', input: `${MARK} astray` }),
      signal: leave.signal,
    }).then(
      async (response) => [response.status, await response.text()] as const,
      () => [0, ''] as const,
    );
    await until(async () => (await verdictOf('novita', space))?.verdict === 'probe-failed');
    const { providers } = await house.operator.get<{ providers: { role: string; kind: string; state: string }[] }>(
      'providers?role=embedding',
    );
    expect(providers.filter(({ kind }) => kind === 'cloud').map(({ state }) => state)).not.toContain('ready');
    const { events } = await house.operator.get<{ events: { code: string; needsPerson: boolean }[] }>('events');
    expect(events.some(({ code, needsPerson }) => code === 'wrong_upstream' && needsPerson)).toBe(true);
    leave.abort();
    expect((await pending)[0]).not.toBe(200);
    // One text has been seen, once: from then on there were only probes.
    const calls = await house.standIn.calls();
    expect(calls.filter(({ body }) => JSON.stringify(body.input ?? '').includes(MARK))).toHaveLength(1);
    await house.standIn.order({ claimUpstream: null });
    await house.operator.post('gate/verify');
    await until(async () => (await verdictOf('novita', space))?.verdict === 'pass-reduced');
    expect((await house.embed(`${MARK} well again`)).status).toBe(200);
  });

  it('that drifts is parked at the next check, and exactly the rows since are listed', IN_TURN, async () => {
    const before = await house.embed([`${MARK} before the check`]);
    await house.operator.post('gate/verify');
    await until(async () => {
      const row = await verdictOf('novita', space);
      return row?.verdict === 'pass-reduced' && !row.running;
    });
    await house.standIn.order({ drift: { novita: 0.95 } });
    const written = [
      await house.embed(Array.from({ length: 5 }, (_, at) => `${MARK} drifted ${at}`)),
      await house.embed([`${MARK} drifted too`]),
    ];
    const ids = written.map(({ headers }) => headers.get('x-request-id') ?? '');
    await house.operator.post('gate/verify');
    await until(async () => (await verdictOf('novita', space))?.verdict === 'unstable');
    const provider = (await verdictOf('novita', space))?.providerId ?? '';
    const { ranges } = await house.operator.get<{
      ranges: { requestId: string; from: number; to: number; spaceId: string }[];
    }>(`gate/affected?provider=${encodeURIComponent(provider)}`);
    const rows = ranges.map(({ requestId, from, to, spaceId }) => [requestId, from, to, spaceId]);
    expect(rows.sort()).toEqual(
      [
        [ids[0], 0, 4, space],
        [ids[1], 0, 0, space],
      ].sort(),
    );
    expect(rows.flat()).not.toContain(before.headers.get('x-request-id'));
    const refused = await house.embed(`${MARK} after the drift`);
    expect([refused.status, refused.json.error?.code]).toEqual([503, 'no_provider']);
    const { events } = await house.operator.get<{ events: { code: string; sentence: string }[] }>('events');
    expect(events.find(({ code }) => code === 'drift')?.sentence).toContain('6 rows');
    expect(await sawTexts()).toEqual(['Novita']);
  });
});
