import type { Output } from '../../preload/contract.ts';
import { appInfo } from './documents.ts';
import { verdictViews } from './gate-views.ts';
import { healthItems } from './health.ts';
import type { House } from './house.ts';
import { nodeViews } from './node-views.ts';
import { providerViews } from './provider-views.ts';
import { roleViews } from './role-views.ts';

/** Members that say where or who, and nothing that a report needs. */
const LEFT_OUT = new Set(['address', 'nodeName', 'projectName', 'title', 'name', 'fingerprint', 'worstProbe']);
/** What no list of names can know: addresses in a sentence, digests. A last look, behind the names. */
const TELLING = /\b\d{1,3}(?:\.\d{1,3}){3}\b|\[[0-9a-f:]{2,}\]|https?:\/\/[^\s"]+|\blocalhost\b|\b[0-9a-f]{32,}\b/gi;

/**
 * A bundle for a bug report: states and figures. No keys, hashes, prompts, addresses; machines, engines and projects are numbered, and
 * of a model that is a file its last part is told.
 */
export function diagnostics(house: House): Output<'diagnostics.get'> {
  const nodes = nodeViews(house);
  const providers = providerViews(house);
  const budget = house.cloud.budget();
  const projects = [
    ...budget.shares.map(({ project }) => project),
    ...budget.spendByProject.map(({ id }) => id),
  ].filter((id) => id !== house.ownProject);
  const nameless = namelessBy(
    numbered(
      'node',
      nodes.map(({ id }) => id),
    ),
    numbered(
      'engine',
      providers.map(({ engineId }) => engineId).filter((id) => id !== 'openrouter'),
    ),
    numbered('project', projects),
    providers.flatMap(({ model }) => (/^(?:[~/\\.]|[a-z]:)/i.test(model) ? [[model, lastPart(model)] as const] : [])),
  );
  const { dataFolder: _, endpoint: __, ...app } = appInfo(house);
  const bundle = {
    format: 'switchyard-diagnostics/1',
    madeAt: new Date(house.clock.wallMs()).toISOString(),
    app,
    node: process.version,
    store: house.store.health(),
    nodes,
    providers,
    roles: roleViews(house),
    gate: verdictViews(house),
    health: healthItems(house).map(({ code, severity, sinceMs }) => ({ code, severity, sinceMs })),
    router: house.router().roles,
    budget,
    events: house.events
      .recent()
      .slice(-200)
      .map(({ atMs, severity, source, code }) => ({ atMs, severity, source, code })),
  };
  return {
    fileName: 'switchyard-diagnostics.json',
    mediaType: 'application/json',
    content: JSON.stringify(nameless(JSON.parse(JSON.stringify(bundle))), null, 2),
  };
}

type Renaming = readonly (readonly [from: string, to: string])[];

function numbered(kind: string, ids: readonly string[]): Renaming {
  return [...new Set(ids)].map((id, at) => [id, `${kind}-${at + 1}`]);
}

function lastPart(file: string): string {
  return file.split(/[/\\]/).at(-1) ?? '';
}

/** Goes through a document, members' names included; ids stand in other ids also percent-encoded. */
function namelessBy(...renamings: readonly Renaming[]): (value: unknown) => unknown {
  const pairs = renamings
    .flat()
    .flatMap(([from, to]) => [[encodeURIComponent(from), to] as const, [from, to] as const])
    // An id that is part of another one must not be replaced in it first.
    .sort(([a], [b]) => b.length - a.length);
  const text = (value: string) =>
    pairs.reduce((before, [from, to]) => before.replaceAll(from, to), value).replace(TELLING, '[left out]');
  const walk = (value: unknown): unknown => {
    if (typeof value === 'string') return text(value);
    if (Array.isArray(value)) return value.map(walk);
    if (typeof value !== 'object' || value === null) return value;
    const kept = Object.entries(value).filter(([name]) => !LEFT_OUT.has(name));
    return Object.fromEntries(kept.map(([name, member]) => [text(name), walk(member)]));
  };
  return walk;
}
