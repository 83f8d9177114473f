import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useCallback, useMemo, useRef, useState } from "react";
import { OverviewService, type ThingGroup } from "../../../contract/millwright/v1/overview_pb.js";
import { summaryKey } from "../api/query-keys.ts";
import { clientOf } from "../api/services.ts";
import { type Entry, READ_AHEAD } from "./data-table.tsx";
import { NO_VALUE } from "./list-search.ts";
import type { PagedList } from "./paged-list.ts";
import { filterValue } from "./suggestions.ts";

const MOST_GROUPS = 1_000;

/** A group of a list as it is counted by the server. */
export interface Group {
  /** As in the address. */
  readonly key: string;
  readonly filter: string;
  readonly things: number;
  readonly inTrouble: number;
}

const byName = new Intl.Collator("en", { numeric: true });

/** The groups of a list, by name: they stay where they are, however many things come and go. */
export function useGroups(kind: string, filter: string, field: string) {
  const { data, error } = useQuery({
    queryKey: summaryKey("groups", kind, filter, field),
    queryFn: ({ signal }) =>
      clientOf(OverviewService).countThings({ kind, filter, groupBy: [field], maxGroups: MOST_GROUPS }, { signal }),
    enabled: field !== "",
    placeholderData: keepPreviousData,
  });
  const groups = useMemo(
    () => (data?.groups ?? []).map((group) => groupOf(group, filter, field)),
    [data, filter, field],
  );
  const sorted = useMemo(() => groups.toSorted((a, b) => byName.compare(a.key, b.key)), [groups]);
  return { groups: sorted, isCut: data?.cut ?? false, total: data && Number(data.total), error };
}

function groupOf({ values: [value = ""], things, inTrouble }: ThingGroup, filter: string, field: string): Group {
  const own = `${field}=${/^\d+$/.test(value) ? value : filterValue(value)}`;
  return {
    key: value === "" ? NO_VALUE : value,
    filter: filter === "" ? own : `(${filter}) AND ${own}`,
    things: Number(things),
    inTrouble: Number(inTrouble),
  };
}

/** What is read of the open groups, each by itself. */
export function useGroupLists<T>() {
  const [lists, setLists] = useState<ReadonlyMap<string, PagedList<T>>>(new Map());
  const note = useCallback((key: string, list: PagedList<T> | undefined) => {
    setLists((before) => {
      const after = new Map(before);
      if (list === undefined) after.delete(key);
      else after.set(key, list);
      return after;
    });
  }, []);
  return { lists, note };
}

/** The rows of all open groups, each behind the head of its group. */
export function entriesOf<T>(
  groups: readonly Group[],
  lists: ReadonlyMap<string, PagedList<T>>,
  toggle: (key: string) => void,
): readonly Entry<T>[] {
  return groups.flatMap((group): readonly Entry<T>[] => {
    const list = lists.get(group.key);
    const head = { ...group, isOpen: list !== undefined, toggle: () => toggle(group.key) };
    return [{ head }, ...(list?.items.map((row) => ({ row })) ?? [])];
  });
}

/** Reads on where the end of what is read of a group is on the screen, or soon will be. */
export function useReadOn<T>(groups: readonly Group[], lists: ReadonlyMap<string, PagedList<T>>) {
  const latest = useRef({ groups, lists });
  latest.current = { groups, lists };
  return useCallback((first: number, last: number) => {
    let end = 0;
    for (const { key } of latest.current.groups) {
      const list = latest.current.lists.get(key);
      end += 1 + (list?.items.length ?? 0);
      if (list?.hasMore && end >= first && end < last + READ_AHEAD) return list.readMore();
    }
  }, []);
}
