import { ROLE_IDS } from './domain/roles.ts';
import type { House } from './operator/house.ts';
import { providerViews } from './operator/provider-views.ts';
import type { GaugeRow, Metrics } from './telemetry/metrics.ts';

/** Gauges over the running rooms, read at each scrape. Names stand in docs/metrics.md. */
export function registerMetrics(metrics: Metrics, house: House): void {
  const one = (value: number | null): GaugeRow[] => [{ labels: {}, value }];
  metrics.gauge('switchyard_queue_depth', 'Waiting requests by role and class.', ['role', 'class'], () =>
    house
      .router()
      .roles.flatMap(({ role, waiting }) =>
        Object.entries(waiting).map(([name, value]) => ({ labels: { role, class: name }, value })),
      ),
  );
  metrics.gauge('switchyard_queue_oldest_seconds', 'Age of the oldest waiting request by role.', ['role'], () =>
    house
      .router()
      .roles.map(({ role, oldestMs }) => ({ labels: { role }, value: oldestMs === null ? 0 : oldestMs / 1000 })),
  );
  metrics.gauge('switchyard_node_up', '1 while a machine is ready or degraded.', ['node'], () =>
    house.fleet
      .nodes()
      .map(({ id, state }) => ({ labels: { node: id }, value: state === 'ready' || state === 'degraded' ? 1 : 0 })),
  );
  const gpu =
    (
      read: (of: {
        utilisationPercent: number | null;
        memoryUsedBytes: number | null;
        temperatureC: number | null;
        powerW: number | null;
      }) => number | null,
    ) =>
    () =>
      house.fleet
        .nodes()
        .flatMap(({ id, heartbeat }) =>
          (heartbeat?.gpus ?? []).map((each) => ({ labels: { node: id, gpu: String(each.index) }, value: read(each) })),
        );
  const gpuLabels = ['node', 'gpu'];
  metrics.gauge(
    'switchyard_gpu_utilisation_ratio',
    'GPU utilisation, 0 to 1; absent while unknown.',
    gpuLabels,
    gpu(({ utilisationPercent }) => (utilisationPercent === null ? null : utilisationPercent / 100)),
  );
  metrics.gauge(
    'switchyard_gpu_memory_used_bytes',
    'GPU memory in use; absent while unknown.',
    gpuLabels,
    gpu(({ memoryUsedBytes }) => memoryUsedBytes),
  );
  metrics.gauge(
    'switchyard_gpu_temperature_celsius',
    'GPU temperature; absent while unknown.',
    gpuLabels,
    gpu(({ temperatureC }) => temperatureC),
  );
  metrics.gauge(
    'switchyard_gpu_power_watts',
    'GPU power draw; absent while unknown.',
    gpuLabels,
    gpu(({ powerW }) => powerW),
  );
  const providerLabels = ['provider', 'role', 'kind'];
  const perProvider = (read: (view: ReturnType<typeof providerViews>[number]) => number | null) => () =>
    providerViews(house).map((view) => ({
      labels: { provider: view.id, role: view.role, kind: view.kind },
      value: read(view),
    }));
  metrics.gauge(
    'switchyard_provider_running',
    'Attempts running on a provider.',
    providerLabels,
    perProvider(({ running }) => running),
  );
  metrics.gauge(
    'switchyard_provider_slots',
    "Slots of a provider's engine.",
    providerLabels,
    perProvider(({ slots }) => slots),
  );
  metrics.gauge(
    'switchyard_provider_weight',
    'Weight at this moment.',
    providerLabels,
    perProvider(({ weight }) => weight?.total ?? null),
  );
  metrics.gauge(
    'switchyard_provider_serving',
    '1 while a provider may take work.',
    providerLabels,
    perProvider(({ state }) => (state === 'ready' || state === 'busy' ? 1 : 0)),
  );
  metrics.gauge(
    'switchyard_gate_min_cosine',
    'Smallest cosine of the last check by provider and space.',
    ['provider', 'space'],
    () =>
      house.gate
        .verdicts()
        .map(({ provider, space, minCosine }) => ({ labels: { provider, space }, value: minCosine })),
  );
  metrics.gauge('switchyard_gate_passed', '1 while a provider is admitted to a space.', ['provider', 'space'], () =>
    house.gate.verdicts().map(({ provider, space }) => ({
      labels: { provider, space },
      value: house.gate.admitted(provider, space) ? 1 : 0,
    })),
  );
  metrics.gauge('switchyard_space_founded', '1 while an embedding role has a current space.', ['role'], () =>
    ROLE_IDS.filter((role) => role.endsWith('embedding')).map((role) => ({
      labels: { role },
      value: house.gate.roleSpace(role).state === 'founded' ? 1 : 0,
    })),
  );
  const budget = () => house.cloud.budget();
  metrics.gauge('switchyard_budget_ceiling', 'Ceiling of the cloud budget, permits.', [], () => one(budget().ceiling));
  metrics.gauge('switchyard_budget_effective', 'Effective limit of the cloud budget, permits.', [], () =>
    one(budget().effective),
  );
  metrics.gauge('switchyard_budget_in_flight', 'Cloud permits in use.', [], () => one(budget().inFlight));
  metrics.counter(
    'switchyard_store_dropped_total',
    'Records given up because the database stayed away, by kind.',
    ['kind'],
    () => Object.entries(house.store.health().dropped).map(([kind, value]) => ({ labels: { kind }, value })),
  );
  metrics.gauge('switchyard_store_up', '1 while the database can be written.', [], () =>
    one(house.store.health().state === 'ok' ? 1 : 0),
  );
}
