import { type KeyboardEvent, type MouseEvent, memo, type ReactElement, type ReactNode, useRef, useState } from 'react';

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
  const current = Math.min(active, Math.max(0, props.rows.length - 1));
  const latest = useRef(props);
  latest.current = props;
  // A row that stays as it is is not drawn anew when others come above it, so it must not be told its place.
  const [act] = useState<RowActions>(() => {
    const move = (to: number) => {
      const next = Math.max(0, Math.min(latest.current.rows.length - 1, to));
      setActive(next);
      body.current?.rows[next]?.focus();
    };
    const open = (index: number) => {
      const row = latest.current.rows[index];
      if (row === undefined) return;
      setActive(index);
      latest.current.onOpen?.(row);
    };
    return {
      open,
      onKeyDown: (event) => {
        if (event.target !== event.currentTarget || event.ctrlKey || event.metaKey || event.altKey) return;
        const index = event.currentTarget.sectionRowIndex;
        const last = latest.current.rows.length - 1;
        const step = rowStep(event.key, { index, last, move, open: () => open(index) });
        if (!step) return;
        event.preventDefault();
        event.stopPropagation();
        step();
      },
    };
  });

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
            return (
              <TableRow<Row>
                key={key}
                row={row}
                id={key}
                columns={props.columns}
                selected={key === props.selected}
                stop={index === current}
                act={props.onOpen ? act : null}
              />
            );
          })}
        </tbody>
      </table>
    </section>
  );
}

interface RowActions {
  readonly open: (index: number) => void;
  readonly onKeyDown: (event: KeyboardEvent<HTMLTableRowElement>) => void;
}

interface TableRowProps<Row> {
  readonly row: Row;
  readonly id: string;
  readonly columns: readonly Column<Row>[];
  readonly selected: boolean;
  /** The Tab key stops at it. */
  readonly stop: boolean;
  readonly act: RowActions | null;
}

const TableRow = memo(function TableRow<Row>(props: TableRowProps<Row>): ReactElement {
  const { row, act } = props;
  const opens = act
    ? {
        className: props.selected ? 'openable selected' : 'openable',
        tabIndex: props.stop ? 0 : -1,
        onClick: (event: MouseEvent<HTMLTableRowElement>) => act.open(event.currentTarget.sectionRowIndex),
        onKeyDown: act.onKeyDown,
      }
    : {};
  return (
    <tr data-row={props.id} {...opens}>
      {props.columns.map((column) => (
        <td key={column.id} className={column.align}>
          {column.cell(row)}
        </td>
      ))}
    </tr>
  );
}) as <Row>(props: TableRowProps<Row> & { readonly key?: string }) => ReactElement;

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
