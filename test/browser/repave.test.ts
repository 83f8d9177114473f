import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Page, Request } from "playwright-core";
import { describe, expect, test } from "vitest";
import { findBarriers } from "../support/browser/browser.ts";
import { type ConsoleBench, openConsoleBench, whyNoBrowser } from "../support/browser/console-bench.ts";
import { afterAll, beforeAll } from "../support/second-try.ts";

const missing = whyNoBrowser();

describe.skipIf(missing !== undefined)(`runs in a browser${missing ? ` (${missing})` : ""}`, () => {
  let bench: ConsoleBench;
  beforeAll(async () => {
    bench = await openConsoleBench({ MILLWRIGHT_SIM_SPEED: "400" });
  }, 120_000);
  afterAll(() => bench.close());

  test("a repave is started and watched to its end, by keyboard alone", async () => {
    const { page, faults } = await bench.signedIn();
    await page.keyboard.press("Control+k");
    await page.getByRole("dialog").waitFor();
    await page.keyboard.type("m-rack1-07");
    await page
      .getByRole("option", { name: /m-rack1-07/ })
      .first()
      .waitFor();
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "m-rack1-07" }).waitFor();

    await page.getByRole("button", { name: "Run a plan …" }).focus();
    await page.keyboard.press("Enter");
    const plan = page.getByLabel("Plan", { exact: true });
    await plan.focus();
    await page.getByRole("option", { name: /plan\/repave-join/ }).waitFor({ state: "attached" });
    for (let n = 0; n < 50 && (await plan.inputValue()) !== "plan/repave-join"; n += 1)
      await page.keyboard.press("ArrowDown");
    await page.getByText(/steps, .*reboot/).waitFor();
    await page.getByRole("button", { name: "Start the run" }).focus();
    await page.keyboard.press("Enter");

    await page.getByRole("heading", { name: /on m-rack1-07/ }).waitFor();
    await page
      .getByRole("button", { name: /^SUCCEEDED/ })
      .first()
      .waitFor({ timeout: 120_000 });
    const steps = page.getByRole("region", { name: "Steps" }).getByRole("listitem");
    expect(await steps.count()).toBeGreaterThan(3);
    expect(await steps.filter({ hasText: "not begun" }).count()).toBe(0);
    expect(await steps.filter({ hasText: "proved" }).count()).toBe(await steps.count());
    expect(faults).toEqual([]);
  }, 180_000);

  test("a log of a million lines opens at its end, and is searched, gone through and saved whole", async () => {
    const { page, faults } = await bench.signedIn();
    const { runId, step } = await writeLongLog(bench, "m-rack1-07");
    await page.goto(`${bench.server.httpUrl}/runs/${runId}`);
    const log = page.getByRole("log");
    await log.getByText("the end of it all").waitFor();
    const count = page.getByRole("region", { name: "Log" }).getByRole("status");
    expect(await count.textContent()).toMatch(/^the newest [\d,]+ lines$/);
    expect(await log.getByText("the beginning of it all").count()).toBe(0);

    await page.getByLabel("Search the log").fill("OF IT ALL");
    await count.getByText(/^2 lines$/).waitFor();
    await log.getByText("the beginning of it all").waitFor();
    expect(await log.locator("mark").allTextContents()).toEqual(["of it all", "of it all"]);

    await page.getByLabel("Search the log").fill("");
    await count.getByText(/^1,000,\d{3} lines$/).waitFor();
    await page.getByRole("button", { name: step, exact: true }).click();
    await log.getByText(`step ${step} begins`).waitFor();
    expect(await log.locator("[data-target]").textContent()).toContain(`step ${step} begins`);

    const saving = page.waitForEvent("download");
    await page.getByRole("button", { name: "Download" }).click();
    const saved = await readFile(await (await saving).path(), "utf8");
    expect(saved.split("\n").length).toBeGreaterThan(1_000_000);
    expect(saved).toContain("\u001b[32mthe end of it all\u001b[0m");
    expect(faults).toEqual([]);
  }, 180_000);

  test("a plan is written from another, checked by the server, tried on a machine, and started", async () => {
    const { page, faults } = await bench.signedIn();
    await page.goto(`${bench.server.httpUrl}/plans`);
    await page.getByRole("link", { name: "plan/reboot", exact: true }).click();
    await page.getByRole("button", { name: "New plan from it …" }).click();
    await page.getByLabel("Id").fill("my/reboot");
    await page.getByText("The server takes this plan.").waitFor();
    const step = page.getByRole("listitem", { name: "Step 1" });
    await step.getByLabel("Mode").fill("by kicking");
    await page.getByText(/steps\[0\]\.reboot\.mode: must be one of/).waitFor();
    expect(await page.getByRole("button", { name: "Create the plan" }).isDisabled()).toBe(true);
    await step.getByLabel("Mode").fill("bmc");
    await page.getByText("The server takes this plan.").waitFor();
    expect(await findBarriers(page)).toEqual([]);
    await page.getByRole("button", { name: "Create the plan" }).click();

    await page.waitForURL(/\/plans\/my%2Freboot/);
    await page.getByRole("textbox", { name: "Machine" }).fill("m-rack1-12");
    await page.getByRole("button", { name: "Preview", exact: true }).click();
    await page.getByText("1 steps, 1 reboot").waitFor();
    expect(await findBarriers(page)).toEqual([]);
    await page.getByRole("button", { name: "Start on m-rack1-12 …" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Start the run" }).click();
    await page.getByRole("heading", { name: "my/reboot on m-rack1-12" }).waitFor();
    await page
      .getByRole("button", { name: /^SUCCEEDED/ })
      .first()
      .waitFor({ timeout: 120_000 });
    expect(faults).toEqual([]);
  }, 180_000);

  test("a plan is started on the machines that were selected, after what it reaches was shown, and each is followed", async () => {
    const { page, faults } = await bench.signedIn();
    await page.goto(`${bench.server.httpUrl}/machines?filter=machine_id IN (m-rack1-16, m-rack1-17, m-rack1-18)`);
    await page.getByText("3 machines").waitFor();
    for (const id of ["m-rack1-16", "m-rack1-17"]) await page.getByRole("checkbox", { name: `Select ${id}` }).check();
    await page.getByRole("button", { name: "Run a plan on 2 machines …" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByText("m-rack1-16, m-rack1-17").first().waitFor();
    await dialog.getByLabel("Plan", { exact: true }).selectOption("plan/reboot");
    await dialog.getByText("2 of 2 machines reboot").waitFor();
    expect(await findBarriers(page)).toEqual([]);
    await dialog.getByRole("button", { name: "Start on 2 machines" }).click();
    await page
      .getByRole("button", { name: /^SUCCEEDED/ })
      .first()
      .waitFor({ timeout: 120_000 });
    const started = page.getByRole("region", { name: "Runs that it has started" });
    await started.getByRole("link", { name: "machine m-rack1-16" }).waitFor();
    await started.getByRole("link", { name: "machine m-rack1-17" }).waitFor();
    expect(await started.getByRole("link", { name: /^machine / }).count()).toBe(2);
    expect(faults).toEqual([]);
  }, 180_000);

  test("a viewer sees all of it, and no action", async () => {
    const { token } = await bench.server.ask<{ token: string }>(
      "millwright.v1.TokenService/CreateToken",
      { name: "watcher", roles: ["viewer"] },
      bench.token,
    );
    const { page, faults } = await bench.signedIn({ token });
    await page.goto(`${bench.server.httpUrl}/machines/m-rack1-08`);
    await page.getByText("BMCReachable").waitFor();
    await page.getByRole("img", { name: "States of machine and the ways between them" }).waitFor();
    for (const name of [/Run a plan/, /maintenance/, /Retire/, /Power/, /^More$/])
      expect(await page.getByRole("button", { name }).count()).toBe(0);
    expect(faults).toEqual([]);
  });

  test("what an action will do is said first, with the same for a terminal", async () => {
    const { page, faults } = await bench.signedIn();
    await page.goto(`${bench.server.httpUrl}/machines/m-rack1-09`);
    await page.getByRole("button", { name: "Enter maintenance …" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByText(/m-rack1-09: .* → MAINTENANCE/).waitFor();
    expect(await findBarriers(page)).toEqual([]);
    await dialog.getByLabel("Comment").fill("a fan is to be replaced");
    await dialog.getByRole("button", { name: "Enter maintenance", exact: true }).click();
    await page
      .getByRole("button", { name: /^MAINTENANCE/ })
      .first()
      .waitFor();
    await page.getByRole("button", { name: "Exit maintenance …" }).waitFor();
    await page.getByText("a fan is to be replaced").first().waitFor();
    expect(faults).toEqual([]);
  });

  test("a server that hangs greys the page within five seconds, which recovers by itself and has missed nothing", async () => {
    const { page, faults } = await bench.signedIn();
    await page.goto(`${bench.server.httpUrl}/machines?filter=machine_id=m-rack1-10`);
    await page.getByText("1 machine", { exact: true }).waitFor();
    await page.getByText("live", { exact: true }).waitFor();
    bench.server.process.signal("SIGSTOP");
    await page.getByText(/connection to the server is lost/).waitFor({ timeout: 5_000 });
    bench.server.process.signal("SIGCONT");
    await page.getByText(/connection to the server is lost/).waitFor({ state: "detached" });
    const moved = "millwright.v1.MachineLifecycleService/EnterMaintenance";
    await bench.server.ask(moved, { machine_id: "m-rack1-10", comment: "seen live" }, bench.token);
    await page.getByRole("button", { name: /^MAINTENANCE/ }).waitFor();
    expect(faults).toEqual([]);
  });

  test("machines are switched off together: what that reaches is shown first, and what came of each after", async () => {
    const { page, faults } = await bench.signedIn();
    await page.goto(`${bench.server.httpUrl}/machines?filter=machine_id IN (m-rack1-13, m-rack1-14)`);
    await page.getByText("2 machines").waitFor();
    await page.getByRole("checkbox", { name: "Select m-rack1-13" }).check();
    await page.getByRole("checkbox", { name: "Select m-rack1-14" }).check();
    await page.getByRole("button", { name: "Power off 2 machines …" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByText("m-rack1-13, m-rack1-14").waitFor();
    await dialog.getByText("rack-1", { exact: true }).waitFor();
    await dialog.getByRole("button", { name: "Power off 2 machines", exact: true }).click();
    await dialog.getByText("2 begun, 0 refused").waitFor();
    await dialog.getByRole("button", { name: "Close" }).last().click();
    await page.getByText("off", { exact: true }).nth(1).waitFor();
    expect(faults).toEqual([]);
  });

  test("a server that was started again is found again, without loading the page or signing in", async () => {
    const { page, faults } = await bench.signedIn();
    await page.goto(`${bench.server.httpUrl}/machines?filter=machine_id=m-rack1-15`);
    await page.getByText("1 machine", { exact: true }).waitFor();
    await page.evaluate("window.isSamePage = true");
    await bench.restart();
    await page.getByText("live", { exact: true }).waitFor();
    const moved = "millwright.v1.MachineLifecycleService/EnterMaintenance";
    await bench.server.ask(moved, { machine_id: "m-rack1-15", comment: "after the restart" }, bench.token);
    await page.getByRole("button", { name: /^MAINTENANCE/ }).waitFor();
    expect(await page.evaluate("window.isSamePage")).toBe(true);
    expect(faults).toEqual([]);
  }, 180_000);

  test("failed runs of one cause are one line of the overview, and are retried together", async () => {
    const simulator = JSON.parse(await readFile(join(bench.server.dataDir, "simulator", "simulator.json"), "utf8"));
    const faultsAt = `${(simulator as { controlUrl: string }).controlUrl}/faults`;
    const refusing = { device: "m-rack1-0*", method: "POST", fault: { type: "status", status: 400 } };
    const set = await fetch(faultsAt, { method: "POST", body: JSON.stringify(refusing) });
    const { id } = (await set.json()) as { id: string };
    for (const machineId of ["m-rack1-01", "m-rack1-02"])
      await bench.server.ask(
        "baremetal.v1.RunService/StartRun",
        { machine_id: machineId, type: "REBOOT", request_id: "to-fail" },
        bench.token,
      );
    const { page, faults } = await bench.signedIn();
    await page.getByRole("button", { name: "Retry all …" }).click({ timeout: 60_000 });
    const dialog = page.getByRole("dialog");
    await dialog.getByText(/m-rack1-0[12], m-rack1-0[12]/).waitFor();
    await fetch(`${faultsAt}/${id}`, { method: "DELETE" });
    await dialog.getByRole("button", { name: "Retry 2 runs", exact: true }).click();
    await dialog.getByText("2 begun, 0 refused").waitFor();
    expect(faults).toEqual([]);
  }, 120_000);

  test("a lost connection is shown, what happened meanwhile shows once it is back, and a tab has one watch", async () => {
    const { page, faults } = await bench.signedIn();
    const watches: Request[] = [];
    page.on(
      "request",
      (request) => void (request.url().endsWith("/millwright.v1.WatchService/Watch") && watches.push(request)),
    );
    await page.goto(`${bench.server.httpUrl}/runs`);
    await page.getByText("live", { exact: true }).waitFor();
    await page.getByRole("link", { name: "Events", exact: true }).click();
    await page.getByRole("heading", { name: "Events" }).waitFor();
    await page.getByRole("link", { name: "Machines", exact: true }).click();
    await page.getByLabel("Filter").fill("machine_id=m-rack1-16");
    await page.keyboard.press("Enter");
    await page.getByText("1 machine", { exact: true }).waitFor();
    expect(watches.length).toBe(1);

    await page.context().setOffline(true);
    await page.getByText("The connection to the server is lost.").waitFor();
    await moveToMaintenance(bench, "m-rack1-16");
    await page.context().setOffline(false);
    await page.getByRole("button", { name: /^MAINTENANCE/ }).waitFor();
    await page.getByText("live", { exact: true }).waitFor();
    expect(await page.getByText("The connection to the server is lost.").count()).toBe(0);
    expect(faults).toEqual([]);
  }, 120_000);

  test("a hidden tab has no watch; one that was away for too long reads everything again, and says so", async () => {
    const { page, faults } = await bench.signedIn();
    await page.goto(`${bench.server.httpUrl}/machines?filter=machine_id=m-rack1-17`);
    await page.getByText("1 machine", { exact: true }).waitFor();
    await page.getByText("live", { exact: true }).waitFor();
    const closed = page.waitForEvent("requestfailed", (request) => request.url().endsWith("WatchService/Watch"));
    await setHidden(page, true);
    await closed;
    await page.getByText("paused", { exact: true }).waitFor();

    await moveToMaintenance(bench, "m-rack1-17");
    // What a server knows by heart is gone with it, and retention has removed the rest.
    await bench.restart();
    await bench.database.db.execute(
      `update journal_epoch set forgotten_to =
         (select epoch || '.' || xid::text || '.' || seq from journal order by epoch desc, xid desc, seq desc limit 1)`,
    );
    await setHidden(page, false);
    await page.getByText("Events were missed. Everything on this page was read again.").waitFor();
    await page.getByRole("button", { name: /^MAINTENANCE/ }).waitFor();
    await page.getByText("live", { exact: true }).waitFor();
    expect(faults).toEqual([]);
  }, 180_000);

  test("events are the newest first, and live", async () => {
    const { page, faults } = await bench.signedIn();
    await page.goto(`${bench.server.httpUrl}/events?kinds=machine&actors=dev`);
    await page.getByText("live", { exact: true }).first().waitFor();
    const moved = "millwright.v1.MachineLifecycleService/EnterMaintenance";
    await bench.server.ask(moved, { machine_id: "m-rack1-11", comment: "the newest of all" }, bench.token);
    await page.getByRole("row").nth(1).getByText("the newest of all").waitFor();
    expect(faults).toEqual([]);
  });

  test.each(["light", "dark"])("has nothing that keeps people out: %s", async (theme) => {
    const { page, faults } = await bench.signedIn({ dark: theme === "dark" });
    const found: Record<string, readonly string[]> = {};
    for (const path of ["/", "/runs", "/machines/m-rack1-07", "/events"]) {
      await page.goto(`${bench.server.httpUrl}${path}`);
      await page.getByText("live", { exact: true }).first().waitFor();
      await page.getByText("Reading …").waitFor({ state: "detached" });
      found[path] = await findBarriers(page);
    }
    expect(found).toEqual({ "/": [], "/runs": [], "/machines/m-rack1-07": [], "/events": [] });
    expect(faults).toEqual([]);
  });
});

const moveToMaintenance = ({ server, token }: ConsoleBench, machineId: string) =>
  server.ask(
    "millwright.v1.MachineLifecycleService/EnterMaintenance",
    { machine_id: machineId, comment: "while nobody looks" },
    token,
  );

/** As when somebody goes to another tab, which a browser without a screen does not have. */
const setHidden = (page: Page, isHidden: boolean) =>
  page.evaluate(
    `Object.defineProperty(document, "hidden", { configurable: true, get: () => ${isHidden} }); document.dispatchEvent(new Event("visibilitychange")); undefined`,
  );

/** Adds a million lines to the log of the machine's newest run, in as many bytes as a log may have. */
async function writeLongLog({ server, database, token }: ConsoleBench, machineId: string) {
  const found = await server.ask<{ runs: { run: { runId: string; steps: { name: string }[] } }[] }>(
    "millwright.v1.RunService/ListRuns",
    { filter: `machine_id=${machineId}`, page_size: 1 },
    token,
  );
  const { runId = "", steps = [] } = found.runs[0]?.run ?? {};
  const lines = "line\n".repeat(500);
  await database.db.query(
    `insert into run_logs (run_id, seq, at, step, stream, data, bytes_so_far, ours)
     select $1, l.seq + n, now(), 'long', 'stdout',
            case n when 1 then convert_to(E'the beginning of it all\n', 'UTF8') || $2::bytea
                   when 2000 then $2::bytea || convert_to(E'\x1b[32mthe end of it all\x1b[0m\n', 'UTF8') else $2::bytea end,
            l.bytes_so_far + n * length($2::bytea), false
       from (select seq, bytes_so_far from run_logs where run_id = $1 order by seq desc limit 1) as l, generate_series(1, 2000) as n`,
    [runId, Buffer.from(lines)],
  );
  return { runId, step: steps[1]?.name ?? "" };
}
