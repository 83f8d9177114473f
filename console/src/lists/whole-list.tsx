import type { DescMethodUnary, MessageInitShape } from "@bufbuild/protobuf";
import { TextInput } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { listKey } from "../api/query-keys.ts";
import { pathOfThing } from "../pages/thing-path.ts";
import { CopyAs } from "../parts/copy-as.tsx";
import { countWords } from "../parts/count-words.ts";
import { ErrorNote } from "../parts/error-note.tsx";
import { PageHead } from "../parts/page-head.tsx";
import { type Column, DataTable } from "./data-table.tsx";
import classes from "./whole-list.module.css";

interface WholeListProps<T, M extends DescMethodUnary> {
  readonly title: string;
  /** One of them, such as `workflow`. */
  readonly noun: string;
  /** As events call it. */
  readonly kind: string;
  readonly columns: readonly Column<T>[];
  readonly read: (signal: AbortSignal) => Promise<readonly T[]>;
  readonly idOf: (row: T) => string;
  /** All words of a row that somebody may look for. */
  readonly textOf: (row: T) => string;
  readonly cli: string;
  readonly method: M;
  readonly empty: string;
}

/** A catalogue of a few dozen entries, which the server gives as a whole: it is searched here. What is searched is in the address. */
export function WholeList<T, M extends DescMethodUnary>(props: WholeListProps<T, M>) {
  const { title, noun, kind, columns, read, idOf, textOf, cli, method, empty } = props;
  const { find = "" } = useSearch({ strict: false }) as { readonly find?: string };
  const navigate = useNavigate();
  const { data, error } = useQuery({ queryKey: listKey(kind, "whole"), queryFn: ({ signal }) => read(signal) });
  const wanted = find.toLowerCase();
  const rows = (data ?? []).filter((row) => textOf(row).toLowerCase().includes(wanted));
  const hasPages = pathOfThing(kind, "x") !== undefined;
  const open = (row: T) => {
    const to = pathOfThing(kind, idOf(row));
    if (to !== undefined) void navigate({ to });
  };
  const request = {} as MessageInitShape<M["input"]>;
  return (
    <>
      <PageHead title={title} actions={<CopyAs call={{ cli, method, request }} />} />
      {error !== null && <ErrorNote error={error} />}
      <div className={classes.bar}>
        <TextInput
          data-filter
          className={classes.field ?? ""}
          size="xs"
          aria-label={`Find a ${noun}`}
          placeholder={`Find a ${noun}`}
          value={find}
          onChange={(event) => void navigate({ search: { find: event.currentTarget.value } as never, replace: true })}
        />
        <span className="dim" aria-live="polite">
          {data !== undefined && countWords(rows.length, noun)}
        </span>
      </div>
      <DataTable
        label={title}
        columns={columns}
        rows={rows}
        idOf={idOf}
        {...(hasPages && { onOpen: open })}
        empty={data === undefined ? "Reading …" : wanted === "" ? empty : "None has these letters."}
      />
    </>
  );
}
