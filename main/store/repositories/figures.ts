import type { ProjectId } from '../../domain/ids.ts';
import type { ProviderKind } from '../../domain/policy.ts';
import type { RoleId } from '../../domain/roles.ts';
import type { UsageRow } from '../ports.ts';
import type { Statements } from './statements.ts';

/** Sums to add to one row of `usage`; empty text stands for null. */
export interface UsageSums {
  readonly day: string;
  readonly key: string;
  readonly project: string;
  readonly role: string;
  readonly model: string;
  readonly route: string;
  requests: number;
  failures: number;
  promptTokens: number;
  completionTokens: number;
  inexact: number;
  costNanoUsd: number;
}

export interface UsageFilter {
  readonly fromDay: string;
  readonly toDay: string;
  readonly project: string | null;
  readonly key: string | null;
}

/** Usage by day, and steps of the time series. Writes happen inside a batch's transaction. */
export class Figures {
  readonly #sql: Statements;

  constructor(sql: Statements) {
    this.#sql = sql;
  }

  addUsage(sums: UsageSums): void {
    this.#sql(
      `INSERT INTO usage (day, key, project, role, model, route, requests, failures, prompt_tokens, completion_tokens, inexact,
         cost_nano_usd)
       VALUES (@day, @key, @project, @role, @model, @route, @requests, @failures, @promptTokens, @completionTokens, @inexact,
         @costNanoUsd)
       ON CONFLICT DO UPDATE SET requests = requests + excluded.requests, failures = failures + excluded.failures,
         prompt_tokens = prompt_tokens + excluded.prompt_tokens,
         completion_tokens = completion_tokens + excluded.completion_tokens,
         inexact = inexact + excluded.inexact, cost_nano_usd = cost_nano_usd + excluded.cost_nano_usd`,
    ).run(sums);
  }

  usage({ fromDay, toDay, project, key }: UsageFilter): UsageRow[] {
    const rows = this.#sql(
      `SELECT * FROM usage WHERE day BETWEEN ? AND ? AND (? IS NULL OR project = ?) AND (? IS NULL OR key = ?)
       ORDER BY day, key, project, role, model, route`,
    ).all(fromDay, toDay, project, project, key, key) as {
      day: string;
      key: string;
      project: ProjectId;
      role: RoleId;
      model: string;
      route: ProviderKind | '';
      requests: number;
      failures: number;
      prompt_tokens: number;
      completion_tokens: number;
      inexact: number;
      cost_nano_usd: number;
    }[];
    return rows.map((row) => ({
      day: row.day,
      key: row.key || null,
      project: row.project,
      role: row.role,
      model: row.model || null,
      route: row.route || null,
      requests: row.requests,
      failures: row.failures,
      promptTokens: row.prompt_tokens,
      completionTokens: row.completion_tokens,
      inexact: row.inexact,
      costUsd: row.cost_nano_usd / 1e9,
    }));
  }

  /** @param values JSON object: series id -> value. A step that is there is replaced. */
  writeStep(range: string, atMs: number, values: string): void {
    this.#sql('INSERT OR REPLACE INTO series_steps (range, at_ms, "values") VALUES (?, ?, ?)').run(range, atMs, values);
  }

  steps(range: string, sinceMs: number): { readonly atMs: number; readonly values: string }[] {
    return this.#sql(
      'SELECT at_ms AS atMs, "values" FROM series_steps WHERE range = ? AND at_ms >= ? ORDER BY at_ms',
    ).all(range, sinceMs) as { atMs: number; values: string }[];
  }
}
