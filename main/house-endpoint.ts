import type { Operations } from '../preload/contract.ts';
import { DEFAULT_PROJECT, restoreSpend } from './first-run.ts';
import type { MemoryKeyLimits } from './gateway/key-limits.ts';
import type { ConsoleFile, GatewayPorts } from './gateway/ports.ts';
import { Gateway } from './gateway/server.ts';
import { modelDirectory } from './model-directory.ts';
import { healthItems } from './operator/health.ts';
import type { House } from './operator/house.ts';
import { callOperation } from './operator/operator.ts';
import type { TopicHub } from './operator/topic-hub.ts';
import type { SqliteStore } from './store/client.ts';
import type { EventLog } from './telemetry/event-log.ts';
import type { Metrics } from './telemetry/metrics.ts';

export interface EndpointOptions {
  readonly house: House;
  readonly store: SqliteStore;
  readonly dispatcher: GatewayPorts['dispatcher'];
  readonly gate: Parameters<typeof modelDirectory>[0]['gate'];
  readonly events: EventLog;
  readonly operations: Operations;
  readonly hub: TopicHub;
  readonly metrics: Metrics;
  readonly limits: MemoryKeyLimits;
  readonly randomBytes: (count: number) => Uint8Array;
  readonly consoleFiles: ReadonlyMap<string, ConsoleFile>;
  /** In place of the stored setting; 0: any free port. */
  readonly port: number | null;
}

/** The HTTP endpoint as the operator's settings want it. Not started. */
export function makeEndpoint(options: EndpointOptions): Gateway {
  const { house, store, gate, events, operations, hub, metrics, limits, randomBytes, consoleFiles } = options;
  const { clock } = house;
  const { endpoint } = house.settings();
  void restoreSpend(limits, store, clock.wallMs());
  return new Gateway(
    {
      clock,
      randomBytes,
      dispatcher: options.dispatcher,
      keys: store.access,
      limits,
      catalogue: modelDirectory({ catalogue: house.catalogue, settings: (role) => store.roles.get(role).value, gate }),
      operations: {
        call: (name, input) => callOperation(operations, name, input),
        pushCloudKey: async (key, push) => {
          await house.cloud.pushKey(key, push);
          return house.cloud.status();
        },
      },
      topics: hub,
      idempotency: store.idempotency,
      health: {
        ready: () => store.health().state !== 'stopped',
        items: () =>
          healthItems(house).map(({ code, severity, title, sentence, needsPerson }) => ({
            code,
            severity,
            needsPerson,
            // Sentences of the store name no machine and no address; others may.
            sentence: code.startsWith('store_') ? sentence : title,
          })),
      },
      metrics: async () => ({ contentType: metrics.contentType, text: await metrics.exposition() }),
      events,
      exchanges: { finished: ({ key }) => key && store.access.used(key, clock.wallMs()) },
    },
    {
      version: house.app.version,
      port: options.port ?? endpoint.port,
      addresses: endpoint.bind === '127.0.0.1' ? ['127.0.0.1', '::1'] : [endpoint.bind],
      hostNames: endpoint.names,
      origins: endpoint.allowedOrigins,
      tls: null,
      trustProxy: endpoint.trustProxy,
      openProject: endpoint.openLoopback ? DEFAULT_PROJECT : null,
      adminTokenSha256: store.access.adminTokenSha256() ?? '',
      consoleFiles,
    },
  );
}
