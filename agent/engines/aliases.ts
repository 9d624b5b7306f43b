import type { ModelReport } from '../wire/control.ts';

/** Further names that the operator gave to models, by the engine's own name of the model. Never guessed. */
export type Aliases = ReadonlyMap<string, readonly string[]>;

/** The wire carries so many for one model. */
const MOST = 32;

/**
 * Adds the operator's names. A name that another model of the same engine really bears stays that model's.
 */
export function withAliases(models: readonly ModelReport[], aliases: Aliases): ModelReport[] {
  const own = new Set(models.map(({ model }) => model));
  return models.map((report) => {
    const given = (aliases.get(report.model) ?? []).filter((name) => !own.has(name));
    if (given.length === 0) return report;
    return { ...report, aliases: [...new Set([...report.aliases, ...given])].slice(0, MOST) };
  });
}
