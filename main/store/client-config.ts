import { SwitchyardError } from '../domain/errors.ts';
import type { StoreCore } from './client.ts';
import type { AccessStore, NodeStore, RoleStore, SettingsStore } from './ports.ts';
import { roleDocument, settingsDocument } from './snapshot.ts';

export function createSettingsStore({ clock, snapshot, change }: StoreCore): SettingsStore {
  return {
    get: (name) => snapshot.settings(name),
    put: (name, value, ifVersion) => {
      const document = settingsDocument(name);
      const body = JSON.stringify(value);
      return change(
        'settings',
        (version) => snapshot.putDocument(document, version, body),
        'putDocument',
        document,
        body,
        ifVersion ?? null,
        clock.wallMs(),
      );
    },
  };
}

export function createRoleStore({ clock, snapshot, change }: StoreCore): RoleStore {
  return {
    get: (role) => snapshot.role(role),
    put: (role, settings, ifVersion) => {
      const document = roleDocument(role);
      const body = JSON.stringify(settings);
      return change(
        'roles',
        (version) => snapshot.putDocument(document, version, body),
        'putDocument',
        document,
        body,
        ifVersion ?? null,
        clock.wallMs(),
      );
    },
  };
}

export function createNodeStore({ clock, snapshot, change, revoke }: StoreCore): NodeStore {
  return {
    list: () => snapshot.nodes(),
    get: (id) => snapshot.node(id),
    key: (id) => snapshot.nodeKey(id),
    add: (record, key) => {
      const copy = Uint8Array.from(key);
      return change('nodes', () => snapshot.addNode(record, copy), 'addNode', record, copy);
    },
    update: (id, update) => change('nodes', () => snapshot.updateNode(id, update), 'updateNode', id, update),
    remove: (id) => revoke('nodes', () => snapshot.removeNode(id), 'removeNode', id),
    putPending: (pending) => {
      const copy = { ...pending, key: Uint8Array.from(pending.key) };
      return change('nodes', () => snapshot.putPending(copy), 'putPending', copy, clock.wallMs());
    },
    pending: (address) => snapshot.pending(address),
    dropPending: (node) => change('nodes', () => snapshot.dropPending(node), 'dropPending', node),
    baseWeight: (provider) => snapshot.baseWeight(provider),
    setBaseWeight: (provider, node, weight) => {
      if (weight !== null && !(weight >= 0.1 && weight <= 10)) {
        return Promise.reject(new SwitchyardError('invalid_request', 'baseWeight must be a number from 0.1 to 10.'));
      }
      return change(
        'nodes',
        () => snapshot.setBaseWeight(provider, node, weight),
        'setBaseWeight',
        provider,
        node,
        weight,
      );
    },
  };
}

export function createAccessStore({ snapshot, writer, change, revoke }: StoreCore): AccessStore {
  return {
    find: (sha256) => snapshot.findApiKey(sha256),
    hasProject: (project) => snapshot.hasProject(project),
    projects: () => snapshot.projects(),
    apiKeys: () => snapshot.apiKeys(),
    addProject: (project) => change('access', () => snapshot.putProject(project), 'addProject', project),
    addApiKey: (key, sha256) =>
      change(
        'access',
        () => snapshot.putApiKey({ ...key, lastUsedAtMs: null, revokedAtMs: null }, sha256),
        'addApiKey',
        key,
        sha256,
      ),
    revokeApiKey: (id, atMs) => revoke('access', () => snapshot.revokeApiKey(id, atMs), 'revokeApiKey', id, atMs),
    used: (id, atMs) => {
      if (snapshot.noteUse(id, atMs)) writer.keyUsed(id, Math.floor(atMs));
    },
    adminTokenSha256: () => snapshot.adminTokenSha256,
    setAdminTokenSha256: (sha256) =>
      change(
        'access',
        () => {
          snapshot.adminTokenSha256 = sha256;
        },
        'putAdminToken',
        sha256,
      ),
  };
}
