import { useVirtualizer } from "@tanstack/react-virtual";
import { type CSSProperties, type ReactNode, useEffect, useMemo, useRef, useState } from "react";
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

/** The first line of a group of rows. */
export interface GroupHead {
  readonly key: string;
  readonly things: number;
  readonly inTrouble: number;
  readonly isOpen: boolean;
  toggle(): void;
}

export type Entry<T> = { readonly row: T } | { readonly head: GroupHead };

interface DataTableProps<T> {
  /** For those who do not see it. */
  readonly label: string;
  readonly columns: readonly Column<T>[];
  readonly rows: readonly T[];
  /** The same rows below the heads of their groups. */
  readonly entries?: readonly Entry<T>[] | undefined;
  readonly idOf: (row: T) => string;
  readonly total?: number | undefined;
  readonly changed?: ReadonlySet<string>;
  readonly orderBy?: string;
  readonly onOrder?: (orderBy: string) => void;
  readonly onOpen?: (row: T) => void;
  readonly onEnd?: () => void;
  /** Told which entries are on the screen. */
  readonly onShown?: (first: number, last: number) => void;
  readonly selected?: ReadonlySet<string>;
  readonly onSelect?: (selected: ReadonlySet<string>) => void;
  readonly empty: ReactNode;
}

const ROW_HEIGHT = 32;
/** How many rows before its end more of a list is read. */
export const READ_AHEAD = 40;

/** Rows of one height, of which only those on the screen are there: a hundred thousand scroll as ten do. */
export function DataTable<T>(props: DataTableProps<T>) {
  const { label, columns, rows, idOf, total, onEnd, onShown, onOpen } = props;
  const scroller = useRef<HTMLDivElement>(null);
  const entries = useMemo(() => props.entries ?? rows.map((row) => ({ row })), [props.entries, rows]);
  const virtual = useVirtualizer({
    count: entries.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW_HEIGHT,
    overscan: 12,
  });
  const visible = virtual.getVirtualItems();
  const [first, last] = [visible[0]?.index ?? 0, visible.at(-1)?.index ?? 0];
  useEffect(() => {
    if (rows.length > 0 && last > entries.length - READ_AHEAD) onEnd?.();
    onShown?.(first, last);
  }, [first, last, rows, entries, onEnd, onShown]);
  const [current, setCurrent] = useRowKeys(entries.length, {
    open(index) {
      const entry = entries[index];
      if (entry === undefined) return;
      if ("head" in entry) entry.head.toggle();
      else onOpen?.(entry.row);
    },
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
        aria-rowcount={total ?? entries.length}
        style={template}
        className={classes.table}
      >
        <HeadRow {...props} />
        {entries.length === 0 && <div className={classes.empty}>{props.empty}</div>}
        <div role="rowgroup" style={{ height: virtual.getTotalSize(), position: "relative" }}>
          {visible.map(({ index, start }) => {
            const entry = entries[index];
            if (entry === undefined) return null;
            const place = { index, start, isCurrent: index === current, onCurrent: () => setCurrent(index) };
            if ("head" in entry) return <GroupRow key={`group ${entry.head.key}`} {...place} {...headOf(entry.head)} />;
            const id = idOf(entry.row);
            return <Row key={id} {...place} id={id} row={entry.row} table={props} />;
          })}
        </div>
      </div>
    </div>
  );
}

const headOf = ({ key: name, ...head }: GroupHead) => ({ name, ...head });

interface Place {
  readonly index: number;
  readonly start: number;
  readonly isCurrent: boolean;
  readonly onCurrent: () => void;
}

interface RowProps<T> extends Place {
  readonly id: string;
  readonly row: T;
  readonly table: DataTableProps<T>;
}

function Row<T>({ index, start, isCurrent, onCurrent, id, row, table }: RowProps<T>) {
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: Enter opens the current row
    <div
      role="row"
      aria-rowindex={index + 2}
      className={classes.row}
      data-current={isCurrent || undefined}
      data-changed={table.changed?.has(id) || undefined}
      style={{ transform: `translateY(${start}px)` }}
      onClick={(event) => {
        onCurrent();
        if (!isControl(event.target)) table.onOpen?.(row);
      }}
    >
      {table.onSelect && <SelectCell {...table} id={id} onSelect={table.onSelect} />}
      <Cells columns={table.columns} row={row} />
    </div>
  );
}

function GroupRow({
  index,
  start,
  isCurrent,
  onCurrent,
  name,
  things,
  inTrouble,
  isOpen,
  toggle,
}: Place & Omit<GroupHead, "key"> & { readonly name: string }) {
  return (
    <div
      role="row"
      aria-rowindex={index + 2}
      className={`${classes.row} ${classes.group}`}
      data-current={isCurrent || undefined}
      style={{ transform: `translateY(${start}px)` }}
    >
      <div role="cell" className={classes.groupCell}>
        <button
          type="button"
          className={classes.groupButton}
          aria-expanded={isOpen}
          onClick={() => {
            onCurrent();
            toggle();
          }}
        >
          <span aria-hidden>{isOpen ? "▾" : "▸"}</span>
          <strong>{name}</strong>
          <span className="dim">{things.toLocaleString("en")}</span>
          {inTrouble > 0 && <span data-tone="trouble">{inTrouble.toLocaleString("en")} in trouble</span>}
        </button>
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
