import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { type DevSite, startDevSite } from "../support/dev-site.ts";
import { eventually } from "../support/eventually.ts";
import { ROOT, type StartedProcess } from "../support/processes/process-bench.ts";
import { afterAll, beforeAll } from "../support/second-try.ts";

/** `bin/millwright` as people run it, against a `dev` that it finds by its data directory. */
let site: DevSite;
beforeAll(async () => {
  site = await startDevSite();
});
afterAll(() => site.close());

const start = (args: readonly string[], emptyEnvironment = false): StartedProcess =>
  site.bench.start({
    command: join(ROOT, "bin", "millwright"),
    args: ["--data-dir", site.server.dataDir, ...args],
    emptyEnvironment,
  });

async function run(...args: string[]): Promise<{ code: number | null; stdout: string; stderr: string }> {
  const started = start(args);
  const { code } = await started.exited;
  return { code, stdout: started.stdout(), stderr: started.stderr() };
}

async function json<T>(...args: string[]): Promise<T> {
  const { code, stdout, stderr } = await run(...args, "-o", "json");
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  return JSON.parse(stdout) as T;
}

interface Shelf {
  readonly id: string;
  readonly state: string;
  readonly power_state: string;
}

const nth = (index: number) => site.shelfIds[index] ?? "";

describe("what the README shows", () => {
  test("`power-shelf list` has every shelf, for people and for programs", async () => {
    const table = await run("power-shelf", "list");
    expect(table.code).toBe(0);
    for (const id of site.shelfIds) expect(table.stdout).toContain(id);
    const shelves = await json<Shelf[]>("ps", "list");
    expect(shelves.map(({ id }) => id).sort()).toEqual([...site.shelfIds].sort());
  });

  test("`maintenance power-off --wait` comes back when the shelves are off, and `show` and `history` say why", async () => {
    const ids = [nth(0), nth(1)];
    const reference = "https://tracker/MAINT-123";
    const flags = ["--power-shelf-id", ...ids, "--reference", reference, "--wait", "--timeout", "60s"];
    const done = await run("power-shelf", "maintenance", "power-off", ...flags);
    expect(done, done.stderr).toMatchObject({ code: 0 });
    for (const id of ids) {
      const shown = await run("power-shelf", "show", id);
      expect(shown.code).toBe(0);
      expect(shown.stdout).toMatch(/ready/);
      expect(shown.stdout).toMatch(/off/);
      expect(shown.stdout).toContain(`dev (${reference})`);
      const history = await run("power-shelf", "history", id);
      expect(history.code).toBe(0);
      expect(history.stdout).toMatch(/requested/);
      expect(history.stdout).toMatch(/maintenance/);
    }
    const off = (await json<Shelf[]>("ps", "list", "--power-state", "off")).map(({ id }) => id);
    expect(off.sort()).toEqual([...ids].sort());
  });

  test("it needs no environment at all", async () => {
    const started = start(["power-shelf", "list"], true);
    expect(await started.exited, started.transcript()).toEqual({ code: 0, signal: null });
    expect(started.stdout()).toContain(nth(0));
  });
});

/** Until the server has so many streams open. */
const untilWatchers = (count: number, watching?: StartedProcess) =>
  eventually(
    async () => (await site.server.get("/metrics", site.token)).text.includes(`\nmillwright_watchers ${count}\n`),
    { what: `${count} streams are open`, seen: () => watching?.transcript() ?? "" },
  );

test("`watch` prints events as they happen, and ends when enough were seen", async () => {
  const id = nth(2);
  await untilWatchers(0);
  const watching = start(["watch", "power-shelf", id, "--type", "transition", "--limit", "2", "-o", "json"]);
  await untilWatchers(1, watching);
  expect((await run("ps", "fix", "power-off", "--id", id)).code).toBe(0);
  expect(await watching.exited, watching.transcript()).toEqual({ code: 0, signal: null });
  expect(watching.stdout()).toMatch(/maintenance[\s\S]*ready/);
});

test("Ctrl-C ends `watch` with its own code", async () => {
  await untilWatchers(0); // the stream of another test counts until the server has noticed its end
  const watching = start(["watch", "power-shelf", nth(3)]);
  await untilWatchers(1, watching);
  watching.signalGroup("SIGINT");
  expect((await watching.exited).code).toBe(130);
});

describe("exit codes say what went wrong, and one line says why", () => {
  test("1 when the operation failed", async () => {
    const id = nth(4);
    const [row] = await site.database.db.query<{ name: string }>("select name from power_shelves where id = $1", [id]);
    const path = "/redfish/v1/*/Actions/*";
    await site.simulator.call("POST", "/faults", {
      device: row?.name,
      method: "POST",
      path,
      fault: { type: "status", status: 400 },
    });
    const failed = await run("ps", "fix", "power-off", "--id", id, "--wait", "--timeout", "60s");
    expect(failed, `${failed.stdout}${failed.stderr}`).toMatchObject({ code: 1 });
    const shown = await run("ps", "show", id);
    expect(shown.stdout).toMatch(/error/);
  });

  test.each([
    ["2 for a wrong word", ["power-shelf", "lsit"], 2, /list/],
    ["2 for a missing option", ["power-shelf", "maintenance", "power-off"], 2, /--power-shelf-id/],
    ["2 for a malformed id", ["ps", "fix", "power-off", "--id", "No/Id"], 2, /power_shelf_ids/],
    ["3 for a shelf that is not there", ["ps", "show", "ps-unknown"], 3, /ps-unknown/],
    ["5 for a token of nobody", ["--token", "mw_nobody", "ps", "list"], 5, /token/],
    ["6 for no server", ["--server", "http://127.0.0.1:9", "ps", "list"], 6, /127\.0\.0\.1:9/],
  ])("%s", async (_title, args, code, says) => {
    const failed = await run(...args);
    expect(failed.code, `${failed.stdout}${failed.stderr}`).toBe(code);
    expect(failed.stderr).toMatch(says);
    expect(failed.stdout).toBe("");
    expect(failed.stderr).not.toMatch(/\n\s+at /); // no stack traces for people
  });
});
