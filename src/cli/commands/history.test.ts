import { describe, expect, test } from "vitest";
import { HistoryService, type ListHistoryRequest } from "../../../contract/millwright/v1/history_pb.js";
import { createFakeShelves } from "../testing/fake-shelves.ts";
import { createFakeTerminal, runAgainst } from "../testing/fake-terminal.ts";

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

  test("of what never was ends with 3", async () => {
    const { code, err } = await journal(0).run("ps history nothing");
    expect(code).toBe(3);
    expect(err).toContain("power_shelf nothing has no history");
  });

  test.each(["0", "-1", "many", "1.5"])("--limit %s is refused", async (limit) => {
    const { asked, run } = journal(1);
    expect((await run(`ps history a --limit ${limit}`)).code).toBe(2);
    expect(asked).toEqual([]);
  });
});

describe("watch", () => {
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
      await expect.poll(() => fake.watches.length).toBe(1);
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
