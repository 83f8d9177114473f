import type { DescMethodUnary, MessageInitShape } from "@bufbuild/protobuf";
import { useNavigate } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { pathOfThing } from "../pages/thing-path.ts";
import { CopyAs, shellWord } from "../parts/copy-as.tsx";
import { countWords } from "../parts/count-words.ts";
import { PageHead } from "../parts/page-head.tsx";
import { type Column, DataTable } from "./data-table.tsx";
import { FilterBar } from "./filter-bar.tsx";
import { useListSearch } from "./list-search.ts";
import { type PagedListOptions, usePagedList } from "./paged-list.ts";

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
}

/** A list that the server filters, sorts and pages, kept up to date. */
export function ListPage<T, M extends DescMethodUnary>(props: ListPageProps<T, M>) {
  const {
    title,
    noun,
    kind,
    columns,
    read,
    idOf,
    idField,
    example,
    presets,
    cli,
    method,
    empty,
    opens = true,
    above,
  } = props;
  const { filter, orderBy, setFilter, setOrder } = useListSearch();
  const navigate = useNavigate();
  const list = usePagedList({ kind, filter, orderBy, read, idOf, idField });
  const line = [cli, filter && `--filter ${shellWord(filter)}`, orderBy && `--order-by ${shellWord(orderBy)}`];
  const request = { filter, orderBy } as unknown as MessageInitShape<M["input"]>;
  const open = (row: T) => {
    const to = pathOfThing(kind, idOf(row));
    if (to !== undefined) void navigate({ to });
  };
  return (
    <>
      <PageHead title={title} actions={<CopyAs call={{ cli: line.filter(Boolean).join(" "), method, request }} />} />
      {above}
      <FilterBar
        filter={filter}
        onFilter={setFilter}
        example={example}
        error={list.error}
        count={list.total === undefined ? "" : countWords(list.total, noun)}
        {...(presets && { presets })}
        isOld={list.isOld}
        onReadAgain={list.readAgain}
      />
      <DataTable
        label={title}
        columns={columns}
        rows={list.items}
        idOf={idOf}
        total={list.total}
        changed={list.changed}
        orderBy={orderBy}
        onOrder={setOrder}
        {...(opens && { onOpen: open })}
        onEnd={list.readMore}
        empty={list.isLoading ? "Reading …" : filter === "" ? empty : "Nothing satisfies the filter."}
      />
    </>
  );
}
