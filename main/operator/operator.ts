import { type Input, isOperationName, OPERATIONS, type Operations } from '../../preload/contract.ts';
import { SwitchyardError } from '../domain/errors.ts';
import type { NodeId, ProjectId, ProviderId, RequestId, SpaceId } from '../domain/ids.ts';
import type { RoleSettings } from '../domain/roles.ts';
import { said, saidOf } from '../domain/said.ts';
import { listEvents, overview } from './activity.ts';
import { diagnostics } from './diagnostics.ts';
import { appInfo, exportSettings, settingsView } from './documents.ts';
import { foundSpace } from './founding.ts';
import { spaceView, verdictViews } from './gate-views.ts';
import { mergeSettings, needsRestart } from './general-settings.ts';
import { healthItems } from './health.ts';
import type { House } from './house.ts';
import { importSettings, previewImport } from './import-settings.ts';
import { createKey, keyView, revokeKey, usage } from './keys.ts';
import { nodeDetail, nodeView, nodeViews } from './node-views.ts';
import { oneByOne } from './one-by-one.ts';
import { providerViews } from './provider-views.ts';
import { findTrace, listRequests } from './request-history.ts';
import { requestView, traceSteps } from './request-views.ts';
import { leavingBy } from './role-leaving.ts';
import { namingNotes } from './role-naming.ts';
import { founderView, patchRole, roleEffect, roleModels, roleViews } from './role-views.ts';
import { testRequest } from './test-request.ts';

const DONE = { done: true } as const;

/** One function per operation of the contract. Inputs have passed its schemas. */
export function operatorOf(house: House): Operations {
  const node = (id: string) => {
    const found = house.fleet.get(id as NodeId);
    if (!found) throw new SwitchyardError('node_not_found');
    return found;
  };
  const viewOf = (id: string) => nodeView(node(id), providerViews(house), house);
  const role = (id: string) => {
    const view = roleViews(house).find((each) => each.id === id);
    if (!view) throw new SwitchyardError('role_not_found');
    return view;
  };
  const spaceOf = (id: string) => {
    const space = house.gate.space(id as SpaceId);
    if (!space) throw new SwitchyardError('space_not_found');
    return space;
  };
  const founders = (id: Input<'spaces.candidates'>['role'], wanted?: RoleSettings) =>
    house.gate.candidates(id, wanted).map((candidate) => founderView(candidate, id, house));
  const changing = oneByOne();
  const updates = () => {
    if (house.updates) return house.updates;
    throw new SwitchyardError('not_ready', said('not_desktop'));
  };

  return {
    'nodes.list': async () => ({ nodes: [...nodeViews(house)] }),
    'nodes.detail': async ({ id }) => nodeDetail(node(id), house),
    'nodes.add': async ({ address, joinCode }) => viewOf((await house.fleet.add(address, joinCode)).id),
    'nodes.drain': async ({ id }) => viewOf((await house.fleet.setWish(id as NodeId, 'drain')).id),
    'nodes.resume': async ({ id }) => viewOf((await house.fleet.setWish(id as NodeId, 'serve')).id),
    'nodes.maintenance': async ({ id }) => viewOf((await house.fleet.setWish(id as NodeId, 'maintenance')).id),
    'nodes.remove': async ({ id }) => {
      await house.fleet.remove(id as NodeId);
      return DONE;
    },
    'discovery.list': async () => {
      const paired = new Set(house.fleet.nodes().map((each) => each.target?.fingerprint));
      return {
        searching: house.discovery.searching,
        problem: house.discovery.problem,
        found: house.discovery.found().map(({ fingerprint, ...agent }) => ({
          ...agent,
          fingerprintShort: fingerprint.slice(0, 16),
          paired: paired.has(fingerprint),
        })),
      };
    },
    'enrolments.create': ({ address, ...wish }) => house.enrolments.create({ ...wish, address: address ?? null }),
    'enrolments.list': async () => ({ enrolments: house.enrolments.list() }),
    'enrolments.cancel': async ({ id }) => {
      await house.enrolments.cancel(id);
      return DONE;
    },
    'providers.list': async ({ role: only, nodeId }) => ({
      providers: providerViews(house).filter(
        (provider) => (!only || provider.role === only) && (!nodeId || provider.nodeId === nodeId),
      ),
    }),
    'providers.weigh': async ({ id, baseWeight }) => {
      const entry = house.catalogue().byId.get(id as ProviderId);
      if (!entry) throw new SwitchyardError('provider_not_found');
      await house.store.nodes.setBaseWeight(id as ProviderId, entry.provider.node, baseWeight);
      house.refresh();
      const view = providerViews(house).find((provider) => provider.id === id);
      if (!view) throw new SwitchyardError('provider_not_found');
      return view;
    },

    'roles.list': async () => ({ roles: [...roleViews(house)] }),
    'roles.get': async ({ id }) => role(id),
    'roles.update': ({ id, patch, confirm }) =>
      changing(async () => {
        const { effect, error } = roleEffect(id, patch, house);
        if (error && !(effect === 'new-space' && confirm === true && error.code === 'confirmation_required'))
          throw error;
        await house.setRole(id, patchRole(house.roles()[id], patch));
        return role(id);
      }),
    'roles.preview': async ({ id, patch }) => {
      const { effect, error } = roleEffect(id, patch, house);
      return {
        effect: error && effect === 'plain' ? 'refused' : effect,
        reasons: error ? [saidOf(error)] : [],
        founders: effect === 'new-space' ? founders(id, patchRole(house.roles()[id], patch)) : [],
        notes: [...namingNotes(id, patch, house)],
        leaves: leavingBy(id, patch, house),
      };
    },
    'roles.models': async ({ id, model }) => await roleModels(id, model, house),

    'gate.list': async ({ role: only }) => ({
      verdicts: verdictViews(house).filter((view) => !only || view.role === only),
    }),
    'gate.verify': async ({ providerId }) => ({
      started: [...house.gate.verify((providerId ?? null) as ProviderId | null)],
    }),
    'gate.history': async ({ providerId, spaceId }) => {
      const entry = house.catalogue().byId.get(providerId as ProviderId);
      const current = entry ? house.gate.roleSpace(entry.provider.role) : null;
      const id = (spaceId ?? (current?.state === 'founded' ? current.space.id : undefined)) as SpaceId | undefined;
      if (!id) throw new SwitchyardError(entry ? 'space_not_found' : 'provider_not_found');
      const sinceMs = house.clock.wallMs() - 90 * 86_400_000;
      const points = await house.gate.history(providerId as ProviderId, id, sinceMs);
      return {
        threshold: spaceOf(id).threshold,
        points: points.map(({ atMs, minCosine, kind }) => ({ atMs: Math.round(atMs), minCosine, verdict: kind })),
      };
    },
    'gate.affected': async ({ providerId }) => {
      const { sinceMs, ranges } = await house.gate.affected(providerId as ProviderId);
      return {
        since: sinceMs === null ? null : Math.round(sinceMs),
        ranges: ranges.map(({ request, from, to, atMs, space }) => ({
          requestId: request,
          from,
          to,
          atMs: Math.round(atMs),
          spaceId: space,
        })),
      };
    },
    'gate.probes': async () => {
      const [space] = house.gate.spaces();
      return {
        version: String(space?.probes.version ?? 1),
        probes: space ? space.probes.texts.length + space.probes.equalLength.length : 0,
      };
    },
    'spaces.list': async ({ role: only }) => ({
      spaces: house.gate
        .spaces()
        .filter((space) => !only || space.role === only)
        .map((space) => spaceView(space, house)),
    }),
    'spaces.candidates': async ({ role: id }) => ({ founders: founders(id) }),
    'spaces.found': async (input) => {
      const space = await foundSpace(input, house);
      return spaceView(space, house);
    },
    'spaces.retire': async ({ id, confirm }) => {
      const space = await house.gate.retire(id as SpaceId, confirm ?? false);
      house.refresh();
      return spaceView(space, house);
    },
    'spaces.export': async ({ id }) => ({
      fileName: `${id}.space.json`,
      mediaType: 'application/json',
      content: house.gate.exportSpace(id as SpaceId),
    }),
    'spaces.import': async ({ content, confirm }) => {
      const space = await house.gate.importSpace(content, confirm ?? false);
      house.refresh();
      return spaceView(space, house);
    },

    'cloud.status': async () => house.cloud.status(),
    'cloud.pause': async () => {
      await house.cloud.pause();
      return house.cloud.status();
    },
    'cloud.resume': async () => {
      await house.cloud.resume();
      return house.cloud.status();
    },
    'cloud.forget': async ({ nodeIds }) => {
      await house.cloud.forget(nodeIds ?? null);
      return house.cloud.status();
    },
    'cloud.test': async () => house.cloud.test(),
    'budget.get': async () => house.cloud.budget(),
    'budget.set': async ({ override }) => {
      await house.cloud.setOverride(override);
      return house.cloud.budget();
    },
    'budget.capProject': async ({ id, ...caps }) => {
      if (!house.store.access.projects().some((project) => project.id === id))
        throw new SwitchyardError('invalid_request', 'There is no project of that id.');
      await house.cloud.capProject(id as ProjectId, caps);
      return house.cloud.budget();
    },
    'budget.dismiss': async () => {
      house.cloud.dismissSuggestion();
      return DONE;
    },

    'requests.list': async (filter) => listRequests(filter, house),
    'requests.get': async ({ id }) => {
      const trace = await findTrace(id as RequestId, house);
      return {
        request: requestView(trace.summary, house),
        steps: [...traceSteps(trace, house)],
        replay: trace.choices.length > 0 ? JSON.stringify(trace.choices) : null,
      };
    },

    'overview.get': async ({ range, role: chosen }) => overview(range, chosen ?? 'code-assistant', house),
    'events.list': (filter) => listEvents(filter, house),
    'health.list': async () => ({ items: [...healthItems(house)] }),

    'keys.list': async () => ({ keys: house.store.access.apiKeys().map((key) => keyView(key, house)) }),
    'keys.create': async (input) => createKey(input, house),
    'keys.revoke': async ({ id }) => {
      await revokeKey(id, house);
      return DONE;
    },
    'usage.get': async (input) => usage(input, house),

    'settings.get': async () => settingsView(house),
    'settings.set': (patch) =>
      changing(async () => {
        const before = house.settings();
        const after = mergeSettings(before, patch);
        if (after.endpoint.bind !== before.endpoint.bind) await house.app.checkAddress(after.endpoint.bind);
        await house.setSettings(after);
        return { settings: settingsView(house), restartNeeded: needsRestart(before, after) };
      }),
    'settings.export': async () => exportSettings(house),
    'settings.preview': ({ content }) => previewImport(content, house),
    'settings.import': ({ content, confirm }) => changing(() => importSettings(content, confirm ?? false, house)),
    'encryption.rotate': async () => {
      const { rows, keyVersion } = await house.store.vault.rotateEncryption();
      return { rows, version: keyVersion };
    },
    // Its name alone: where the data folder is, the app's facts say.
    'store.backup': async () => ({ file: (await house.store.maintenance.backup()).replace(/^.*[\\/]/, '') }),
    'updates.check': async () => {
      await updates().check();
      return updates().state;
    },
    'updates.install': async () => ({ restarting: await updates().restart() }),
    'diagnostics.get': async () => diagnostics(house),
    'app.info': async () => appInfo(house),
    'test.request': async ({ role: id }) => testRequest(id, house),
  };
}

/**
 * The one door for both transports: checks the name and the input, runs the operation, strips the output to its schema.
 *
 * @throws SwitchyardError not_found for an unknown name, invalid_request naming the members that do not fit.
 */
export async function callOperation(operations: Operations, name: string, input: unknown): Promise<unknown> {
  if (!isOperationName(name)) throw new SwitchyardError('not_found', 'There is no such operation.');
  const parsed = OPERATIONS[name].input.safeParse(input ?? {});
  if (!parsed.success) {
    // Paths only: zod's own messages quote what was sent.
    const paths = [...new Set(parsed.error.issues.map(({ path }) => path.join('.') || 'the body'))].slice(0, 5);
    throw new SwitchyardError('invalid_request', `These members are missing or do not fit: ${paths.join(', ')}.`);
  }
  const run = operations[name] as (value: unknown) => Promise<unknown>;
  return OPERATIONS[name].output.parse(await run(parsed.data));
}
