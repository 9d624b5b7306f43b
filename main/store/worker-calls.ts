import { durably } from './database.ts';
import type { DatabaseHost, Rooms } from './database-host.ts';
import { faultOf } from './faults.ts';
import type { Batch, BatchItem, WorkerApi } from './worker-api.ts';

/** Binds the thread's calls to the database. @param writer see `WorkerSettings`. */
export function createWorkerApi(host: DatabaseHost, writer: string): WorkerApi {
  return {
    open: (nowMs) => host.open(nowMs),
    probe: (nowMs) => host.probe(nowMs),
    close: () => host.close(),
    copyLastGood: () => host.copyLastGood(),
    usedBytes: () => host.usedBytes(),
    backup: (nowMs) => host.backup(nowMs),
    retain: (nowMs) => host.retain(nowMs),
    rotate: (keyring) => host.rotate(keyring),

    writeBatch: (batch) => host.write((rooms) => writeBatch(rooms, writer, batch)),
    putDocument: (name, body, ifVersion, nowMs) =>
      host.write(({ documents }) => documents.put(name, body, ifVersion, nowMs)),
    putAdminToken: (sha256) => host.putAdminToken(sha256),
    addNode: (record, key) => host.write(({ nodes }) => nodes.add(record, key)),
    updateNode: (id, change) => host.write(({ nodes }) => nodes.update(id, change)),
    removeNode: (id) => host.write(({ nodes }) => nodes.remove(id)),
    putPending: (pending, nowMs) => host.write(({ nodes }) => nodes.putPending(pending, nowMs)),
    dropPending: (node) => host.write(({ nodes }) => nodes.dropPending(node)),
    setBaseWeight: (provider, node, weight) => host.write(({ nodes }) => nodes.setWeight(provider, node, weight)),
    addProject: (project) => host.write(({ access }) => access.addProject(project)),
    addApiKey: (key, sha256) => host.write(({ access }) => access.addApiKey(key, sha256)),
    revokeApiKey: (id, atMs) => host.write(({ access }) => access.revoke(id, atMs)),
    getSecret: (name) => host.read(({ secrets }) => secrets.get(name)),
    putSecret: (name, value) => host.write(({ secrets }) => secrets.put(name, value)),
    removeSecret: (name) => host.write(({ secrets }) => secrets.remove(name)),

    trace: (id) => host.read(({ records }) => records.trace(id)),
    traces: (filter, limit, after) => host.read(({ records }) => records.traces(filter, limit, after)),
    events: (filter, limit, after) => host.read(({ records }) => records.events(filter, limit, after)),
    usage: (filter) => host.read(({ figures }) => figures.usage(filter)),
    steps: (range, sinceMs) => host.read(({ figures }) => figures.steps(range, sinceMs)),

    loadGate: () => host.loadGate(),
    saveSpace: (space) => host.write(({ gate }) => gate.saveSpace(space)),
    saveSpaceWith: (space, name, body, ifVersion, nowMs) =>
      host.write(({ db, gate, documents }) =>
        durably(db, () => {
          gate.writeSpace(space);
          return documents.replace(name, body, ifVersion, nowMs);
        }),
      ),
    saveVerdict: (verdict) => host.write(({ gate }) => gate.saveVerdict(verdict)),
    saveFirst: (first) => host.write(({ gate }) => gate.saveFirst(first)),
    appendRanges: (ranges) => host.write(({ gate }) => gate.appendRanges(ranges)),
    rangesOfProvider: (provider, sinceMs, limit) =>
      host.read(({ gate }) => gate.rangesOfProvider(provider, sinceMs, limit)),
    rangesOfRequest: (request) => host.read(({ gate }) => gate.rangesOfRequest(request)),
    pruneGate: (beforeMs) => host.write(({ gate }) => gate.prune(beforeMs)),
    gateHistory: (provider, space, sinceMs) => host.read(({ gate }) => gate.history(provider, space, sinceMs)),

    claim: (scope, bodySha256, nowMs) => host.write(({ answers }) => answers.claim(scope, bodySha256, writer, nowMs)),
    completeClaim: (scope, answer) => host.write(({ answers }) => answers.complete(scope, answer)),
    forgetClaim: (scope) => host.write(({ answers }) => answers.forget(scope)),
  };
}

/**
 * Writes a batch and its number in one transaction; one that was written already (its answer was lost) is skipped. An item that
 * the database refuses for what it is would block all that come after, so it is left out.
 * @returns items left out.
 */
function writeBatch(rooms: Rooms, writer: string, { sequence, items }: Batch): number {
  const { db, sql } = rooms;
  return db
    .transaction(() => {
      const last = sql('SELECT sequence FROM batches WHERE writer = ?').pluck().get(writer);
      if (last !== undefined && Number(last) >= sequence) return 0;
      let refused = 0;
      for (const item of items) {
        try {
          writeItem(rooms, item);
        } catch (error) {
          const kind = faultOf(error);
          if (kind !== null && kind !== 'refused') throw error;
          refused += 1;
        }
      }
      sql('DELETE FROM batches WHERE writer <> ?').run(writer);
      sql('INSERT OR REPLACE INTO batches (writer, sequence) VALUES (?, ?)').run(writer, sequence);
      return refused;
    })
    .immediate();
}

function writeItem({ records, figures, access, documents }: Rooms, item: BatchItem): void {
  switch (item.kind) {
    case 'trace':
      records.writeTrace(item.row);
      break;
    case 'event':
      records.writeEvent(item.event);
      break;
    case 'series':
      figures.writeStep(item.range, item.atMs, item.values);
      break;
    case 'usage':
      figures.addUsage(item.sums);
      break;
    case 'used':
      access.used(item.id, item.atMs);
      break;
    case 'budget':
      documents.write('budget', item.body, 1, item.atMs);
      break;
  }
}
