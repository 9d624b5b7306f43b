import { z } from 'zod';
import type { EventSink } from '../domain/events.ts';
import type { ProjectId } from '../domain/ids.ts';
import type { SpendCaps } from '../domain/roles.ts';
import { said } from '../domain/said.ts';
import type { Json, SettingsStore } from '../store/ports.ts';

const NAME = 'project-caps';
const cap = z.number().min(0).nullable();
/** One that cannot be understood stands for no money at all, until a person sets it again: a cap must not go by a damaged row. */
const NOTHING: SpendCaps = { dayUsd: 0, monthUsd: 0 };
const Stored = z.record(z.string(), z.object({ dayUsd: cap, monthUsd: cap }).catch(NOTHING));

type Changes = { readonly [name in keyof SpendCaps]?: number | null | undefined };

export interface ProjectCapsOptions {
  readonly store: SettingsStore;
  readonly events: EventSink;
  /** Every project that there is. */
  readonly projects: () => readonly ProjectId[];
  readonly apply: (project: ProjectId, caps: SpendCaps) => void;
}

/** What each project may spend in the cloud, as the operator has set it. */
export class ProjectCaps {
  readonly #options: ProjectCapsOptions;
  #latest: Promise<unknown> = Promise.resolve();

  constructor(options: ProjectCapsOptions) {
    this.#options = options;
  }

  /** Hands over every cap that is stored. */
  start(): void {
    const { apply, events } = this.#options;
    for (const [project, caps] of this.#stored()) apply(project as ProjectId, caps);
    if (this.#read() !== null) return;
    const says = said('project_caps_unread');
    events.record({ severity: 'error', source: 'cloud', code: says.code, says, needsPerson: true });
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
    await this.#options.store.put(NAME, Object.fromEntries(all) as unknown as Json);
    this.#options.apply(project, { dayUsd, monthUsd });
  }

  #stored(): Map<string, SpendCaps> {
    // Which projects had one is not known either: each waits for a person.
    const stored = this.#read() ?? Object.fromEntries(this.#options.projects().map((project) => [project, NOTHING]));
    return new Map(Object.entries(stored));
  }

  /** Null: there are caps, and nobody can tell which. */
  #read(): Readonly<Record<string, SpendCaps>> | null {
    const row = this.#options.store.get(NAME);
    return row === null ? {} : (Stored.safeParse(row.value).data ?? null);
  }
}
