import { Checkbox, NativeSelect, TextInput } from "@mantine/core";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { type FormEvent, useState } from "react";
import type { Event } from "../../../../contract/millwright/v1/event_pb.js";
import { HistoryService } from "../../../../contract/millwright/v1/history_pb.js";
import { harmless } from "../../api/hostile-text.ts";
import { useLifecycles } from "../../api/lifecycles.ts";
import { type Column, DataTable } from "../../lists/data-table.tsx";
import { Age } from "../../parts/age.tsx";
import { CopyAs, shellWord } from "../../parts/copy-as.tsx";
import { CopyButton } from "../../parts/copy-button.tsx";
import { ErrorNote } from "../../parts/error-note.tsx";
import { PageHead } from "../../parts/page-head.tsx";
import { ThingLink } from "../../parts/thing-link.tsx";
import { EventWhat } from "../../story/event-what.tsx";
import { eventFilterFrom } from "./event-filter.ts";
import classes from "./events.module.css";
import { useEventList } from "./use-event-list.ts";

const idOf = ({ cursor }: Event): string => cursor;

const columns: readonly Column<Event>[] = [
  { title: "Ago", width: "84px", isNumber: true, cell: ({ at }) => <Age at={at} /> },
  { title: "Kind", width: "minmax(90px, 130px)", from: "tablet", cell: ({ kind }) => kind.replaceAll("_", " ") },
  { title: "Thing", width: "minmax(110px, 1fr)", cell: ({ kind, id }) => <ThingLink kind={kind} id={id} /> },
  { title: "What", width: "minmax(130px, 1.4fr)", cell: (event) => <EventWhat event={event} /> },
  {
    title: "Why",
    width: "minmax(120px, 2fr)",
    from: "tablet",
    cell: ({ reason }) => <span title={harmless(reason)}>{harmless(reason)}</span>,
  },
  { title: "By", width: "minmax(90px, 1fr)", from: "desktop", cell: ({ actor }) => harmless(actor) },
  {
    title: "Link",
    width: "64px",
    from: "desktop",
    cell: ({ cursor }) => <CopyButton label="link" text={linkTo(cursor)} />,
  },
];

/** What was known at that moment, for somebody else to see. */
const linkTo = (cursor: string): string => `${window.location.origin}/events?${new URLSearchParams({ from: cursor })}`;

/** The journal: everything that happened, the newest first, and live. */
export function Events() {
  const search = useSearch({ strict: false }) as Readonly<Record<string, string | undefined>>;
  const filter = eventFilterFrom(search);
  const [isLive, setLive] = useState(true);
  const { events, error, isLoading, readMore } = useEventList(filter, isLive);
  const words = [filter.kinds, filter.types].map((each, index) =>
    each.length === 0 ? "" : `--${index === 0 ? "kind" : "type"} ${each.map(shellWord).join(" ")}`,
  );
  const call = {
    cli: ["millwright watch", ...words].filter((word) => word !== "").join(" "),
    method: HistoryService.method.listEvents,
    request: { kinds: [...filter.kinds], types: [...filter.types], actors: [...filter.actors] },
  };
  return (
    <>
      <PageHead title="Events" actions={<CopyAs call={call} />} />
      <EventBar search={search} isLive={isLive} onLive={setLive} />
      {error !== null && <ErrorNote error={error} />}
      <DataTable
        label="Events"
        columns={columns}
        rows={events}
        idOf={idOf}
        onEnd={readMore}
        empty={isLoading ? "Reading …" : "Nothing of that kind has happened."}
      />
    </>
  );
}

interface EventBarProps {
  readonly search: Readonly<Record<string, string | undefined>>;
  readonly isLive: boolean;
  readonly onLive: (isLive: boolean) => void;
}

function EventBar({ search, isLive, onLive }: EventBarProps) {
  const navigate = useNavigate();
  const { data: lifecycles } = useLifecycles();
  const set = (change: Readonly<Record<string, string>>) =>
    void navigate({ search: { ...search, ...change } as never, replace: true });
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    set({ types: String(form.get("types") ?? ""), actors: String(form.get("actors") ?? "") });
  };
  return (
    <form key={`${search.types} ${search.actors}`} className={classes.bar} onSubmit={submit}>
      <NativeSelect
        size="xs"
        aria-label="Kind"
        value={search.kinds ?? ""}
        onChange={(event) => set({ kinds: event.currentTarget.value })}
        data={[
          { value: "", label: "all kinds" },
          ...[...(lifecycles?.keys() ?? [])].map((kind) => ({ value: kind, label: kind.replaceAll("_", " ") })),
        ]}
      />
      <TextInput
        data-filter
        size="xs"
        name="types"
        aria-label="Types"
        placeholder="Types, such as failed, created"
        defaultValue={search.types ?? ""}
      />
      <TextInput
        size="xs"
        name="actors"
        aria-label="Caused by"
        placeholder="Caused by"
        defaultValue={search.actors ?? ""}
      />
      <button type="submit" className={classes.apply}>
        Apply
      </button>
      {search.from === undefined ? (
        <Checkbox size="xs" label="live" checked={isLive} onChange={() => onLive(!isLive)} />
      ) : (
        <button type="button" className={classes.apply} onClick={() => set({ from: "" })}>
          Up to a moment that was sent as a link: show all
        </button>
      )}
    </form>
  );
}
