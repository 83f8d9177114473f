import { useInfiniteQuery } from "@tanstack/react-query";
import { useEffect, useMemo, useRef, useState } from "react";
import type { Event } from "../../../../contract/millwright/v1/event_pb.js";
import { HistoryService } from "../../../../contract/millwright/v1/history_pb.js";
import { listKey } from "../../api/query-keys.ts";
import { clientOf } from "../../api/services.ts";
import { useEvents } from "../../live/live.tsx";
import { admits, type EventFilter } from "./event-filter.ts";

const PAGE_SIZE = 100;
/** Of what happens while the page is open. Older ones are read again from the journal. */
const MOST_NEW = 2_000;
const SHOW_EVERY_MS = 150;

/** The journal, the newest first: what was there, read page by page, and above it what happens. */
export function useEventList(filter: EventFilter, isLive: boolean) {
  const key = JSON.stringify(filter);
  const query = useInfiniteQuery({
    queryKey: listKey("journal", key),
    queryFn: ({ pageParam, signal }) =>
      clientOf(HistoryService).listEvents(
        {
          kinds: [...filter.kinds],
          types: [...filter.types],
          actors: [...filter.actors],
          ...{ fromCursor: filter.from, pageSize: PAGE_SIZE, pageToken: pageParam },
        },
        { signal },
      ),
    initialPageParam: "",
    getNextPageParam: ({ nextPageToken }) => nextPageToken || undefined,
    meta: { isKeptFresh: true },
  });
  const fresh = useFreshEvents(filter, key, isLive && filter.from === "");
  const events = useMemo(() => {
    const read = query.data?.pages.flatMap((page) => page.events) ?? [];
    const known = new Set(read.map(({ cursor }) => cursor));
    return [...fresh.filter(({ cursor }) => !known.has(cursor)), ...read];
  }, [query.data, fresh]);
  return {
    events,
    error: query.error,
    isLoading: query.isPending,
    readMore: () => {
      if (query.hasNextPage && !query.isFetchingNextPage) void query.fetchNextPage();
    },
  };
}

/** The newest first; shown some times a second, however many there are. */
function useFreshEvents(filter: EventFilter, key: string, isLive: boolean): readonly Event[] {
  const [fresh, setFresh] = useState<readonly Event[]>([]);
  const latest = useRef({ filter, isLive });
  latest.current = { filter, isLive };
  const waiting = useRef<Event[]>([]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: another filter is another list
  useEffect(() => {
    waiting.current = [];
    setFresh([]);
  }, [key]);
  const [listener] = useState(() => (event: Event) => {
    if (admits(latest.current.filter, event)) waiting.current.push(event);
  });
  useEvents(listener);
  useEffect(() => {
    const timer = window.setInterval(() => {
      if (!latest.current.isLive || waiting.current.length === 0) return;
      const come = waiting.current.splice(0).reverse();
      setFresh((before) => [...come, ...before].slice(0, MOST_NEW));
    }, SHOW_EVERY_MS);
    return () => window.clearInterval(timer);
  }, []);
  return fresh;
}
