import { timestampDate, timestampFromDate } from "@bufbuild/protobuf/wkt";
import { Code, createClient } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { HistoryService } from "../../../contract/millwright/v1/history_pb.js";
import { runCli } from "../../../src/cli/run-cli.ts";
import { listEvents } from "../../../src/store/lifecycle/journal-pages.ts";
import { cursorAtTime } from "../../../src/store/lifecycle/journal-times.ts";
import { createFakeTerminal } from "../../support/cli/fake-terminal.ts";
import { plansOf } from "../../support/query-plans.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";
import { refusal } from "../api/forge-under-test.ts";
import { type MachinesUnderTest, startMachines } from "../machines/machines-under-test.ts";

/** An hour of a journal, in two epochs, one event a second: machines m-0 to m-9 in turn, a rack now and then, and one rare actor. */
const EVENTS = 3_600;
const BEGAN = new Date("2026-01-01T12:00:00.000Z");
const moment = (seconds: number) => new Date(BEGAN.getTime() + seconds * 1_000);
const time = (seconds: number) => timestampFromDate(moment(seconds));

let site: MachinesUnderTest;
beforeAll(async () => {
  site = await startMachines();
  await site.db.execute("truncate journal");
  await site.db.execute("update journal_epoch set epoch = 3");
  await site.db.execute(
    `insert into journal (epoch, xid, at, kind, id, version, type, actor, data)
     select case when i < 1000 then 1 else 2 end, (1000 + (i % 1000) + i / 1000 * 5)::text::xid8, $1::timestamptz + i * interval '1 second',
            case when i % 60 = 0 then 'rack' else 'machine' end, case when i % 60 = 0 then 'r-1' else 'm-' || i % 10 end, i + 1,
            case when i % 2 = 0 then 'facts_changed' else 'waiting' end, case when i = 7 then 'kim' else 'controller' end, '{}'
       from generate_series(0, ${EVENTS - 1}) as i where i < 2000`,
    [BEGAN],
  );
  // The second epoch goes on with greater transaction ids.
  await site.db.execute(
    `insert into journal (epoch, xid, at, kind, id, version, type, actor, data)
     select 2, (100000 + i)::text::xid8, $1::timestamptz + i * interval '1 second', case when i % 60 = 0 then 'rack' else 'machine' end,
            case when i % 60 = 0 then 'r-1' else 'm-' || i % 10 end, i + 1, case when i % 2 = 0 then 'facts_changed' else 'waiting' end, 'controller', '{}'
       from generate_series(2000, ${EVENTS - 1}) as i`,
    [BEGAN],
  );
});
afterAll(() => site.close());

const client = () => createClient(HistoryService, site.api.grpc());
type Query = Parameters<ReturnType<typeof client>["listEvents"]>[0];
/** The versions, which count the seconds from 1 on. */
async function listed(query: Query, pageSize = 700): Promise<number[]> {
  const seen: number[] = [];
  let pageToken = "";
  do {
    const page = await client().listEvents({ ...query, pageSize, pageToken });
    expect(page.events.length).toBeLessThanOrEqual(pageSize);
    seen.push(...page.events.map(({ version }) => Number(version)));
    pageToken = page.nextPageToken;
  } while (pageToken !== "");
  return seen;
}
const range = (from: number, to: number) => Array.from({ length: to - from }, (_, at) => from + at + 1);

test("events come the newest first, every one once, whatever the size of the pages", async () => {
  expect(await listed({})).toEqual(range(0, EVENTS).reverse());
  expect(await listed({ oldestFirst: true }, 1_000)).toEqual(range(0, EVENTS));
});

test.each([
  ["since", { since: time(3_500) }, range(3_500, 3_600)],
  ["until", { until: time(100) }, range(0, 100)],
  ["between, across two epochs", { since: time(950), until: time(1_050) }, range(950, 1_050)],
  ["of a time before all", { until: time(-1) }, []],
  ["of a time after all", { since: time(4_000) }, []],
  ["of a kind", { kinds: ["rack"] }, range(0, EVENTS).filter((version) => (version - 1) % 60 === 0)],
  ["of an actor", { actors: ["kim"] }, [8]],
  ["of a type, in a time", { types: ["waiting"], since: time(0), until: time(10) }, [2, 4, 6, 8, 10]],
  [
    "of several things",
    {
      things: [
        { kind: "rack", id: "r-1" },
        { kind: "machine", id: "m-7" },
        { kind: "machine", id: "m-7" },
      ],
    },
    range(0, EVENTS).filter((version) => (version - 1) % 60 === 0 || (version - 1) % 10 === 7),
  ],
  [
    "of a thing in a time",
    { things: [{ kind: "machine", id: "m-7" }], since: time(1_000), until: time(1_020) },
    [1_008, 1_018],
  ],
] as const)("events %s", async (_, query, versions) => {
  expect(await listed(query as Query, 50)).toEqual(versions.toReversed());
  expect(await listed({ ...(query as object), oldestFirst: true }, 50)).toEqual(versions);
});

test("a filter that hardly anything satisfies is looked for a part at a time, and ends", async () => {
  await site.db.execute(
    `insert into journal (epoch, xid, at, kind, id, version, type, actor, data)
     select 2, (200000 + i)::text::xid8, $1::timestamptz + interval '2 hours' + i * interval '1 ms', 'switch', 's-1', i, 'facts_changed', 'controller', '{}'
       from generate_series(1, 45000) as i`,
    [BEGAN],
  );
  const first = await client().listEvents({ actors: ["kim"], pageSize: 10 });
  expect(first).toMatchObject({ events: [], nextPageToken: expect.stringMatching(/./), searchedTo: expect.anything() });
  expect(await listed({ actors: ["kim"] }, 10)).toEqual([8]);
  const plan = await plansOf(site.db, (db) =>
    listEvents(db, {
      things: [],
      kinds: ["rack"],
      types: [],
      actors: [],
      since: null,
      until: null,
      oldestFirst: false,
      from: null,
      to: null,
      limit: 101,
    }),
  );
  expect(plan).not.toMatch(/Seq Scan on journal j/);
  expect(plan).not.toMatch(/Sort/);
});

test("a cursor of a moment begins with what happened then", async () => {
  for (const seconds of [0, 1, 999, 1_000, 1_001, 1_999, 2_000, 3_599]) {
    const { cursor } = await client().getEventCursor({ at: time(seconds) });
    const { events } = await client().listEvents({ fromCursor: cursor, oldestFirst: true, pageSize: 1 });
    expect(
      events.map(({ at }) => at && timestampDate(at)),
      String(seconds),
    ).toEqual([moment(seconds)]);
  }
  const plan = await plansOf(site.db, (db) => cursorAtTime(db, moment(5)));
  expect(plan).not.toMatch(/Seq Scan|Sort/);
});

test("events are counted in equal parts of a time", async () => {
  const all = await client().countEvents({ since: time(0), until: time(3_600), buckets: 6 });
  expect(all.estimated).toBe(false);
  expect(all.buckets.map(({ events }) => Number(events))).toEqual([600, 600, 600, 600, 600, 600]);
  const racks = await client().countEvents({ since: time(0), until: time(120), buckets: 4, kinds: ["rack"] });
  expect(racks.buckets.map(({ events }) => Number(events))).toEqual([1, 0, 1, 0]);
});

test.each([
  [{ things: [{ kind: "toaster", id: "t" }] }, "things.kind"],
  [{ things: [{ kind: "machine", id: "" }] }, "things.id"],
  [{ things: Array.from({ length: 101 }, (_, at) => ({ kind: "machine", id: `m-${at}` })) }, "things"],
  [{ kinds: ["toaster"] }, "kinds"],
  [{ since: time(2), until: time(1) }, "since"],
  [{ fromCursor: "abc" }, "from_cursor"],
  [{ pageSize: 1_001 }, "page_size"],
  [{ pageToken: "abc" }, "page_token"],
] as const)("a list of events %# is refused", async (query, field) => {
  expect(await refusal(client().listEvents(query as Query))).toMatchObject({ code: Code.InvalidArgument, field });
});

test.each([
  [{}, "since"],
  [{ since: time(2), until: time(1) }, "since"],
  [{ since: time(0), buckets: 121 }, "buckets"],
  [{ since: time(0), kinds: ["toaster"] }, "kinds"],
] as const)("a count of events %# is refused", async (query, field) => {
  expect(await refusal(client().countEvents(query as object))).toMatchObject({ code: Code.InvalidArgument, field });
});

test("the command line shows them, the newest last", async () => {
  const terminal = createFakeTerminal({ now: moment(3_600) });
  const line = ["events", "rack/r-1", "--since", "1h", "-n", "2"];
  expect(await runCli(line, { version: "1", terminal, transport: site.api.grpc() })).toBe(0);
  expect(terminal.out().match(/r-1/g)).toHaveLength(2);
  expect(terminal.err()).toContain("Older events exist");
  const wrong = createFakeTerminal();
  expect(await runCli(["events", "r-1"], { version: "1", terminal: wrong, transport: site.api.grpc() })).toBe(2);
});
