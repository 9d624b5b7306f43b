import type { KeyPush, Output } from '../../preload/contract.ts';
import type { ProjectId } from '../domain/ids.ts';
import type { RoleId, SpendCaps } from '../domain/roles.ts';

/** What the operations ask of the cloud rooms. */
export interface CloudDesk {
  status(): Output<'cloud.status'>;
  pause(): Promise<void>;
  resume(): Promise<void>;
  forget(nodeIds: readonly string[] | null): Promise<void>;
  test(): Promise<Output<'cloud.test'>>;
  budget(): Output<'budget.get'>;
  setOverride(override: number | null): Promise<void>;
  /** What is absent stays. @throws SwitchyardError `store_unavailable`, and then nothing has changed */
  capProject(id: ProjectId, caps: { readonly [cap in keyof SpendCaps]?: number | null | undefined }): Promise<void>;
  dismissSuggestion(): void;
  /** Takes ownership of the bytes and zeroes them. */
  pushKey(key: Buffer, options: KeyPush): Promise<void>;
  /** When the whole account rested since then, oldest first; epoch ms. */
  cooldowns(sinceMs: number): readonly { readonly fromMs: number; readonly toMs: number }[];
  spentUsd(role: RoleId): { readonly dayUsd: number | null; readonly monthUsd: number | null };
  /** Whose spend cap keeps paid calls from starting now, and until when. */
  cappedOut(): readonly {
    readonly scope: 'role' | 'project';
    readonly id: string;
    readonly name: string;
    readonly reason: 'spend_cap' | 'price_unknown';
    readonly period: 'day' | 'month';
    readonly capUsd: number;
    readonly untilMs: number;
  }[];
  /** Is the role's cloud model offered; null when the catalogue could not be asked. */
  offered(model: string): { readonly offered: boolean | null; readonly nearest: readonly string[] };
  /**
   * Models of the live catalogue that could do the role's work; of `chosen` also where it is served. Null: it could not be read, or
   * not soon.
   */
  modelsFor(role: RoleId, chosen: string | null): Promise<Output<'roles.models'>['cloud']>;
}
