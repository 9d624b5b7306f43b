import type { EngineReport, ModelReport } from '../../agent/wire/control.ts';
import { type EngineId, type NodeId, type ProviderId, providerId } from '../domain/ids.ts';
import type { ProviderKind } from '../domain/policy.ts';
import type { NodeState, Provider } from '../domain/provider.ts';
import { ROLE_IDS, ROLES, type RoleId, type RoleSettings, type Task } from '../domain/roles.ts';
import type { Fingerprint } from '../domain/verdict.ts';

/** A node as the catalogue sees it: its last heartbeat and what the session says. */
export interface CatalogueNode {
  readonly id: NodeId;
  readonly name: string;
  readonly state: NodeState;
  readonly pulls: boolean;
  readonly engines: readonly EngineReport[];
}

export interface CatalogueInput {
  readonly nodes: readonly CatalogueNode[];
  readonly roles: Readonly<Record<RoleId, RoleSettings>>;
  /** Widths of each embedding role's spaces that still answer, the current one and retained ones; empty: not founded. */
  readonly spaceWidths: (role: RoleId) => readonly number[];
  readonly baseWeight: (provider: ProviderId) => number;
  /** OpenRouter's, as the cloud makes them of what agents offer; absent: none. */
  readonly cloud?: readonly CatalogueEntry[];
}

/** Facts the router does not need but the gate, founding and people do. */
export interface CatalogueEntry {
  readonly provider: Provider;
  readonly width: number | null;
  readonly maxInputTokens: number | null;
  readonly tokenCounting: ModelReport['tokenCounting'];
  readonly trial: boolean;
}

export interface Catalogue {
  readonly entries: readonly CatalogueEntry[];
  readonly providers: readonly Provider[];
  readonly byId: ReadonlyMap<ProviderId, CatalogueEntry>;
  /** Concrete model names and aliases each role serves, in the order they are shown. */
  readonly models: Readonly<Record<RoleId, readonly string[]>>;
}

interface Candidate {
  readonly node: CatalogueNode;
  readonly engine: EngineReport;
  readonly model: ModelReport;
}

/** Cloud kind is a matter of where the work runs, not of its name: a remote host or a public address leaves the network. */
export function kindOf(engine: EngineReport, model: ModelReport): ProviderKind {
  return engine.reach === 'public' || engine.kind === 'openrouter' || model.remoteHost !== null ? 'cloud' : 'local';
}

function answersTo(model: ModelReport, name: string): boolean {
  return model.model === name || model.aliases.includes(name);
}

/**
 * The model `auto` means for a chat or rerank role: the one on most nodes, then the largest, then the first by name, so that
 * the choice does not depend on the order in which machines came. Models that an operator gave one name count as one. The
 * built-in encoder never counts.
 */
export function chooseAutoModel(candidates: readonly Candidate[]): string | null {
  const nodesOf = new Map<string, { nodes: Set<string>; sizeBytes: number }>();
  for (const { node, model } of candidates) {
    for (const name of [model.model, ...model.aliases]) {
      const seen = nodesOf.get(name) ?? { nodes: new Set<string>(), sizeBytes: 0 };
      seen.nodes.add(node.id);
      seen.sizeBytes = Math.max(seen.sizeBytes, model.sizeBytes ?? 0);
      nodesOf.set(name, seen);
    }
  }
  const ranked = [...nodesOf].sort(
    ([nameA, a], [nameB, b]) =>
      b.nodes.size - a.nodes.size || b.sizeBytes - a.sizeBytes || (nameA < nameB ? -1 : nameA > nameB ? 1 : 0),
  );
  return ranked[0]?.[0] ?? null;
}

function serves(task: Task, { localModels }: RoleSettings, candidates: readonly Candidate[]): readonly Candidate[] {
  if (localModels !== 'auto') {
    return candidates.filter(({ model }) => localModels.some((name) => answersTo(model, name)));
  }
  // Which encoders belong to a space is the gate's finding, width included, so that a refusal can be seen and explained.
  if (task === 'embed') return candidates;
  const chosen = chooseAutoModel(candidates);
  return chosen === null ? [] : candidates.filter(({ model }) => answersTo(model, chosen));
}

/**
 * The trial encoder is there so that a first request works: it founds `embedding` only while nothing else could, stays with
 * a space of its width, and speaks no code.
 */
function withTrial(
  role: RoleId,
  settings: RoleSettings,
  spaceWidths: readonly number[],
  chosen: readonly Candidate[],
): readonly Candidate[] {
  if (settings.localModels !== 'auto') return chosen;
  const real = chosen.filter(({ model }) => !model.trial);
  if (role !== 'embedding') return real;
  if (spaceWidths.length === 0) return real.length === 0 ? chosen : real;
  return chosen.filter(({ model }) => !model.trial || (model.width !== null && spaceWidths.includes(model.width)));
}

function fingerprintOf(engine: EngineReport, model: ModelReport): Fingerprint {
  return {
    engine: engine.kind,
    version: engine.version,
    modelDigest: model.digest,
    upstream: null,
    pin: null,
    processMark: engine.processMark,
  };
}

function toEntry(role: RoleId, { node, engine, model }: Candidate, input: CatalogueInput): CatalogueEntry {
  const id = providerId(role, node.id, engine.engine as EngineId, model.model);
  return {
    provider: {
      id,
      role,
      kind: kindOf(engine, model),
      node: node.id,
      nodeName: node.name,
      nodeState: node.state,
      nodePulls: node.pulls,
      engine: engine.engine as EngineId,
      engineKind: engine.kind,
      slotPool: `${node.id}/${engine.engine}`,
      slots: Math.max(1, engine.slots),
      foreign: engine.foreign,
      model: model.model,
      aliases: model.aliases,
      present: true,
      loaded: model.loaded,
      reachable: engine.state === 'ready',
      contextTokens: model.contextTokens,
      maxBatch: Math.max(1, model.maxBatch),
      baseWeight: input.baseWeight(id),
      tokensPerSecond: model.tokensPerSecond,
      ttftMs: model.ttftMs,
      fingerprint: fingerprintOf(engine, model),
    },
    width: model.width,
    maxInputTokens: model.maxInputTokens,
    tokenCounting: model.tokenCounting,
    trial: model.trial,
  };
}

/** Which (node, engine, model) serves which role now. Pure: the same heartbeats and settings give the same providers. */
export function buildCatalogue(input: CatalogueInput): Catalogue {
  const all: Candidate[] = input.nodes.flatMap((node) =>
    node.engines
      .filter(({ kind }) => kind !== 'openrouter') // never a local candidate: its providers come with their pins, see `cloud`
      .flatMap((engine) => engine.models.map((model) => ({ node, engine, model }))),
  );
  const entries: CatalogueEntry[] = [];
  const models = {} as Record<RoleId, readonly string[]>;
  for (const role of ROLE_IDS) {
    const { task } = ROLES[role];
    const settings = input.roles[role];
    const able = all.filter(({ model }) => model.tasks.includes(task));
    const widths = input.spaceWidths(role);
    const chosen = settings.enabled ? serves(task, settings, able) : [];
    const kept = withTrial(role, settings, widths, chosen);
    for (const candidate of kept) entries.push(toEntry(role, candidate, input));
    const cloud = settings.enabled ? (input.cloud ?? []).filter(({ provider }) => provider.role === role) : [];
    entries.push(...cloud);
    const served = [
      ...kept.map(({ model }) => model),
      ...cloud.flatMap(({ provider }) => (provider.present ? [provider] : [])),
    ];
    models[role] = [...new Set(served.flatMap(({ model, aliases }) => [model, ...aliases]))];
  }
  return {
    entries,
    providers: entries.map(({ provider }) => provider),
    byId: new Map(entries.map((entry) => [entry.provider.id, entry])),
    models,
  };
}
