import { useEffect } from "react";
import { type PagedList, type PagedListOptions, usePagedList } from "./paged-list.ts";

interface GroupFeedProps<T> {
  readonly name: string;
  readonly options: PagedListOptions<T>;
  readonly onList: (name: string, list: PagedList<T> | undefined) => void;
}

/** Reads the rows of one open group and keeps them fresh. It shows nothing: the table shows the rows of all groups. */
export function GroupFeed<T>({ name, options, onList }: GroupFeedProps<T>) {
  const list = usePagedList(options);
  const { items, hasMore, isLoading, changed } = list;
  // biome-ignore lint/correctness/useExhaustiveDependencies: the list is another object each time, and the same until one of these is not
  useEffect(() => onList(name, list), [name, onList, items, hasMore, isLoading, changed]);
  useEffect(() => () => onList(name, undefined), [name, onList]);
  return null;
}
