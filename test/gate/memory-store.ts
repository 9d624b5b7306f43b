import { SwitchyardError } from '../../main/domain/errors.ts';
import type { RoleSettings } from '../../main/domain/roles.ts';
import type { LedgerRange } from '../../main/gate/ledger.ts';
import type {
  GateSnapshot,
  GateStore,
  RoleChange,
  StoredFirst,
  StoredSpace,
  VerdictPoint,
} from '../../main/gate/store-port.ts';
import type { Verdict } from '../../main/gate/verdict.ts';

/** A store in memory. What it returns went through JSON, as it would on disk; `fail` makes every write be refused. */
export class MemoryGateStore implements GateStore {
  readonly spaces = new Map<string, StoredSpace>();
  readonly verdicts = new Map<string, string>();
  readonly firsts = new Map<string, StoredFirst>();
  readonly points: (VerdictPoint & { readonly key: string })[] = [];
  ranges: LedgerRange[] = [];
  fail = false;
  /** Of the settings of every role; what was written with a space. */
  roleVersion = 1;
  readonly roleChanges: RoleSettings[] = [];

  async load(): Promise<GateSnapshot> {
    return {
      spaces: [...this.spaces.values()].map((space) => ({ ...space, facts: JSON.parse(JSON.stringify(space.facts)) })),
      verdicts: [...this.verdicts.values()].map((verdict) => JSON.parse(verdict) as Verdict),
      firsts: [...this.firsts.values()],
    };
  }

  async saveSpace(space: StoredSpace, role: RoleChange | null = null): Promise<void> {
    this.#refuse();
    if (role !== null && role.ifVersion !== this.roleVersion) throw new SwitchyardError('version_conflict');
    if (role !== null) this.roleChanges.push(role.settings);
    if (space.current) {
      for (const [id, other] of this.spaces) {
        if (other.facts.role === space.facts.role) this.spaces.set(id, { ...other, current: false });
      }
    }
    this.spaces.set(space.facts.id, space);
  }

  async saveVerdict(verdict: Verdict): Promise<void> {
    this.#refuse();
    const key = `${verdict.provider} ${verdict.space}`;
    this.verdicts.set(key, JSON.stringify(verdict));
    this.points.push({ key, atMs: verdict.checkedAtMs, minCosine: verdict.minCosine, kind: verdict.kind });
  }

  async saveFirst(first: StoredFirst): Promise<void> {
    this.#refuse();
    this.firsts.set(`${first.provider} ${first.space}`, first);
  }

  async appendRanges(ranges: readonly LedgerRange[]): Promise<void> {
    this.#refuse();
    this.ranges.push(...ranges);
  }

  async rangesOfProvider(provider: string, sinceMs: number, limit: number): Promise<readonly LedgerRange[]> {
    return this.ranges.filter((range) => range.provider === provider && range.atMs >= sinceMs).slice(0, limit);
  }

  async rangesOfRequest(request: string): Promise<readonly LedgerRange[]> {
    return this.ranges.filter((range) => range.request === request);
  }

  async prune(beforeMs: number): Promise<void> {
    this.#refuse();
    this.ranges = this.ranges.filter(({ atMs }) => atMs >= beforeMs);
  }

  async history(provider: string, space: string, sinceMs: number): Promise<readonly VerdictPoint[]> {
    return this.points.filter(({ key, atMs }) => key === `${provider} ${space}` && atMs >= sinceMs);
  }

  #refuse(): void {
    if (this.fail) throw new Error('the disk is full');
  }
}
