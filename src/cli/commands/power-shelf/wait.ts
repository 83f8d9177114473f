import type { MaintenanceRequest, PowerShelf } from "../../../../contract/millwright/v1/power_shelf_pb.js";
import { CliError, EXIT } from "../../client/errors.ts";
import { followEvents } from "../../client/events.ts";
import type { Session } from "../../client/session.ts";
import { createLiveView, type LiveView } from "../../terminal/live-view.ts";
import { type Column, renderChange, renderList } from "../../terminal/output.ts";
import { printLine } from "../../terminal/printing.ts";
import type { Tone } from "../../terminal/table.ts";
import { describeDuration } from "../../terminal/times.ts";
import { widthOf } from "../../terminal/wrap-words.ts";
import { readShelf } from "./list.ts";
import { reasonText } from "./view.ts";

interface Waiting {
  readonly ids: readonly string[];
  readonly operation: string;
  readonly timeoutMs: number | undefined;
  readonly submit: () => Promise<void>;
}

/** How far one shelf is. `outcome` is empty until its request has ended. */
interface Progress {
  readonly id: string;
  /** Requests that were there before ours. */
  readonly earlier: readonly string[];
  request: string;
  state: string;
  outcome: string;
  message: string;
}

/** Submits, then follows every shelf until its request has ended; 1 when any ended otherwise than completed. */
export async function waitForRequests(session: Session, waiting: Waiting): Promise<number> {
  const timeout = waiting.timeoutMs === undefined ? undefined : AbortSignal.timeout(waiting.timeoutMs);
  const signal = timeout ? AbortSignal.any([session.signal, timeout]) : session.signal;
  const began = session.terminal.now().getTime();
  const shelves = new Map<string, Progress>();
  const all = () => [...shelves.values()];
  const columns = columnsFor(waiting.ids);
  let isSubmitted = false;
  const view = createLiveView(session, async (style) => renderList({ items: all(), columns, json: toJson }, style));
  try {
    // The stream is open before the request is made, so that not even the quickest shelf is missed.
    for await (const followed of followEvents(
      session,
      { kinds: ["power_shelf"], ids: waiting.ids, from: "now" },
      signal,
    )) {
      if (followed.type === "ready") {
        for (const id of waiting.ids) shelves.set(id, await noteBefore(session, id));
        await waiting.submit();
        isSubmitted = true;
        for (const progress of all()) await look(session, progress);
        if (isForPeople(session)) await view.start();
      } else {
        const progress = shelves.get(followed.event.id);
        if (progress) await lookAndTell(session, progress, view, columns);
      }
      if (shelves.size > 0 && all().every(({ outcome }) => outcome !== "")) break;
    }
  } finally {
    await view.stop();
  }
  if (!isSubmitted) throw notSubmitted(session, waiting.timeoutMs);
  if (session.signal.aborted) {
    session.terminal.stderr.write("Stopped waiting; the request goes on. `millwright power-shelf show ID` shows it.\n");
    return EXIT.interrupted;
  }
  return summarise(session, {
    all: all(),
    columns,
    tookMs: session.terminal.now().getTime() - began,
    timeoutMs: waiting.timeoutMs,
  });
}

/** The time was up, or the user went, before the request was made. */
function notSubmitted(session: Session, timeoutMs: number | undefined): CliError {
  if (session.signal.aborted) return new CliError(EXIT.interrupted, "interrupted; nothing was asked for");
  return new CliError(
    EXIT.unavailable,
    `timed out after ${describeDuration(timeoutMs ?? 0)}, before the server answered; nothing was asked for`,
  );
}

const isForPeople = (session: Session): boolean => session.style().format === "table";

/** As wide from the start as the longest state and outcome, so that later rows stand below the first. */
const columnsFor = (ids: readonly string[]): readonly Column<Progress>[] => [
  { title: "ID", cell: ({ id }) => id, least: Math.max(...ids.map(widthOf)) },
  { title: "STATE", cell: ({ state }) => state, least: "fetching_data".length },
  {
    title: "REQUEST",
    cell: ({ outcome }) => outcome || "pending",
    tone: ({ outcome }) => toneOf(outcome),
    least: "superseded".length,
  },
  { title: "MESSAGE", cell: ({ message }) => message },
];

const toneOf = (outcome: string): Tone => (outcome === "" ? "busy" : outcome === "completed" ? "good" : "bad");
const toJson = ({ id, request, state, outcome, message }: Progress) => ({
  id,
  request_id: request,
  state,
  outcome,
  message,
});

async function noteBefore(session: Session, id: string): Promise<Progress> {
  const shelf = await readShelf(session, id);
  const earlier = [shelf?.pendingRequest?.id, shelf?.lastRequest?.id].filter((request) => request !== undefined);
  return { id, earlier, request: "", state: shelf?.state ?? "", outcome: "", message: "" };
}

/** Reads the shelf and judges how its request stands. */
async function look(session: Session, progress: Progress): Promise<void> {
  if (progress.outcome !== "") return;
  const shelf = await readShelf(session, progress.id);
  if (!shelf) {
    Object.assign(progress, {
      state: "gone",
      outcome: "gone",
      message: "the shelf was removed before its request ended",
    });
    return;
  }
  progress.state = shelf.state;
  progress.request ||= ours(shelf, progress.earlier)?.id ?? "";
  Object.assign(progress, progressOf(shelf, progress.request));
}

/** The request that appeared with our submission. */
const ours = (shelf: PowerShelf, earlier: readonly string[]): MaintenanceRequest | undefined =>
  [shelf.pendingRequest, shelf.lastRequest].find((request) => request !== undefined && !earlier.includes(request.id));

function progressOf(shelf: PowerShelf, request: string): { outcome: string; message: string } {
  const { pendingRequest, lastRequest } = shelf;
  if (lastRequest?.id === request) return { outcome: lastRequest.outcome || "completed", message: lastRequest.message };
  if (pendingRequest?.id === request || request === "") return { outcome: "", message: reasonText(shelf) };
  // Neither pending nor last: others have asked since, and one of them took its place.
  return {
    outcome: "superseded",
    message: `another request took its place${pendingRequest ? `: ${pendingRequest.operation} by ${pendingRequest.initiator}` : ""}`,
  };
}

async function lookAndTell(
  session: Session,
  progress: Progress,
  view: LiveView,
  columns: readonly Column<Progress>[],
): Promise<void> {
  const before = JSON.stringify(progress);
  await look(session, progress);
  if (JSON.stringify(progress) === before) return;
  if (isForPeople(session)) await view.change((style) => renderChange({ columns, json: toJson }, progress, style));
}

async function summarise(
  session: Session,
  ended: {
    all: readonly Progress[];
    columns: readonly Column<Progress>[];
    tookMs: number;
    timeoutMs: number | undefined;
  },
): Promise<number> {
  const { terminal } = session;
  const style = session.style();
  const completed = ended.all.filter(({ outcome }) => outcome === "completed");
  const pending = ended.all.filter(({ outcome }) => outcome === "");
  if (!isForPeople(session))
    terminal.stdout.write(await renderList({ items: ended.all, columns: ended.columns, json: toJson }, style));
  else
    printLine(
      terminal.stdout,
      `${completed.length} of ${ended.all.length} completed after ${describeDuration(ended.tookMs)}.`,
    );
  if (pending.length > 0) {
    throw new CliError(
      EXIT.unavailable,
      `timed out after ${describeDuration(ended.timeoutMs ?? ended.tookMs)}; still pending: ${pending.map(({ id }) => id).join(", ")}`,
      "the request goes on; `millwright power-shelf show ID` shows it",
    );
  }
  return completed.length === ended.all.length ? EXIT.ok : EXIT.operationFailed;
}
