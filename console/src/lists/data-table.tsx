import { useVirtualizer } from "@tanstack/react-virtual";
import { type CSSProperties, type ReactNode, useEffect, useRef, useState } from "react";
import { useKeys } from "../shell/keys.ts";
import classes from "./data-table.module.css";

export interface Column<T> {
  readonly title: string;
  /** As in `grid-template-columns`. */
  readonly width: string;
  readonly cell: (row: T) => ReactNode;
  /** The field of `order_by`; absent: the server does not sort by it. */
  readonly sort?: string;
  readonly isNumber?: boolean;
  /** Left out where the page is narrower. */
  readonly from?: "tablet" | "desktop";
}

interface DataTableProps<T> {
  /** For those who do not see it. */
  readonly label: string;
  readonly columns: readonly Column<T>[];
  readonly rows: readonly T[];
  readonly idOf: (row: T) => string;
  readonly total?: number | undefined;
  readonly changed?: ReadonlySet<string>;
  readonly orderBy?: string;
  readonly onOrder?: (orderBy: string) => void;
  readonly onOpen?: (row: T) => void;
  readonly onEnd?: () => void;
  readonly selected?: ReadonlySet<string>;
  readonly onSelect?: (selected: ReadonlySet<string>) => void;
  readonly empty: ReactNode;
}

const ROW_HEIGHT = 32;

/** Rows of one height, of which only those on the screen are there: a hundred thousand scroll as ten do. */
export function DataTable<T>(props: DataTableProps<T>) {
  const { label, columns, rows, idOf, total, onEnd, onOpen } = props;
  const scroller = useRef<HTMLDivElement>(null);
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW_HEIGHT,
    overscan: 12,
  });
  const visible = virtual.getVirtualItems();
  const last = visible.at(-1)?.index ?? 0;
  useEffect(() => {
    if (rows.length > 0 && last > rows.length - 40) onEnd?.();
  }, [last, rows.length, onEnd]);
  const [current, setCurrent] = useRowKeys(rows.length, {
    open: (index) => rows[index] && onOpen?.(rows[index]),
    show: (index) => virtual.scrollToIndex(index),
    scroller,
  });
  const template = useTemplate(columns, props.onSelect !== undefined);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard
    <div ref={scroller} className={classes.scroller} tabIndex={0} role="region" aria-label={label}>
      <div
        role="table"
        aria-label={label}
        aria-rowcount={total ?? rows.length}
        style={template}
        className={classes.table}
      >
        <HeadRow {...props} />
        {rows.length === 0 && <div className={classes.empty}>{props.empty}</div>}
        <div role="rowgroup" style={{ height: virtual.getTotalSize(), position: "relative" }}>
          {visible.map(({ index, start }) => {
            const row = rows[index];
            if (row === undefined) return null;
            const id = idOf(row);
            return (
              // biome-ignore lint/a11y/useKeyWithClickEvents: Enter opens the current row
              <div
                key={id}
                role="row"
                aria-rowindex={index + 2}
                className={classes.row}
                data-current={index === current || undefined}
                data-changed={props.changed?.has(id) || undefined}
                style={{ transform: `translateY(${start}px)` }}
                onClick={(event) => {
                  setCurrent(index);
                  if (!isControl(event.target)) onOpen?.(row);
                }}
              >
                {props.onSelect && <SelectCell {...props} id={id} onSelect={props.onSelect} />}
                <Cells columns={columns} row={row} />
              </div>
            );
          })}
        </div>
      </div>
    </div>
  );
}

function Cells<T>({ columns, row }: Pick<DataTableProps<T>, "columns"> & { readonly row: T }) {
  return columns.map(({ title, cell, isNumber, from }) => (
    <div key={title} role="cell" className={classes.cell} data-number={isNumber} data-from={from}>
      {cell(row)}
    </div>
  ));
}

function SelectCell<T>({
  id,
  selected,
  onSelect,
}: Pick<DataTableProps<T>, "selected"> & {
  readonly id: string;
  readonly onSelect: (all: ReadonlySet<string>) => void;
}) {
  const isSelected = selected?.has(id) ?? false;
  const toggle = () => {
    const all = new Set(selected);
    if (!all.delete(id)) all.add(id);
    onSelect(all);
  };
  return (
    <div role="cell" className={classes.cell}>
      <input type="checkbox" aria-label={`Select ${id}`} checked={isSelected} onChange={toggle} />
    </div>
  );
}

function HeadRow<T>({ columns, orderBy = "", onOrder, onSelect, selected, rows, idOf }: DataTableProps<T>) {
  return (
    <div role="row" aria-rowindex={1} className={classes.head}>
      {onSelect && (
        <div role="columnheader" className={classes.cell}>
          <input
            type="checkbox"
            aria-label="Select all rows that are here"
            checked={rows.length > 0 && selected?.size === rows.length}
            onChange={(event) => onSelect(new Set(event.currentTarget.checked ? rows.map(idOf) : []))}
          />
        </div>
      )}
      {columns.map(({ title, sort, isNumber, from }) => {
        const direction = directionOf(orderBy, sort);
        return (
          <div
            key={title}
            role="columnheader"
            className={classes.cell}
            data-number={isNumber}
            data-from={from}
            {...(direction && { "aria-sort": direction })}
          >
            {sort === undefined || onOrder === undefined ? (
              title
            ) : (
              <button type="button" className={classes.sort} onClick={() => onOrder(nextOrder(sort, direction))}>
                {title}
                <span aria-hidden>{direction === "ascending" ? " ↑" : direction === "descending" ? " ↓" : ""}</span>
              </button>
            )}
          </div>
        );
      })}
    </div>
  );
}

/** Up, down, and as the server has it. */
const nextOrder = (sort: string, direction: ReturnType<typeof directionOf>): string =>
  direction === undefined ? sort : direction === "ascending" ? `${sort} desc` : "";

function directionOf(orderBy: string, sort: string | undefined): "ascending" | "descending" | undefined {
  const [field, word] = (orderBy.split(",", 1)[0] ?? "").trim().split(/\s+/);
  if (sort === undefined || field !== sort) return undefined;
  return word === "desc" ? "descending" : "ascending";
}

/** The columns of three widths of the page; the stylesheet takes the one that fits. */
function useTemplate<T>(columns: readonly Column<T>[], isSelectable: boolean): CSSProperties {
  const widths = (left: readonly (string | undefined)[]) =>
    [isSelectable ? "32px" : "", ...columns.filter(({ from }) => !left.includes(from)).map(({ width }) => width)].join(
      " ",
    );
  return {
    "--phone": widths(["tablet", "desktop"]),
    "--tablet": widths(["desktop"]),
    "--desktop": widths([]),
  } as CSSProperties;
}

const isControl = (target: EventTarget): boolean =>
  target instanceof Element && target.closest("a, button, input, label") !== null;

interface RowKeyUse {
  readonly open: (index: number) => void;
  readonly show: (index: number) => void;
  readonly scroller: { readonly current: HTMLDivElement | null };
}

/** `j`, `k`, Enter and `e` on the current row. */
function useRowKeys(count: number, { open, show, scroller }: RowKeyUse) {
  const [current, setCurrent] = useState(-1);
  const move = (step: number) => () => {
    const index = Math.max(0, Math.min(count - 1, current + step));
    setCurrent(index);
    show(index);
  };
  const explain = () => scroller.current?.querySelector<HTMLElement>(`[data-current] [data-explain]`)?.click();
  useKeys([
    { key: "j", does: "goes to the next row", run: move(1) },
    { key: "k", does: "goes to the row before", run: move(-1) },
    { key: "ArrowDown", does: "goes to the next row", run: move(1) },
    { key: "ArrowUp", does: "goes to the row before", run: move(-1) },
    { key: "Enter", does: "opens the row", run: () => open(current) },
    { key: "e", does: "explains the row", run: explain },
  ]);
  return [current, setCurrent] as const;
}
