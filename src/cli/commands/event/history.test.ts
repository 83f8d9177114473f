import type { MessageInitShape } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import type { EventSchema } from "../../../../contract/millwright/v1/event_pb.js";
import { HistoryService, type ListHistoryRequest } from "../../../../contract/millwright/v1/history_pb.js";
import { createFakeShelves } from "../../../../test/support/cli/fake-shelves.ts";
import { createFakeTerminal, runAgainst } from "../../../../test/support/cli/fake-terminal.ts";

/** A journal of `count` entries; the server's pages hold two at most. */
function journal(count: number) {
  const asked: ListHistoryRequest[] = [];
  const run = (line: string) =>
    runAgainst(
      (router) =>
        router.service(HistoryService, {
          listHistory: (request) => {
            asked.push(request);
            const from = Number(request.pageToken || "0");
            const to = Math.min(count, from + Math.min(2, request.pageSize));
            const newestFirst = Array.from({ length: to - from }, (_, at) => count - from - at);
            const events = newestFirst.map((version) => ({
              version: BigInt(version),
              type: "transition",
              fromState: "ready",
              toState: "maintenance",
              actor: "kim",
              reason: `why ${version}`,
            }));
            return { events, nextPageToken: to < count ? String(to) : "" };
          },
        }),
      line,
    );
  return { asked, run };
}
const versions = (out: string) => (JSON.parse(out) as { version: string }[]).map(({ version }) => Number(version));

describe("history", () => {
  test("is read page after page and shown with the newest last", async () => {
    const { run, asked } = journal(5);
    expect(versions((await run("ps history a -o json")).out)).toEqual([1, 2, 3, 4, 5]);
    expect(asked[0]).toMatchObject({ kind: "power_shelf", id: "a", newestFirst: true });
  });

  test("of any kind is the same", async () => {
    const { run, asked } = journal(1);
    await run("history power-shelf a --type transition requested");
    expect(asked[0]).toMatchObject({ kind: "power_shelf", id: "a", types: ["transition", "requested"] });
  });

  test("can be limited to the newest, and says that there is more", async () => {
    const { run } = journal(5);
    expect(versions((await run("ps history a --limit 3 -o json")).out)).toEqual([3, 4, 5]);
    expect((await run("ps history a -n 3")).err).toContain("Older entries exist");
  });

  test("tells who, what and why", async () => {
    const { out } = await journal(1).run("ps history a");
    expect(out).toMatch(/transition +ready → maintenance +kim +why 1/);
  });

  test("of an unknown type is refused with the words that are known", async () => {
    const { asked, run } = journal(1);
    const { code, err } = await run("ps history a --type transitions");
    expect({ code, asked }).toEqual({ code: 2, asked: [] });
    expect(err).toContain("Allowed choices are created, transition, deleted");
  });

  test("of what never was ends with 3", async () => {
    const { code, err } = await journal(0).run("ps history nothing");
    expect(code).toBe(3);
    expect(err).toContain("power_shelf nothing has no history");
  });

  test("tells what retention has removed, and that an empty list is no thing that never was", async () => {
    const removed = { removedEntries: 12n, removedUntil: { seconds: 1_700_000_000n, nanos: 0 } };
    const show = (events: MessageInitShape<typeof EventSchema>[], line: string) =>
      runAgainst((router) => router.service(HistoryService, { listHistory: () => ({ events, ...removed }) }), line);
    const { code, out, err } = await show([{ type: "transition" }], "ps history a -o json");
    expect({ code, events: JSON.parse(out) }).toMatchObject({ code: 0, events: [{ type: "transition" }] });
    expect(err).toMatch(/^12 entries were removed after the retention time .*; the newest of them was of 2023-11-1\d /);
    expect((await show([], "ps history a")).code).toBe(0);
    expect((await show([], "ps history a")).err).toContain("12 entries were removed");
  });

  test.each(["0", "-1", "many", "1.5"])("--limit %s is refused", async (limit) => {
    const { asked, run } = journal(1);
    expect((await run(`ps history a --limit ${limit}`)).code).toBe(2);
    expect(asked).toEqual([]);
  });
});

describe("what an event says", () => {
  const request = { id: "r", operation: "power_off", initiator: "kim (https://tracker/1)" };
  const why = async (event: MessageInitShape<typeof EventSchema>) => {
    const { out } = await runAgainst(
      (router) => router.service(HistoryService, { listHistory: () => ({ events: [event] }) }),
      "history machine a",
    );
    return out.split("\n")[1] ?? "";
  };

  test.each([
    ["power on → off", { facts: { powerState: "off" }, was: { powerState: "on" } }],
    ["health warning", { facts: { health: "warning" } }],
    ["capacity 10 W → 20 W", { facts: { capacityWatts: 20 }, was: { capacityWatts: 10 } }],
    [
      "PSU 1 on → off, PSU 1 health ok → critical, PSU 2 gone",
      {
        facts: { powerSupplies: [{ name: "PSU 1", on: false, health: "critical" }] },
        was: {
          powerSupplies: [
            { name: "PSU 1", on: true, health: "ok" },
            { name: "PSU 2", on: true, health: "ok" },
          ],
        },
      },
    ],
    [
      "certificate 0123456789ab… → unknown",
      { facts: { certificateFingerprint: null }, was: { certificateFingerprint: "0123456789abcdef".repeat(4) } },
    ],
    ["node n1 is to be cordoned", { facts: { cordoned: { cluster: "c1", node: "n1" } } }],
    ["it is in cluster c2", { facts: { joinedCluster: "c2" }, was: { joinedCluster: "c1" } }],
    [
      "power off, it is no longer in cluster c1",
      { facts: { powerState: "off", joinedCluster: null }, was: { joinedCluster: "c1" } },
    ],
    ["power off", { facts: { powerState: "off", joinedCluster: null }, was: { joinedCluster: null } }],
    ["power on", { facts: { powerState: "on", sshMoved: null, bootId: null } }],
    ["SSH answers at 10.0.0.9:22", { facts: { sshMoved: { from: "10.0.0.1:22", to: "10.0.0.9:22" } } }],
    ["SSH answers where its owner says", { facts: { sshMoved: null }, was: { sshMoved: { from: "a", to: "b" } } }],
    ["left behind: media; a lit locator", { facts: { residue: ["media", "a lit locator"] }, was: { residue: [] } }],
    [
      "reboot: 1 failed so far",
      {
        facts: { steps: [{ name: "reboot", state: "RUNNING", retryCount: 1, nextAttemptAt: "2026-01-01T00:00:00Z" }] },
        was: { steps: [{ name: "reboot", state: "RUNNING", retryCount: 0, actingBy: "r1" }] },
      },
    ],
    ["reboot RUNNING", { facts: { steps: [{ name: "reboot", state: "RUNNING", retryCount: 0 }] }, was: { steps: [] } }],
    ["nothing of ours is left cordoned", { facts: { cordoned: null }, was: { cordoned: { cluster: "c1", node: "" } } }],
    ["-", { facts: { cordoned: { cluster: "c1", node: "" } } }],
    ["its locator may be lit", { facts: { locatorLit: true } }],
    ["its locator is out", { facts: { locatorLit: false }, was: { locatorLit: true } }],
    ["its node is in use again", { facts: { cordoned: null }, was: { cordoned: { cluster: "c1", node: "n1" } } }],
  ])("of changed facts: %s", async (text, data) => {
    expect(await why({ type: "facts_changed", data })).toMatch(new RegExp(`facts_changed +- +- +${escaped(text)}$`));
  });

  test("of conditions: which of them, and why", async () => {
    const conditions = [
      { type: "Reachable", status: false, reason: "NoAnswer" },
      { type: "Drained", status: true, reason: "NodeDrained" },
    ];
    const said = await why({ type: "conditions_changed", data: { conditions } });
    expect(said).toMatch(/Reachable no \(NoAnswer\), Drained yes \(NodeDrained\)$/);
  });

  test.each([
    [
      "power_off for kim (https://tracker/1)",
      "maintenance",
      { state: { request }, trigger: "maintenance_requested", state_version: 4 },
    ],
    [
      "power_off for kim (https://tracker/1): completed",
      "ready",
      { ended: [{ request, outcome: "completed", message: null }] },
    ],
    [
      "power_off for kim (https://tracker/1): failed: BMC refused",
      "error",
      { ended: [{ request, outcome: "failed", message: "BMC refused" }] },
    ],
    ["data fetched", "configuring", { trigger: "data_fetched", state: {}, state_version: 3 }],
  ])("of a transition: %s", async (text, toState, data) => {
    const reason = "trigger" in data ? data.trigger : "operation_completed";
    const line = await why({ type: "transition", fromState: "fetching_data", toState, reason, data });
    expect(line).toMatch(new RegExp(`fetching_data → ${toState} +- +${escaped(text)}$`));
  });

  test("of requests: whose they are and what became of them", async () => {
    expect(await why({ type: "requested", data: request })).toContain("power_off for kim (https://tracker/1)");
    expect(await why({ type: "request_ended", data: { ...request, outcome: "withdrawn" } })).toContain(
      "(https://tracker/1): withdrawn",
    );
  });
});

const escaped = (text: string) => text.replace(/[()[\]./]/g, "\\$&");

describe("watch", () => {
  test.each(["table", "csv"])("has a head and the cursor of each event as %s", async (format) => {
    const fake = createFakeShelves();
    const running = runAgainst(fake.routes, `watch --from oldest -n 1 -o ${format}`);
    fake.emit({ kind: "power_shelf", id: "a", type: "transition" });
    const [head = "", row = ""] = (await running).out.toLowerCase().split("\n");
    const cells = (line: string) => line.split(format === "csv" ? "," : /\s{2,}/);
    expect(cells(row)[cells(head).indexOf("cursor")]).toBe("1");
  });

  test("prints one line an event and ends after --limit", async () => {
    const fake = createFakeShelves();
    const terminal = createFakeTerminal();
    const running = runAgainst(fake.routes, "watch power-shelf a --from oldest --type transition -n 2 -o json", {
      terminal,
    });
    fake.emit({ kind: "power_shelf", id: "a", type: "transition", toState: "ready" });
    await terminal.printed('"ready"');
    fake.emit({ kind: "power_shelf", id: "a", type: "transition", toState: "error" });
    const { code, out } = await running;
    expect(code).toBe(0);
    expect(
      out
        .trim()
        .split("\n")
        .map((line) => (JSON.parse(line) as { to_state: string }).to_state),
    ).toEqual(["ready", "error"]);
    expect(fake.watches[0]).toMatchObject({
      kinds: ["power_shelf"],
      ids: ["a"],
      types: ["transition"],
      fromNow: false,
      fromCursor: "",
    });
  });

  test("begins now, or after a cursor", async () => {
    for (const [line, expected] of [
      ["watch -n 1", { kinds: [], fromNow: true, fromCursor: "" }],
      ["watch -n 1 --from 2", { fromNow: false, fromCursor: "2" }],
    ] as const) {
      const fake = createFakeShelves();
      fake.emit({ type: "old" });
      fake.emit({ type: "old" });
      const terminal = createFakeTerminal();
      const running = runAgainst(fake.routes, line, { terminal });
      await expect.poll(() => fake.watches.length, { timeout: 9_000 }).toBe(1);
      // Emitted until seen: the stream may open a moment after it was asked for.
      const feeding = setInterval(() => fake.emit({ type: "new" }), 5);
      const { out } = await running;
      clearInterval(feeding);
      expect(fake.watches[0]).toMatchObject(expected);
      expect(out).toContain("new");
      expect(out).not.toContain("old");
    }
  });

  test("loses nothing and repeats nothing when the connection breaks", async () => {
    const fake = createFakeShelves();
    const terminal = createFakeTerminal();
    const running = runAgainst(fake.routes, "watch --from oldest -n 3 -o csv", { terminal });
    fake.emit({ type: "first" });
    await terminal.printed("first");
    fake.breakStreams();
    fake.emit({ type: "second" });
    fake.emit({ type: "third" });
    const { out } = await running;
    expect(out.match(/first|second|third/g)).toEqual(["first", "second", "third"]);
  });

  test("ends with 130 when interrupted", async () => {
    const fake = createFakeShelves();
    const terminal = createFakeTerminal();
    const running = runAgainst(fake.routes, "watch --from oldest", { terminal });
    fake.emit({ type: "first" });
    await terminal.printed("first");
    terminal.interrupt();
    expect((await running).code).toBe(130);
  });
});
