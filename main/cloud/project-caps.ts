import { z } from 'zod';
import type { ProjectId } from '../domain/ids.ts';
import type { SpendCaps } from '../domain/roles.ts';
import type { Json, SettingsStore } from '../store/ports.ts';

const NAME = 'project-caps';
const cap = z.number().min(0).nullable();
/** One that cannot be understood stands for no money at all, until a person sets it again: a cap must not go by a damaged row. */
const NOTHING: SpendCaps = { dayUsd: 0, monthUsd: 0 };
const Stored = z.record(z.string(), z.object({ dayUsd: cap, monthUsd: cap }).catch(NOTHING));

type Changes = { readonly [name in keyof SpendCaps]?: number | null | undefined };

/** What each project may spend in the cloud, as the operator has set it. */
export class ProjectCaps {
  readonly #store: SettingsStore;
  readonly #apply: (project: ProjectId, caps: SpendCaps) => void;
  #latest: Promise<unknown> = Promise.resolve();

  constructor(store: SettingsStore, apply: (project: ProjectId, caps: SpendCaps) => void) {
    this.#store = store;
    this.#apply = apply;
  }

  /** Hands over every cap that is stored. */
  start(): void {
    for (const [project, caps] of this.#stored()) this.#apply(project as ProjectId, caps);
  }

  /** What is absent stays. @throws as the store; then nothing has changed */
  change(project: ProjectId, changes: Changes): Promise<void> {
    // One at a time: every cap is in one row, and what is read here changes only once that row is written.
    const changed = this.#latest.then(() => this.#change(project, changes));
    this.#latest = changed.catch(() => {}); // The caller hears of it; the next change stands for itself.
    return changed;
  }

  async #change(project: ProjectId, changes: Changes): Promise<void> {
    const all = this.#stored();
    const before = all.get(project) ?? { dayUsd: null, monthUsd: null };
    const { dayUsd = before.dayUsd, monthUsd = before.monthUsd } = changes;
    all.set(project, { dayUsd, monthUsd });
    await this.#store.put(NAME, Object.fromEntries(all) as unknown as Json);
    this.#apply(project, { dayUsd, monthUsd });
  }

  #stored(): Map<string, SpendCaps> {
    return new Map(Object.entries(Stored.safeParse(this.#store.get(NAME)?.value).data ?? {}));
  }
}
