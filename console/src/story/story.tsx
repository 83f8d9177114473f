import { Button } from "@mantine/core";
import { useInfiniteQuery } from "@tanstack/react-query";
import type { Event } from "../../../contract/millwright/v1/event_pb.js";
import { HistoryService } from "../../../contract/millwright/v1/history_pb.js";
import { harmless } from "../api/hostile-text.ts";
import { topicKey } from "../api/query-keys.ts";
import { clientOf } from "../api/services.ts";
import { Age } from "../parts/age.tsx";
import { ErrorNote } from "../parts/error-note.tsx";
import { EventWhat } from "./event-what.tsx";
import classes from "./story.module.css";

const PAGE_SIZE = 40;

/** What happened to a thing, the newest first: who did what, and why. */
export function Story({ kind, id }: { readonly kind: string; readonly id: string }) {
  const { data, error, hasNextPage, fetchNextPage, isFetchingNextPage } = useInfiniteQuery({
    queryKey: topicKey(kind, "story", id),
    queryFn: ({ pageParam, signal }) =>
      clientOf(HistoryService).listHistory(
        { kind, id, newestFirst: true, pageSize: PAGE_SIZE, pageToken: pageParam },
        { signal },
      ),
    initialPageParam: "",
    getNextPageParam: ({ nextPageToken }) => nextPageToken || undefined,
  });
  if (error !== null) return <ErrorNote error={error} />;
  const events = data?.pages.flatMap((page) => page.events) ?? [];
  return (
    <>
      <ol className={classes.story}>
        {events.map((event) => (
          <StoryLine key={event.cursor} event={event} />
        ))}
      </ol>
      {data !== undefined && events.length === 0 && <p className="dim">Nothing has happened to it.</p>}
      {hasNextPage && (
        <Button size="xs" variant="default" loading={isFetchingNextPage} onClick={() => void fetchNextPage()}>
          Earlier
        </Button>
      )}
    </>
  );
}

function StoryLine({ event }: { readonly event: Event }) {
  return (
    <li className={classes.line} data-alarm={event.alarm !== "" || undefined}>
      <span className={classes.at}>
        <Age at={event.at} />
      </span>
      <span className={classes.what}>
        <EventWhat event={event} />
        {event.reason !== "" && <span className="dim"> {harmless(event.reason)}</span>}
      </span>
      <span className={classes.who}>{harmless(event.actor)}</span>
    </li>
  );
}
