/** One measured figure beside its goal. */
export interface Figure {
  readonly name: string;
  readonly value: number;
  readonly unit: string;
  /** `[at most | at least, limit]`; null: for information. */
  readonly goal: readonly ['<=' | '>=', number] | null;
  readonly note?: string;
}

export interface RowResult {
  readonly row: string;
  readonly figures: readonly Figure[];
  /** Why it was not measured; null when it was. */
  readonly skipped: string | null;
}

export interface Row {
  readonly name: string;
  /** Takes minutes: left out of a quick run. */
  readonly long?: boolean;
  run(options: RunOptions): Promise<readonly Figure[]>;
}

export interface RunOptions {
  readonly quick: boolean;
}

export function met({ value, goal }: Figure): boolean | null {
  if (goal === null) return null;
  return goal[0] === '<=' ? value <= goal[1] : value >= goal[1];
}

export const median = (values: readonly number[]): number => {
  const sorted = [...values].sort((a, b) => a - b);
  const [low, high] = [sorted[(sorted.length - 1) >> 1], sorted[sorted.length >> 1]];
  return ((low ?? Number.NaN) + (high ?? Number.NaN)) / 2;
};

function amount(value: number): string {
  if (!Number.isFinite(value)) return '-';
  const digits = Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2;
  return value.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

/** A table for people: figure, value, goal, whether it was reached. */
export function table(results: readonly RowResult[]): string {
  const lines: string[][] = [['row', 'figure', 'measured', 'goal', '']];
  for (const { row, figures, skipped } of results) {
    if (skipped !== null) lines.push([row, `not measured: ${skipped}`, '', '', '']);
    for (const figure of figures) {
      const reached = met(figure);
      lines.push([
        row,
        figure.note ? `${figure.name} (${figure.note})` : figure.name,
        `${amount(figure.value)} ${figure.unit}`.trim(),
        figure.goal === null ? '' : `${figure.goal[0]} ${amount(figure.goal[1])}`,
        reached === null ? '' : reached ? 'yes' : 'NO',
      ]);
    }
  }
  const widths = lines[0]?.map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0))) ?? [];
  return lines
    .map((line) =>
      line
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}
