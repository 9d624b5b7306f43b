import { type KeyboardEvent, type ReactElement, type ReactNode, useRef, useState } from 'react';

export interface Column<Row> {
  readonly id: string;
  readonly head: ReactNode;
  readonly align?: 'right';
  readonly cell: (row: Row) => ReactNode;
}

interface DataTableProps<Row> {
  readonly label: string;
  readonly columns: readonly Column<Row>[];
  /** In the order they are shown; it does not change by itself. */
  readonly rows: readonly Row[];
  readonly rowKey: (row: Row) => string;
  readonly selected?: string | null;
  readonly onOpen?: (row: Row) => void;
  readonly className?: string;
}

/**
 * A dense table. With `onOpen`, rows are one stop of the Tab key; arrows or j/k move between them and Enter opens. Numbers that
 * change are tabular and stand at the right.
 */
export function DataTable<Row>(props: DataTableProps<Row>): ReactElement {
  const body = useRef<HTMLTableSectionElement>(null);
  const [active, setActive] = useState(0);
  const last = props.rows.length - 1;
  const current = Math.min(active, Math.max(0, last));

  const move = (to: number) => {
    const next = Math.max(0, Math.min(last, to));
    setActive(next);
    body.current?.rows[next]?.focus();
  };
  const onKeyDown = (event: KeyboardEvent, index: number, row: Row) => {
    if (event.target !== event.currentTarget || event.ctrlKey || event.metaKey || event.altKey) return;
    const step = rowStep(event.key, { index, last, move, open: () => props.onOpen?.(row) });
    if (!step) return;
    event.preventDefault();
    event.stopPropagation();
    step();
  };

  return (
    <section className="scroll-x" aria-label={props.label}>
      <table className={props.className}>
        <thead>
          <tr>
            {props.columns.map((column) => (
              <th key={column.id} scope="col" className={column.align}>
                {column.head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody ref={body}>
          {props.rows.map((row, index) => {
            const key = props.rowKey(row);
            const opens = props.onOpen
              ? {
                  className: key === props.selected ? 'openable selected' : 'openable',
                  tabIndex: index === current ? 0 : -1,
                  onClick: () => {
                    setActive(index);
                    props.onOpen?.(row);
                  },
                  onKeyDown: (event: KeyboardEvent) => onKeyDown(event, index, row),
                }
              : {};
            return (
              <tr key={key} data-row={key} {...opens}>
                {props.columns.map((column) => (
                  <td key={column.id} className={column.align}>
                    {column.cell(row)}
                  </td>
                ))}
              </tr>
            );
          })}
        </tbody>
      </table>
    </section>
  );
}

interface RowKeys {
  readonly index: number;
  readonly last: number;
  readonly move: (to: number) => void;
  readonly open: () => void;
}

/** What a key does on a row; null when it is not ours. */
function rowStep(key: string, { index, last, move, open }: RowKeys): (() => void) | null {
  switch (key) {
    case 'ArrowDown':
    case 'j':
      return () => move(index + 1);
    case 'ArrowUp':
    case 'k':
      return () => move(index - 1);
    case 'Home':
      return () => move(0);
    case 'End':
      return () => move(last);
    case 'Enter':
      return open;
    default:
      return null;
  }
}
