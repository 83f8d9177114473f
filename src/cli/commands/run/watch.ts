import { Run_Phase } from "../../../../contract/baremetal/v1/baremetal_pb.js";
import { RunService, type WatchRunsResponse } from "../../../../contract/millwright/v1/run_pb.js";
import { EXIT, UsageError } from "../../client/errors.ts";
import { followEvents } from "../../client/events.ts";
import { reconnecting } from "../../client/reconnecting.ts";
import type { Session } from "../../client/session.ts";
import { createLiveView } from "../../terminal/live-view.ts";
import { type Column, renderChange, renderHead, renderList, renderOne, type Style } from "../../terminal/output.ts";
import { toDate } from "../../terminal/times.ts";
import { filterOf, type RunChoice } from "./list.ts";
import { readRun, runJson, type ShownRun } from "./record.ts";
import { runColumns, runThing } from "./view.ts";

/** One run with all that it has started, until it has ended; or all that are active. */
export async function watchRuns(
  session: Session,
  id: string | undefined,
  choice: RunChoice,
): Promise<number | undefined> {
  if (id === undefined) return watchActive(session, choice);
  if (Object.keys(choice).length > 0)
    throw new UsageError("run watch takes a run, or options that choose runs, not both");
  return watchOne(session, id);
}

const isActive = ({ run }: ShownRun): boolean => run.phase <= Run_Phase.RUNNING;

/** The exit code says how it ended. */
async function watchOne(session: Session, id: string): Promise<number | undefined> {
  // Read again for each drawing: what its children do is no event of its own.
  const view = createLiveView(session, async (style) =>
    renderOne(await runThing(await readRun(session, id), style), style),
  );
  for await (const followed of followEvents(session, { kinds: ["run"], ids: [id], from: "now" }, session.signal)) {
    const shown = await readRun(session, id);
    if (followed.type === "ready") await view.start();
    else await view.change((style) => renderChange({ columns: runColumns(style, true), json: runJson }, shown, style));
    if (isActive(shown)) continue;
    await view.stop();
    return shown.run.phase === Run_Phase.SUCCEEDED ? EXIT.ok : EXIT.operationFailed;
  }
  await view.stop();
  return EXIT.interrupted;
}

/** Ids of runs and words of phases have these lengths: lines that come later then stand below those that came before. */
const LEAST: { readonly [title: string]: number } = { RUN: 40, TARGET: 16, PHASE: 9, STEP: 12, CREATED: 19 };
const streamColumns = (style: Style, choice: RunChoice): readonly Column<ShownRun>[] =>
  runColumns(style, choice.children).map((column) => {
    const least = LEAST[column.title];
    return least === undefined ? column : { ...column, least };
  });

/** Runs that have ended meanwhile stay below those that are active: that is what somebody waits for. */
async function watchActive(session: Session, choice: RunChoice): Promise<number> {
  const runs = new Map<string, ShownRun>();
  const view = createLiveView(session, async (style) => {
    // Elsewhere than on a terminal nothing is drawn again: there the head stands above the lines that follow.
    if (style.format === "json") return "[]";
    if (style.format !== "table" || !session.terminal.stdout.isTTY)
      return renderHead(streamColumns(style, choice), style);
    const items = [...runs.values()].sort(activeFirst);
    if (items.length === 0) return "No active runs.\n";
    return renderList({ items, columns: runColumns(style, choice.children), json: runJson }, style);
  });
  await view.start();
  for await (const shown of followRuns(session, choice)) {
    runs.set(shown.run.runId, shown);
    await view.change((style) => renderChange({ columns: streamColumns(style, choice), json: runJson }, shown, style));
  }
  await view.stop();
  return EXIT.interrupted;
}

const createdAt = ({ run }: ShownRun): number => (run.createdAt ? toDate(run.createdAt).getTime() : 0);
const activeFirst = (one: ShownRun, other: ShownRun): number =>
  Number(isActive(other)) - Number(isActive(one)) || createdAt(other) - createdAt(one);

/** Those that are active now, then each change, for as long as the reader wants them. */
async function* followRuns(session: Session, choice: RunChoice): AsyncGenerator<ShownRun> {
  const client = await session.client(RunService, { streaming: true });
  const { signal } = session;
  const filter = filterOf(choice);
  let cursor = "";
  const open = () => client.watchRuns({ filter, cursor, children: choice.children ?? false }, { signal });
  for await (const told of reconnecting(session, open, signal)) {
    cursor = told.event?.cursor ?? cursor;
    yield* shownIn(told);
  }
}

function shownIn({ event, target, parent, stepDetails }: WatchRunsResponse): ShownRun[] {
  const run = event?.snapshot;
  if (!run) return [];
  return [{ run, target: target ?? { kind: "machine", id: run.machineId }, parent, children: [], stepDetails }];
}
