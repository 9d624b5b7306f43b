import type { Output } from '../../preload/contract.ts';
import { SwitchyardError } from '../domain/errors.ts';
import type { RequestId } from '../domain/ids.ts';
import { ROLES, type RoleId } from '../domain/roles.ts';
import type { RequestContext, Route, RunningWork, WorkUsage } from '../domain/work.ts';
import type { House } from './house.ts';

type Result = Output<'test.request'>;
type Measured = { readonly route: Route; readonly measure: Result['measure'] };

const PROMPT = 'Answer with the word ready.';
const TEXTS = ['The quick brown fox jumps over the lazy dog.'];
const DOCUMENTS = ['A switchyard sorts wagons.', 'Bread is baked in an oven.'];
const TIMEOUT_MS = 120_000;

/** One small request through the very path of every other: router, agent, engine. */
export async function testRequest(role: RoleId, house: House): Promise<Result> {
  const { clock } = house;
  const id = `req-${Buffer.from(house.randomBytes(12)).toString('hex')}` as RequestId;
  const settings = house.roles()[role];
  const startedAtMs = clock.nowMs();
  const context: RequestContext = {
    id,
    project: house.ownProject,
    role,
    model: null,
    policy: settings.policy,
    policyFrom: 'role',
    class: 'interactive',
    maxWaitMs: settings.maxLocalWaitMs,
    arrivedAtMs: startedAtMs,
  };
  const result = (part: Pick<Result, 'ok' | 'error' | 'providerName' | 'model' | 'measure'>): Result => ({
    requestId: id,
    totalMs: clock.nowMs() - startedAtMs,
    ...part,
  });
  let running: RunningWork | null = null;
  let cancelTimer = () => {};
  try {
    const { route, measure } = await new Promise<Measured>((resolve, reject) => {
      cancelTimer = clock.after(TIMEOUT_MS, () => reject(new SwitchyardError('engine_timeout')));
      running = start(context, house, resolve, reject);
    });
    return result({
      ok: true,
      error: null,
      providerName: `${route.model} on ${route.nodeName}`,
      model: route.model,
      measure,
    });
  } catch (error) {
    const known = error instanceof SwitchyardError ? error : new SwitchyardError('internal_error');
    (running as RunningWork | null)?.cancel();
    return result({
      ok: false,
      error: { code: known.code, sentence: known.message },
      providerName: null,
      model: null,
      measure: null,
    });
  } finally {
    cancelTimer();
  }
}

function start(
  context: RequestContext,
  house: House,
  resolve: (measured: Measured) => void,
  onFailure: (error: unknown) => void,
): RunningWork {
  switch (ROLES[context.role].task) {
    case 'embed':
      return house.dispatcher.embed(
        { context, texts: TEXTS, dimensions: null, truncate: false, space: null },
        { onAnswer: ({ route, width }) => resolve({ route, measure: { unit: 'wide', value: width } }), onFailure },
      );
    case 'rerank':
      return house.dispatcher.rerank(
        { context, query: 'railway', documents: DOCUMENTS },
        {
          onAnswer: ({ route, scores }) => resolve({ route, measure: { unit: 'scores', value: scores.length } }),
          onFailure,
        },
      );
    case 'chat': {
      let route: Route | null = null;
      const body = {
        model: context.role,
        messages: [{ role: 'user', content: PROMPT }],
        max_tokens: 16,
        stream: false,
      };
      return house.dispatcher.chat(
        {
          context,
          path: '/v1/chat/completions',
          stream: false,
          wantsUsage: true,
          body: new TextEncoder().encode(JSON.stringify(body)),
          promptTokens: Math.ceil(PROMPT.length / 3),
          maxOutputTokens: 16,
          conversation: null,
        },
        {
          onHead: (got) => {
            route = got;
          },
          onData: () => true,
          onEnd: (usage: WorkUsage | null) => {
            if (!route) onFailure(new SwitchyardError('internal_error'));
            else resolve({ route, measure: usage ? { unit: 'tokens', value: usage.completionTokens } : null });
          },
          onFailure,
        },
      );
    }
  }
}
