import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { Run_Phase } from "../../../contract/baremetal/v1/baremetal_pb.js";
import { HistoryService } from "../../../contract/millwright/v1/history_pb.js";
import { WatchService } from "../../../contract/millwright/v1/watch_pb.js";
import { runCli } from "../../../src/cli/run-cli.ts";
import { ALARM_SQL, alarmOf, FAILED_STATES } from "../../../src/store/lifecycle/alarms.ts";
import { type JournalRow, OLDEST_CURSOR, readAfter } from "../../../src/store/lifecycle/journal.ts";
import { storeOf } from "../../../src/store/lifecycle/things.ts";
import { createFakeTerminal } from "../../support/cli/fake-terminal.ts";
import { type RunSurface, startRunSurface } from "../../support/run-bench.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";

/** A server on which a machine fails to reboot, and another does not. */
let surface: RunSurface;
let failedRun: string;
const before = new Date(Date.now() - 60_000);
beforeAll(async () => {
  surface = await startRunSurface({ controller: true, fake: { speed: "instant", failures: ["reboot"] } });
  for (const id of ["m-bad", "m-good"]) await surface.addMachine(id, "fake");
  const { runId } = await surface.runs.startRun({ requestId: "r", machineId: "m-bad", type: "REBOOT" });
  expect((await surface.ended(runId)).phase).toBe(Run_Phase.FAILED);
  failedRun = runId;
});
afterAll(() => surface.close());

const history = () => surface.client(HistoryService);
async function cli(...args: string[]) {
  const terminal = createFakeTerminal({ now: new Date() });
  const code = await runCli(args, { version: "1", terminal, transport: surface.transport });
  return { code, out: terminal.out(), err: terminal.err() };
}

test("failures and calls for a person are types of events that watch and history find", async () => {
  for (const [type, kind, id] of [
    ["failed", "run", failedRun],
    ["needs_intervention", "machine", "m-bad"],
  ] as const) {
    const { events } = await history().listHistory({ kind, id, types: [type] });
    expect(events.map(({ alarm }) => alarm)).toEqual([type]);
    const stop = new AbortController();
    const found: string[] = [];
    for await (const { message } of surface.client(WatchService).watch({ types: [type] }, { signal: stop.signal })) {
      if (message.case !== "event") continue;
      found.push(`${message.value.kind} ${message.value.id} ${message.value.alarm}`);
      break;
    }
    stop.abort();
    expect(found).toEqual([`${kind} ${id} ${type}`]);
  }
  const { out } = await cli("watch", "--from", "oldest", "--type", "failed", "-n", "1");
  expect(out).toMatch(new RegExp(`run +${failedRun} +failed`));
});

test("a watch that is open hears of a failure when it happens", async () => {
  await surface.addMachine("m-next", "fake");
  const stop = new AbortController();
  const heard: string[] = [];
  const watching = (async () => {
    const messages = surface.client(WatchService).watch({ types: ["failed"], fromNow: true }, { signal: stop.signal });
    for await (const { message } of messages) {
      if (message.case === "bookmark" && heard.length === 0) {
        heard.push("ready");
        await surface.runs.startRun({ requestId: "next", machineId: "m-next", type: "REBOOT" });
      }
      if (message.case !== "event") continue;
      heard.push(message.value.alarm);
      return;
    }
  })();
  await watching;
  stop.abort();
  expect(heard).toEqual(["ready", "failed"]);
});

test("the report has what broke, who is still needed and who did what, and its exit code tells", async () => {
  const report = await history().getReport({ since: timestampFromDate(before) });
  expect(report.failures.map(({ id }) => id)).toContain(failedRun);
  expect(report.interventions.map(({ id }) => id)).toContain("m-bad");
  expect(report.openMachineIds).toContain("m-bad");
  expect(report.openMachineIds).not.toContain("m-good");
  expect(report.doings).toContainEqual(expect.objectContaining({ actor: "tester", kind: "machine", what: "created" }));
  expect(report.cut).toBe(false);
  const { code, out } = await cli("report", "--since", "1h");
  expect(code).toBe(1);
  expect(out).toContain(failedRun);
  expect(out).toMatch(/Still need intervention:.*m-bad/);
  expect(out).toMatch(/tester +created +machine/);
  expect(JSON.parse((await cli("report", "--since", "1h", "-o", "json")).out)).toMatchObject({
    failures: expect.arrayContaining([expect.objectContaining({ id: failedRun, alarm: "failed" })]),
  });
  expect((await cli("report", "--since", "yesterday")).code).toBe(2);
});

test("a machine that somebody saw to is not open any more; a quiet time has exit code 0; a time to come is refused", async () => {
  await surface.lifecycle.exitMaintenance({ machineId: "m-bad", acknowledge: true, comment: "fan replaced" });
  const { openMachineIds } = await history().getReport({ since: timestampFromDate(before) });
  expect(openMachineIds).not.toContain("m-bad");
  await surface.db.execute("update journal set at = at - interval '2 hours'");
  expect(await cli("report", "--since", "1h")).toMatchObject({ code: 0, out: expect.stringMatching(/Failures: +0/) });
  for (const since of [undefined, timestampFromDate(new Date(Date.now() + 60_000))]) {
    const refused = await history()
      .getReport(since ? { since } : {})
      .catch((error: unknown) => ConnectError.from(error));
    expect(refused).toMatchObject({ code: Code.InvalidArgument });
  }
});

test("what counts as an alarm is the same in the database and outside; its states are states of their kinds", async () => {
  const rows: (JournalRow & { alarm?: string | null })[] = await readAfter(surface.db, OLDEST_CURSOR, 10_000);
  const judged = await surface.db.query<{ cursor: string; alarm: string | null }>(
    `select j.epoch || '.' || j.xid::text || '.' || j.seq as cursor, ${ALARM_SQL} as alarm from journal j`,
  );
  const inSql = new Map(judged.map(({ cursor, alarm }) => [cursor, alarm]));
  expect(rows.length).toBeGreaterThan(5);
  expect(rows.map((row) => [row.cursor, alarmOf(row)])).toEqual(rows.map(({ cursor }) => [cursor, inSql.get(cursor)]));
  for (const [kind, state] of Object.entries(FAILED_STATES))
    expect(Object.keys(storeOf(surface.deps.stores, kind).lifecycle.states)).toContain(state);
});
