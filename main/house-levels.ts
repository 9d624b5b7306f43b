import type { House } from './operator/house.ts';

/** Levels of this moment for the charts: series id -> value, null where unknown. */
export function* levels(house: House): Generator<readonly [string, number | null]> {
  for (const { role, waiting } of house.router().roles) {
    yield [`queue.${role}`, waiting.interactive + waiting.normal + waiting.batch];
  }
  const budget = house.cloud.budget();
  if (budget.state !== 'off' || budget.inFlight > 0) {
    yield ['permits.inFlight', budget.inFlight];
    yield ['permits.effective', budget.effective];
    yield ['permits.ceiling', budget.ceiling];
  }
  for (const { id, heartbeat, opener } of house.fleet.nodes()) {
    // A machine without a session has no figures: its lines get a gap, not their last value again.
    if (!heartbeat || !opener) continue;
    const engines = heartbeat.engines.filter(({ kind }) => kind !== 'openrouter');
    yield [`node.${id}.running`, engines.reduce((sum, { running }) => sum + running, 0)];
    const rates = engines.flatMap(({ models }) => models.flatMap(({ tokensPerSecond }) => tokensPerSecond ?? []));
    yield [`node.${id}.tokensPerSecond`, rates.length === 0 ? null : Math.max(...rates)];
  }
}
