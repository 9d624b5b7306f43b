import type { EventRecord, Severity } from '../../domain/events.ts';
import type { RequestId } from '../../domain/ids.ts';
import type { RequestSummary } from '../../domain/observation.ts';
import type { EventFilter, TraceFilter } from '../ports.ts';
import { Conditions, type Cursor, cursorText, type Statements } from './statements.ts';

/** A trace as it crosses to the worker: both parts as JSON. */
export interface TraceRow {
  /** Of a `RequestSummary`, whose members are also columns. */
  readonly summary: string;
  readonly detail: string;
}

export interface RowPage {
  /** JSON, newest first. */
  readonly items: readonly string[];
  readonly next: string | null;
}

const RANK: Readonly<Record<Severity, number>> = { info: 0, warn: 1, error: 2 };

/** Traces and events: written once, listed newest first, forgotten by age. Writes happen inside a batch's transaction. */
export class Records {
  readonly #sql: Statements;

  constructor(sql: Statements) {
    this.#sql = sql;
  }

  writeTrace({ summary: json, detail }: TraceRow): void {
    const summary = JSON.parse(json) as RequestSummary;
    this.#sql(
      `INSERT OR REPLACE INTO traces
       (id, at_ms, project, role, route, provider, node, model, outcome, code, total_ms, summary, detail)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    ).run(
      summary.id,
      Math.floor(summary.arrivedAtMs),
      summary.project,
      summary.role,
      summary.route,
      summary.provider,
      summary.node,
      summary.model,
      summary.outcome,
      summary.code,
      summary.totalMs,
      json,
      detail,
    );
  }

  /** @returns summary and detail as JSON. */
  trace(id: RequestId): { readonly summary: string; readonly detail: string } | null {
    const row = this.#sql('SELECT summary, detail FROM traces WHERE id = ?').get(id);
    return (row as { summary: string; detail: string } | undefined) ?? null;
  }

  traces(filter: TraceFilter, limit: number, after: Cursor | null): RowPage {
    const conditions = new Conditions();
    conditions.add('project = ?', filter.project);
    conditions.add('role = ?', filter.role);
    conditions.add('route = ?', filter.route);
    conditions.add('provider = ?', filter.provider);
    conditions.add('node = ?', filter.node);
    conditions.add('model = ?', filter.model);
    conditions.add('outcome = ?', filter.outcome);
    conditions.add('code = ?', filter.code);
    conditions.add('at_ms >= ?', filter.sinceMs);
    conditions.add('at_ms < ?', filter.untilMs);
    conditions.add('total_ms >= ?', filter.minTotalMs);
    return this.#page('traces', 'summary', conditions, limit, after);
  }

  writeEvent(event: EventRecord): void {
    this.#sql(
      `INSERT OR REPLACE INTO events (id, at_ms, rank, source, code, node, role, request, sentence, body)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    ).run(
      event.id,
      Math.floor(event.atMs),
      RANK[event.severity],
      event.source,
      event.code,
      event.node ?? null,
      event.role ?? null,
      event.request ?? null,
      event.sentence,
      JSON.stringify(event),
    );
  }

  events(filter: EventFilter, limit: number, after: Cursor | null): RowPage {
    const conditions = new Conditions();
    conditions.add('rank >= ?', filter.severity && RANK[filter.severity]);
    conditions.add('source = ?', filter.source);
    conditions.add('code = ?', filter.code);
    conditions.add('node = ?', filter.node);
    conditions.add('role = ?', filter.role);
    conditions.add('request = ?', filter.request);
    conditions.add('at_ms >= ?', filter.sinceMs);
    conditions.add('at_ms < ?', filter.untilMs);
    conditions.add('instr(lower(sentence), lower(?)) > 0', filter.text);
    return this.#page('events', 'body', conditions, limit, after);
  }

  #page(table: string, column: string, conditions: Conditions, limit: number, after: Cursor | null): RowPage {
    if (after) conditions.add('(at_ms, id) < (?, ?)', after.atMs, after.id);
    const rows = this.#sql(
      `SELECT at_ms AS atMs, id, ${column} AS item FROM ${table} ${conditions.where} ORDER BY at_ms DESC, id DESC LIMIT ?`,
    ).all(...conditions.values, limit + 1) as (Cursor & { item: string })[];
    const shown = rows.slice(0, limit);
    const last = shown.at(-1);
    return { items: shown.map(({ item }) => item), next: rows.length > limit && last ? cursorText(last) : null };
  }
}
