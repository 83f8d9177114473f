import { useMemo } from "react";
import type { Entry } from "./data-table.tsx";
import { entriesOf, type Group, useGroupLists, useGroups, useReadOn } from "./groups.ts";
import type { useListSearch } from "./list-search.ts";
import { type PagedList, type PagedListOptions, usePagedList } from "./paged-list.ts";

const NOTHING_CHANGED: ReadonlySet<string> = new Set();

interface Feed<T> {
  readonly name: string;
  readonly options: PagedListOptions<T>;
  readonly onList: (name: string, list: PagedList<T> | undefined) => void;
}

export interface ShownList<T>
  extends Pick<PagedList<T>, "total" | "error" | "isLoading" | "isOld" | "readAgain" | "changed"> {
  readonly rows: readonly T[];
  /** With the heads of the groups; undefined where the list is not grouped. */
  readonly entries: readonly Entry<T>[] | undefined;
  /** What reads the open groups. */
  readonly feeds: readonly Feed<T>[];
  /** What else is to be said of the total. */
  readonly aside: string;
  readonly onEnd?: () => void;
  readonly onShown?: (first: number, last: number) => void;
}

/** A list as the address has it: in one piece, or in groups, of which those that are open are read. */
export function useShownList<T>(
  options: PagedListOptions<T>,
  { group, open, setOpen }: Pick<ReturnType<typeof useListSearch>, "group" | "open" | "setOpen">,
): ShownList<T> {
  const flat = usePagedList({ ...options, isOff: group !== "" });
  const grouped = useGroups(options.kind, options.filter, group);
  const { lists, note } = useGroupLists<T>();
  const onShown = useReadOn(grouped.groups, lists);
  const toggle = (key: string) => setOpen(open.includes(key) ? open.filter((each) => each !== key) : [...open, key]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: toggle is another function each time, and does the same for one `open`
  const entries = useMemo(() => entriesOf(grouped.groups, lists, toggle), [grouped.groups, lists, open.join()]);
  const rows = useMemo(() => entries.flatMap((entry) => ("row" in entry ? [entry.row] : [])), [entries]);
  const changed = useMemo(() => new Set([...lists.values()].flatMap((list) => [...list.changed])), [lists]);
  if (group === "")
    return { ...flat, rows: flat.items, entries: undefined, feeds: [], aside: "", onEnd: flat.readMore };
  const feedOf = ({ key, filter }: Group): Feed<T> => ({
    name: key,
    options: { ...options, filter, movesRows: true },
    onList: note,
  });
  const { total, error, isCut } = grouped;
  return {
    ...{ rows, entries, total, error, onShown },
    changed: changed.size === 0 ? NOTHING_CHANGED : changed,
    isLoading: total === undefined && error === null,
    isOld: false,
    readAgain: () => undefined,
    feeds: grouped.groups.filter(({ key }) => open.includes(key)).map(feedOf),
    aside: isCut ? ", in more groups than are shown" : ` in ${grouped.groups.length.toLocaleString("en")} groups`,
  };
}
