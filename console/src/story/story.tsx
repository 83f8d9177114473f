import { Button } from "@mantine/core";
import { useInfiniteQuery } from "@tanstack/react-query";
import { useRef, useState } from "react";
import type { Event } from "../../../contract/millwright/v1/event_pb.js";
import { HistoryService } from "../../../contract/millwright/v1/history_pb.js";
import { harmless } from "../api/hostile-text.ts";
import { topicKey } from "../api/query-keys.ts";
import { clientOf } from "../api/services.ts";
import { useEvents } from "../live/live.tsx";
import { Age } from "../parts/age.tsx";
import { ErrorNote } from "../parts/error-note.tsx";
import { ThingLink } from "../parts/thing-link.tsx";
import { useMe } from "../shell/me.tsx";
import { EventWhat } from "./event-what.tsx";
import classes from "./story.module.css";

const PAGE_SIZE = 40;

interface Thing {
  readonly kind: string;
  readonly id: string;
}

interface StoryProps extends Thing {
  /** What happened to these is told with it: they are the same hardware, or work on it. */
  readonly others?: readonly Thing[];
}

interface StoryPage {
  readonly events: readonly Event[];
  readonly nextPageToken: string;
}

const NO_OTHERS: readonly Thing[] = [];

/** What happened to a thing, the newest first: who did what, and why. */
export function Story({ kind, id, others = NO_OTHERS }: StoryProps) {
  const { may } = useMe();
  const isMerged = others.length > 0 && may.has("millwright.v1.HistoryService/ListEvents");
  const things = [{ kind, id }, ...(isMerged ? others.map((each) => ({ kind: each.kind, id: each.id })) : [])];
  const { data, error, hasNextPage, fetchNextPage, isFetchingNextPage, refetch } = useInfiniteQuery({
    queryKey: topicKey(kind, "story", id, ...things.map((thing) => `${thing.kind}/${thing.id}`)),
    queryFn: ({ pageParam, signal }): Promise<StoryPage> =>
      isMerged
        ? clientOf(HistoryService).listEvents({ things, pageSize: PAGE_SIZE, pageToken: pageParam }, { signal })
        : clientOf(HistoryService).listHistory(
            { kind, id, newestFirst: true, pageSize: PAGE_SIZE, pageToken: pageParam },
            { signal },
          ),
    initialPageParam: "",
    getNextPageParam: ({ nextPageToken }) => nextPageToken || undefined,
  });
  useEventsOf(things.slice(1), () => void refetch({ cancelRefetch: false }));
  if (error !== null) return <ErrorNote error={error} />;
  const events = data?.pages.flatMap((page) => page.events) ?? [];
  return (
    <>
      <ol className={classes.story}>
        {events.map((event) => (
          <StoryLine key={event.cursor} event={event} of={{ kind, id }} />
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

/** Events of the thing itself make its story old by themselves; those of the others are listened for. */
function useEventsOf(things: readonly Thing[], happened: () => void) {
  const latest = useRef({ things, happened });
  latest.current = { things, happened };
  const [listener] = useState(() => (event: Event) => {
    if (latest.current.things.some(({ kind, id }) => kind === event.kind && id === event.id)) latest.current.happened();
  });
  useEvents(listener);
}

function StoryLine({ event, of }: { readonly event: Event; readonly of: Thing }) {
  const isOther = event.kind !== of.kind || event.id !== of.id;
  return (
    <li className={classes.line} data-alarm={event.alarm !== "" || undefined}>
      <span className={classes.at}>
        <Age at={event.at} />
      </span>
      <span className={classes.what}>
        {isOther && (
          <>
            <ThingLink kind={event.kind} id={event.id} text={event.kind.replaceAll("_", " ")} />{" "}
          </>
        )}
        <EventWhat event={event} />
        {event.reason !== "" && <span className="dim"> {harmless(event.reason)}</span>}
      </span>
      <span className={classes.who}>{harmless(event.actor)}</span>
    </li>
  );
}
