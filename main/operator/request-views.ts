import type { RequestView, TraceStep } from '../../preload/contract.ts';
import type { RequestTrace } from '../dispatch/trace.ts';
import { ERRORS } from '../domain/errors.ts';
import type { ProviderId } from '../domain/ids.ts';
import type { RequestSummary } from '../domain/observation.ts';
import { ROLES } from '../domain/roles.ts';
import { type Said, said } from '../domain/said.ts';
import { TIER_LOADED, TIER_LOCAL } from '../router/choice.ts';
import type { Explanation } from '../router/explanation.ts';
import { isReasonCode } from '../router/reasons.ts';
import type { House } from './house.ts';

interface Named {
  readonly name: string;
  readonly kind: 'local' | 'cloud';
}

/** A provider's model and machine as they are now; of one that left, by its id's own parts. */
function partsOf(id: ProviderId, house: House): { readonly model: string; readonly name: string } {
  const provider = house.catalogue().byId.get(id)?.provider;
  if (provider) return { model: provider.model, name: provider.nodeName };
  const [, name = '', , model = ''] = id.split('~').map(decodeURIComponent);
  return { model, name };
}

function nameOf(id: ProviderId, house: House): Named {
  const { model, name } = partsOf(id, house);
  const engine = decodeURIComponent(id.split('~')[2] ?? '');
  const kind = house.catalogue().byId.get(id)?.provider.kind ?? (engine === 'openrouter' ? 'cloud' : 'local');
  return { name: `${model} on ${name}`, kind };
}

export function requestView(summary: RequestSummary, house: House): RequestView {
  const project = house.store.access.projects().find(({ id }) => id === summary.project);
  return {
    id: summary.id,
    atMs: Math.round(summary.arrivedAtMs),
    project: summary.project,
    projectName: project?.name ?? summary.project,
    role: summary.role,
    model: summary.model ?? summary.requestedModel ?? summary.role,
    policy: summary.policy,
    policyFrom: summary.policyFrom,
    class: summary.class,
    route: summary.route,
    providerId: summary.provider,
    providerName: summary.provider ? nameOf(summary.provider, house).name : null,
    outcome: summary.outcome === 'success' ? 'ok' : summary.outcome,
    errorCode: summary.code,
    overflowed: summary.overflowed,
    attempts: summary.attempts,
    queueMs: summary.queueMs,
    firstByteMs: summary.firstByteMs,
    totalMs: summary.totalMs,
    promptTokens: summary.usage?.promptTokens ?? null,
    completionTokens: summary.usage?.completionTokens ?? null,
    costUsd: summary.usage?.costUsd ?? null,
  };
}

/** The request's story in time order. */
export function traceSteps(trace: RequestTrace, house: House): readonly TraceStep[] {
  const { summary } = trace;
  const since = (atMs: number) => Math.max(0, atMs - summary.arrivedAtMs);
  const sinceMonotonic = (atMs: number) => since(atMs - trace.clockOffsetMs);
  const named = (id: ProviderId) => ({ providerId: id, ...nameOf(id, house) });
  const steps: TraceStep[] = [
    {
      step: 'arrived',
      offsetMs: 0,
      path: trace.arrival?.path ?? summary.role,
      bytes: trace.arrival?.bytes ?? 0,
      inputs: ROLES[summary.role].task === 'embed' ? trace.units : null,
      promptTokens: summary.usage?.promptTokens ?? null,
      maxOutputTokens: null,
      notes: trace.verdicts.map(({ provider, kind, atMs }) => {
        const figures = { ...partsOf(provider, house), checkedOnMs: atMs };
        if (kind === 'pass') return said('noted_pass', figures);
        return kind === 'pass-reduced' ? said('noted_reduced', figures) : said('noted_other', { ...figures, kind });
      }),
    },
  ];
  const [first] = trace.choices;
  const refused = first?.refused ?? trace.refused;
  steps.push({
    step: 'considered',
    offsetMs: first ? sinceMonotonic(first.atMs) : 0,
    eligible: (first?.eligible ?? []).map(named),
    refused: refused.map(({ provider, reason }) => ({
      ...named(provider),
      reason: isReasonCode(reason) ? said(reason) : { code: reason, sentence: reason },
    })),
  });
  for (const choice of trace.choices) steps.push(...choiceSteps(choice, trace, house, sinceMonotonic));
  trace.attempts.forEach((attempt, at) => {
    const result =
      attempt.outcome === null
        ? 'running'
        : attempt.outcome === 'success'
          ? 'success'
          : attempt.outcome === 'busy' || attempt.outcome === 'fingerprint'
            ? 'dropped'
            : attempt.outcome === 'ignored'
              ? 'ignored'
              : 'failed';
    steps.push({
      step: 'attempt',
      offsetMs: since(attempt.startedAtMs),
      number: at + 1,
      providerId: attempt.provider,
      name: nameOf(attempt.provider, house).name,
      result,
      reason: attempt.code ? { code: attempt.code, sentence: ERRORS[attempt.code].sentence } : null,
      lastedMs: attempt.endedAtMs === null ? null : Math.max(0, attempt.endedAtMs - attempt.startedAtMs),
      range: attempt.range ? { from: attempt.range.start, to: attempt.range.start + attempt.range.count - 1 } : null,
    });
  });
  if (summary.firstByteMs !== null) steps.push({ step: 'first-byte', offsetMs: summary.firstByteMs });
  steps.push({
    step: 'ended',
    offsetMs: summary.totalMs,
    outcome: summary.outcome === 'success' ? 'ok' : summary.outcome,
    error: summary.code ? { code: summary.code, sentence: ERRORS[summary.code].sentence } : null,
    promptTokens: summary.usage?.promptTokens ?? null,
    completionTokens: summary.usage?.completionTokens ?? null,
    tokensExact: summary.usage?.exact ?? false,
    costUsd: summary.usage?.costUsd ?? null,
    spaceId: trace.space,
  });
  return steps.sort((a, b) => a.offsetMs - b.offsetMs);
}

function choiceSteps(
  choice: Explanation,
  trace: RequestTrace,
  house: House,
  since: (atMs: number) => number,
): readonly TraceStep[] {
  const offsetMs = since(choice.atMs);
  const steps: TraceStep[] = [];
  if (choice.wait) {
    const { waitMs, busy, slots, ahead, serviceMs } = choice.wait;
    steps.push({
      step: 'estimated',
      offsetMs: since(choice.wait.atMs),
      waitMs,
      thresholdMs: trace.maxWaitMs,
      busy,
      slots,
      ahead,
      parts: serviceMs.map(({ provider, slots: at, ms }) => ({
        providerId: provider,
        name: nameOf(provider, house).name,
        slots: at,
        serviceMs: ms,
      })),
      overflows: choice.spill !== null,
    });
  }
  const { candidates } = choice;
  steps.push({
    step: 'chosen',
    offsetMs,
    providerId: choice.picked,
    ...nameOf(choice.picked, house),
    why: why(choice),
    weights: candidates.provider.map((provider, at) => {
      const base = candidates.base[at] ?? 1;
      const speed = candidates.speed[at] ?? 1;
      const load = 1 / (1 + (2 * (candidates.busy[at] ?? 0)) / Math.max(1, candidates.slots[at] ?? 1));
      return {
        providerId: provider,
        name: nameOf(provider, house).name,
        total: Math.max(1, Math.round(100 * base * load * speed)),
        base,
        load,
        speed,
      };
    }),
  });
  return steps;
}

function why({ affinity, copy, spill, candidates, picked }: Explanation): Said {
  if (copy) return said('copy');
  if (affinity === picked) return said('affinity');
  if (spill) return said(`spill_${spill}`);
  if (candidates.provider.length === 1) return said('only_free');
  const tier = candidates.tier[candidates.provider.indexOf(picked)];
  return said(tier === TIER_LOADED && candidates.tier.includes(TIER_LOCAL) ? 'loaded' : 'weight');
}
