import type { DescMethodUnary, MessageInitShape } from "@bufbuild/protobuf";
import { useNavigate } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { pathOfThing } from "../pages/thing-path.ts";
import { CopyAs, shellWord } from "../parts/copy-as.tsx";
import { countWords } from "../parts/count-words.ts";
import { PageHead } from "../parts/page-head.tsx";
import { type Column, DataTable } from "./data-table.tsx";
import { FilterBar } from "./filter-bar.tsx";
import { GroupFeed } from "./group-feed.tsx";
import { useListSearch } from "./list-search.ts";
import type { PagedListOptions } from "./paged-list.ts";
import { useShownList } from "./shown-list.ts";

export interface Selection<T> {
  readonly selected: ReadonlySet<string>;
  /** The ids that are selected now, and the rows that are here. Absent: nothing can be selected. */
  readonly onSelect?: ((ids: ReadonlySet<string>, rows: readonly T[]) => void) | undefined;
  /** What can be done with those that are selected. */
  readonly bar?: ReactNode;
}

interface ListPageProps<T, M extends DescMethodUnary> {
  readonly title: string;
  /** One of them, such as `power shelf`. */
  readonly noun: string;
  /** As in its lifecycle. */
  readonly kind: string;
  readonly columns: readonly Column<T>[];
  readonly read: PagedListOptions<T>["read"];
  readonly idOf: (row: T) => string;
  /** The field of filters that holds the id. */
  readonly idField: string;
  readonly example: string;
  readonly presets?: readonly { readonly label: string; readonly filter: string }[];
  /** Such as `millwright rack list`. */
  readonly cli: string;
  readonly method: M;
  readonly empty: string;
  /** Things without pages of their own are not opened. */
  readonly opens?: boolean;
  readonly above?: ReactNode;
  readonly selection?: Selection<T>;
}

/** A list that the server filters, sorts, groups and pages, kept up to date. */
export function ListPage<T, M extends DescMethodUnary>(props: ListPageProps<T, M>) {
  const { title, noun, kind, columns, read, idOf, idField, example, presets, opens = true, selection } = props;
  const search = useListSearch();
  const { filter, orderBy, group } = search;
  const navigate = useNavigate();
  const list = useShownList({ kind, filter, orderBy, read, idOf, idField }, search);
  const open = (row: T) => {
    const to = pathOfThing(kind, idOf(row));
    if (to !== undefined) void navigate({ to });
  };
  const { onSelect } = selection ?? {};
  return (
    <>
      <PageHead title={title} actions={<CopyList {...props} filter={filter} orderBy={orderBy} />} />
      {props.above}
      <FilterBar
        kind={kind}
        view={{ filter, orderBy, group }}
        onFilter={search.setFilter}
        onGroup={search.setGroup}
        onView={search.show}
        example={example}
        error={list.error}
        count={list.total === undefined ? "" : `${countWords(list.total, noun)}${list.aside}`}
        {...(presets && { presets })}
        isOld={list.isOld}
        onReadAgain={list.readAgain}
      />
      {selection?.bar}
      {list.feeds.map((feed) => (
        <GroupFeed key={feed.name} {...feed} />
      ))}
      <DataTable
        label={title}
        columns={columns}
        rows={list.rows}
        entries={list.entries}
        idOf={idOf}
        total={list.total}
        changed={list.changed}
        orderBy={orderBy}
        onOrder={search.setOrder}
        {...(opens && { onOpen: open })}
        {...(selection && { selected: selection.selected })}
        {...(onSelect && { onSelect: (ids: ReadonlySet<string>) => onSelect(ids, list.rows) })}
        {...(list.onEnd && { onEnd: list.onEnd })}
        {...(list.onShown && { onShown: list.onShown })}
        empty={list.isLoading ? "Reading …" : filter === "" ? props.empty : "Nothing satisfies the filter."}
      />
    </>
  );
}

interface CopyListProps<M extends DescMethodUnary> {
  readonly cli: string;
  readonly method: M;
  readonly filter: string;
  readonly orderBy: string;
}

function CopyList<M extends DescMethodUnary>({ cli, method, filter, orderBy }: CopyListProps<M>) {
  const line = [cli, filter && `--filter ${shellWord(filter)}`, orderBy && `--order-by ${shellWord(orderBy)}`];
  const request = { filter, orderBy } as unknown as MessageInitShape<M["input"]>;
  return <CopyAs call={{ cli: line.filter(Boolean).join(" "), method, request }} />;
}
