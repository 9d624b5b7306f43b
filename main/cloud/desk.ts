import type { CatalogueEndpoint } from '../../agent/wire/cloud.ts';
import type { KeyPush as KeyPushOptions, Output } from '../../preload/contract.ts';
import { MAX_PERMITS } from '../budget/ceiling.ts';
import type { BudgetSnapshot } from '../budget/snapshot.ts';
import { saidOfSource } from '../budget/sources.ts';
import type { SpendLine } from '../budget/spend.ts';
import { WINDOW_MS } from '../budget/window.ts';
import type { NodeId, ProjectId } from '../domain/ids.ts';
import { isRoleId, ROLES, type RoleId } from '../domain/roles.ts';
import { type SentenceCode, said } from '../domain/said.ts';
import type { Clock } from '../domain/time.ts';
import type { CloudDesk } from '../operator/cloud-desk.ts';
import type { BudgetService } from './budget-service.ts';
import type { CloudCatalogue } from './catalogue.ts';
import type { Holder, KeyPush } from './key-push.ts';
import type { ProjectCaps } from './project-caps.ts';

type BudgetView = Output<'budget.get'>;
type CloudView = Output<'cloud.status'>;
type Reason = CloudView['reason'];

/** How long a page waits for the live catalogue. */
const PATIENCE_MS = 8000;

export interface CloudDeskOptions {
  readonly clock: Clock;
  readonly budget: BudgetService;
  readonly keys: KeyPush;
  readonly catalogue: CloudCatalogue;
  readonly projectName: (id: ProjectId) => string;
  readonly projectCaps: Pick<ProjectCaps, 'change'>;
  /** Whether a key pushed now could survive a restart of an agent, and what to say about it. */
  readonly remember: () => { readonly can: boolean; readonly note: Reason | null };
}

/** Budget, key and catalogue as the console and the admin API see them. */
export class CloudRoom implements CloudDesk {
  readonly #options: CloudDeskOptions;
  /** Suggestion that the operator has set aside. */
  #dismissed: number | null = null;

  constructor(options: CloudDeskOptions) {
    this.#options = options;
  }

  status(): CloudView {
    const { keys, catalogue, budget, remember } = this.#options;
    const { facts } = keys;
    const holders = keys.holders();
    const snapshot = budget.snapshot();
    const { can, note } = remember();
    const none = facts.keyPush === 0 ? 'key_none' : keys.hasForgotten ? 'key_forgotten' : null;
    const pushedAtMs = none === null ? facts.keyPushedAtWallMs : null;
    return {
      ...stateOf(holders, snapshot, none),
      paused: snapshot.paused,
      holders: holders.map((holder) => holderView(holder, none, keys.status(holder.node)?.baseUrl ?? null)),
      lastPush: pushedAtMs === null ? null : { number: facts.keyPush, atMs: Math.round(pushedAtMs) },
      catalogueAtMs: catalogue.readAtWallMs === null ? null : Math.round(catalogue.readAtWallMs),
      canRemember: can,
      rememberNote: note,
    };
  }

  async pause(): Promise<void> {
    this.#options.budget.setPaused(true);
  }

  async resume(): Promise<void> {
    this.#options.budget.setPaused(false);
  }

  async forget(nodeIds: readonly string[] | null): Promise<void> {
    this.#options.keys.forget(nodeIds);
  }

  async test(): Promise<Output<'cloud.test'>> {
    const { keys, catalogue } = this.#options;
    const holders = keys.holders().filter(({ state }) => state === 'accepted' || state === 'refused');
    const results = await Promise.all(
      holders.map(async ({ node, name }) => {
        const works = await catalogue.test(node);
        return { nodeId: node, nodeName: name, works, reason: said(works ? 'key_works' : 'key_does_not_work') };
      }),
    );
    return { results };
  }

  budget(): BudgetView {
    return this.#budgetView(this.#options.budget.snapshot());
  }

  async setOverride(override: number | null): Promise<void> {
    this.#options.budget.setOverride(override);
  }

  async capProject(id: ProjectId, caps: Parameters<CloudDesk['capProject']>[1]): Promise<void> {
    await this.#options.projectCaps.change(id, caps);
  }

  dismissSuggestion(): void {
    this.#dismissed = this.#options.budget.snapshot().suggestion;
  }

  async pushKey(key: Buffer, options: KeyPushOptions): Promise<void> {
    await this.#options.keys.push(key, options);
  }

  cooldowns(sinceMs: number): readonly { readonly fromMs: number; readonly toMs: number }[] {
    const spans: { fromMs: number; toMs: number }[] = [];
    for (const record of this.#options.budget.diary().records) {
      if (record.kind !== 'cut' && record.kind !== 'cooldown-extended') continue;
      const [fromMs, toMs] = [Math.round(record.atWallMs), Math.round(record.untilWallMs)];
      const last = spans.at(-1);
      if (last !== undefined && fromMs <= last.toMs) last.toMs = Math.max(last.toMs, toMs);
      else spans.push({ fromMs, toMs });
    }
    return spans.filter(({ toMs }) => toMs > sinceMs);
  }

  spentUsd(role: RoleId): { readonly dayUsd: number | null; readonly monthUsd: number | null } {
    const line = this.#options.budget.budget.spendLines().find(({ scope, id }) => scope === 'role' && id === role);
    return { dayUsd: line?.day.spentUsd ?? 0, monthUsd: line?.month.spentUsd ?? 0 };
  }

  cappedOut(): ReturnType<CloudDesk['cappedOut']> {
    return this.#options.budget.budget.spendLines().flatMap(({ scope, id, reached }) => {
      if (reached === null) return [];
      const { reason, period, capUsd, untilWallMs: untilMs } = reached;
      const name = scope === 'role' ? id : this.#options.projectName(id as ProjectId);
      return [{ scope, id, name, reason, period, capUsd, untilMs }];
    });
  }

  offered(model: string): { readonly offered: boolean | null; readonly nearest: readonly string[] } {
    for (const role of Object.keys(ROLES)) {
      if (!isRoleId(role)) continue;
      const found = this.#options.catalogue.offered(role, model);
      if (found.offered !== null) return found;
    }
    return { offered: null, nearest: [] };
  }

  async modelsFor(role: RoleId, chosen: string | null): Promise<Output<'roles.models'>['cloud']> {
    const { catalogue } = this.#options;
    const [models, endpoints] = await Promise.all([
      this.#soon(catalogue.models()),
      chosen === null ? null : this.#soon(catalogue.endpoints(chosen)),
    ]);
    if (models === null) return null;
    const kind = ROLES[role].task;
    return models
      .filter((model) => model.kind === kind)
      .map(({ model, contextTokens, promptUsd, completionUsd }) => ({
        model,
        contextTokens,
        promptUsdPerMillion: perMillion(promptUsd),
        completionUsdPerMillion: perMillion(completionUsd),
        upstreams: model === chosen && endpoints !== null ? endpoints.map(upstreamView) : null,
      }));
  }

  /** Null when it takes longer than a person should look at an empty page. What is read later is there the next time. */
  async #soon<T>(reading: Promise<T | null>): Promise<T | null> {
    let stop = () => {};
    const late = new Promise<null>((resolve) => {
      stop = this.#options.clock.after(PATIENCE_MS, () => resolve(null));
    });
    try {
      return await Promise.race([reading, late]);
    } finally {
      stop();
    }
  }

  #budgetView(snapshot: BudgetSnapshot): BudgetView {
    const { facts, suggestion } = snapshot;
    const share = snapshot.share ?? snapshot.usable;
    const free = snapshot.circuits.find((circuit) => circuit.reason === 'free_tier_limit');
    return {
      ceiling: snapshot.ceiling,
      effective: snapshot.effective,
      usable: snapshot.usable,
      inFlight: snapshot.inFlight,
      waiting: snapshot.waiting,
      state: snapshot.state,
      sentence: { ...snapshot.says, sentence: snapshot.sentence },
      source: snapshot.ceilingSource,
      override: snapshot.override,
      overrideMax: MAX_PERMITS,
      creditUsd: facts?.creditUsd ?? null,
      rate:
        facts?.rpm == null || facts.rpm <= 0
          ? null
          : { perMinute: facts.rpm, trusted: snapshot.rpmTrusted, reason: rateReason(snapshot.rpmTrusted) },
      latencyMs: snapshot.latencyMeasured ? snapshot.latencyMs : null,
      assumedLatencyMs: snapshot.latencyMeasured ? null : snapshot.latencyMs,
      coolingUntilMs: snapshot.cooldownUntilWallMs,
      nextStepAtMs: snapshot.nextStepWallMs,
      plateau: snapshot.plateau,
      window: snapshot.window === null ? null : { ...snapshot.window, seconds: WINDOW_MS / 1000 },
      cuts: snapshot.records.flatMap((record) =>
        record.kind === 'cut'
          ? [
              {
                atMs: Math.round(record.atWallMs),
                from: record.from,
                to: record.to,
                cause: saidOfSource(record.cause),
              },
            ]
          : [],
      ),
      cooldowns: [...this.cooldowns(0)],
      steps: snapshot.records.flatMap((record) =>
        record.kind === 'step' ? [{ atMs: Math.round(record.atWallMs), from: record.from, to: record.to }] : [],
      ),
      suggestion:
        suggestion === null || suggestion === this.#dismissed
          ? null
          : {
              override: suggestion,
              reason: said('budget_full'),
            },
      freeTierClosedUntilMs: free?.untilWallMs ?? null,
      shares: snapshot.projects.map(({ project, held, waiting }) => ({
        project,
        name: this.#options.projectName(project),
        held,
        waiting,
        share,
      })),
      spendByRole: snapshot.spend.flatMap((line) =>
        line.scope === 'role' && isRoleId(line.id) ? [{ ...spendView(line), id: line.id, name: line.id }] : [],
      ),
      spendByProject: snapshot.spend.flatMap((line) =>
        line.scope === 'project' ? [{ ...spendView(line), name: this.#options.projectName(line.id as ProjectId) }] : [],
      ),
      discoveredAtMs: snapshot.discoveredAtWallMs,
    };
  }
}

function stateOf(
  holders: readonly Holder[],
  snapshot: BudgetSnapshot,
  none: NoKey | null,
): Pick<CloudView, 'state' | 'reason'> {
  const ready = holders.filter(({ state }) => state !== 'unreachable');
  const accepted = holders.filter(({ state }) => state === 'accepted').length;
  if (snapshot.paused) return { state: 'paused', reason: said('cloud_paused') };
  if (ready.length === 0) return { state: 'no-agent', reason: said('no_agent') };
  if (accepted === 0 && none !== null) return { state: 'key-missing', reason: said(none) };
  if (accepted === 0 && ready.some(({ state }) => state === 'pending'))
    return { state: 'key-missing', reason: said('key_pending') };
  if (accepted === 0) return { state: 'key-missing', reason: said('no_key_held') };
  if (snapshot.state === 'off') return { state: 'off', reason: { ...snapshot.says, sentence: snapshot.sentence } };
  return { state: 'on', reason: said('cloud_on', { agents: accepted }) };
}

/** Why nobody misses a key: none was ever pushed from here, or a person had it dropped. */
type NoKey = 'key_none' | 'key_forgotten';

function holderView(holder: Holder, none: NoKey | null, baseUrl: string | null): CloudView['holders'][number] {
  const { node, name, state, atWallMs, push, remembered, forgotten } = holder;
  const missed = state === 'key-missing' || state === 'pending';
  const code = (missed && (none ?? (forgotten ? 'key_forgotten' : null))) || HOLDER_CODES[state];
  return {
    nodeId: node satisfies NodeId,
    nodeName: name,
    state,
    reason: code === null ? null : said(code),
    atMs: atWallMs === null ? null : Math.round(atWallMs),
    push,
    remembered,
    baseUrl,
  };
}

/** Those that need a person are health items of the same codes. */
const HOLDER_CODES = {
  accepted: null,
  pending: 'key_pending',
  refused: 'cloud_refused',
  'key-missing': 'cloud_key_missing',
  'key-stale': 'cloud_key_stale',
  unreachable: 'key_unreachable',
} as const satisfies Readonly<Record<Holder['state'], SentenceCode | null>>;

function rateReason(trusted: boolean): Reason {
  return said(trusted ? 'rate_trusted' : 'rate_not_trusted');
}

function spendView(line: SpendLine) {
  const { id, day, month, caps } = line;
  return { id, dayUsd: day.spentUsd, dayCapUsd: caps.dayUsd, monthUsd: month.spentUsd, monthCapUsd: caps.monthUsd };
}

function upstreamView({
  tag,
  upstream,
  quantization,
  contextTokens,
  promptUsd,
  completionUsd,
  healthy,
}: CatalogueEndpoint) {
  return {
    slug: tag,
    name: upstream,
    quantization,
    contextTokens,
    promptUsdPerMillion: perMillion(promptUsd),
    completionUsdPerMillion: perMillion(completionUsd),
    healthy,
  };
}

function perMillion(usdPerToken: number | null): number | null {
  return usdPerToken === null ? null : usdPerToken * 1e6;
}
