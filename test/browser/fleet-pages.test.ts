import { describe, expect, test } from "vitest";
import { findBarriers } from "../support/browser/browser.ts";
import { type ConsoleBench, openConsoleBench, whyNoBrowser } from "../support/browser/console-bench.ts";
import { afterAll, beforeAll } from "../support/second-try.ts";

const missing = whyNoBrowser();

describe.skipIf(missing !== undefined)(`racks, their devices and lifecycles${missing ? ` (${missing})` : ""}`, () => {
  let bench: ConsoleBench;
  beforeAll(async () => {
    bench = await openConsoleBench();
  }, 120_000);
  afterAll(() => bench.close());

  test("a rack shows its devices by place, by power and by firmware, and leads to each of them", async () => {
    const { page, faults } = await bench.signedIn();
    await page.goto(`${bench.server.httpUrl}/racks`);
    await page.getByRole("link", { name: "rack-1", exact: true }).click();
    await page.getByRole("heading", { name: "rack-1" }).waitFor();
    await page.getByRole("button", { name: "Power", exact: true }).click();
    await page.getByRole("button", { name: "Firmware", exact: true }).click();
    await page.getByRole("link", { name: "rack-1-shelf-8", exact: true }).click();
    await page.getByRole("heading", { name: "rack-1-shelf-8" }).waitFor();
    await page.getByRole("heading", { name: "Power supplies" }).waitFor();
    await page.getByText("Story").first().waitFor();
    expect(faults).toEqual([]);
  });

  test("a maintenance of two trays is previewed before it can be started, and starts as it was shown", {
    timeout: 180_000,
  }, async () => {
    const { page, faults } = await bench.signedIn();
    await page.goto(`${bench.server.httpUrl}/racks/rack-1`);
    await expect.poll(() => page.locator("[data-explain]").first().textContent(), { timeout: 60_000 }).toBe("ready");
    await page.getByRole("button", { name: "Maintain…" }).click();
    await page.getByLabel("Select m-rack1-01").check();
    await page.getByLabel("Select m-rack1-02").check();
    await page.getByLabel("NMX cluster").uncheck();
    await page.getByLabel("Power sequence").uncheck();
    await page.getByRole("button", { name: "Preview" }).click();
    const start = page.getByRole("button", { name: /^Maintain 2 devices/ });
    await start.waitFor();
    // What was shown is no longer what would be done.
    await page.getByLabel("Select m-rack1-02").uncheck();
    await page.getByRole("button", { name: "Preview" }).click();
    await page.getByRole("button", { name: /^Maintain 1 device/ }).click();
    await page.getByText("Maintain…").waitFor();
    await page.getByRole("cell", { name: "maintenance", exact: true }).first().waitFor();
    expect(faults).toEqual([]);
  });

  test("an install is approved with a workflow, and watched until it is active", { timeout: 180_000 }, async () => {
    const { page, faults } = await bench.signedIn();
    await page.goto(`${bench.server.httpUrl}/installs`);
    // The datacentre has a machine that nobody has registered: it boots from the network by itself.
    await page.getByRole("link", { name: "m-02005e100001", exact: true }).click({ timeout: 120_000 });
    await page.getByText("a person who approves it").waitFor();
    await page.getByRole("button", { name: "Approve …" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByText("m-02005e100001: discovered → pending").waitFor();
    await dialog.getByLabel("Workflow").selectOption("simulated");
    await dialog.getByLabel("Comment").fill("racked and cabled");
    expect(await findBarriers(page)).toEqual([]);
    await dialog.getByRole("button", { name: "Approve", exact: true }).click();
    await page
      .getByRole("button", { name: /^installed, / })
      .first()
      .waitFor({ timeout: 120_000 });
    const steps = page.getByLabel("Steps", { exact: true }).getByRole("row");
    await steps.filter({ hasText: "write image" }).filter({ hasText: "completed" }).waitFor();
    await page.getByText("racked and cabled").waitFor();
    await page.getByRole("button", { name: "Activate …" }).click();
    await dialog.getByRole("button", { name: "Activate", exact: true }).click();
    await page
      .getByRole("button", { name: /^active, / })
      .first()
      .waitFor();
    expect(faults).toEqual([]);
  });

  test("a lifecycle is drawn from its table, and a state leads to what is in it", async () => {
    const { page, faults } = await bench.signedIn();
    await page.goto(`${bench.server.httpUrl}/lifecycles`);
    await page.getByRole("link", { name: "power shelf", exact: true }).click();
    await page.getByRole("img", { name: /States of power_shelf/ }).waitFor();
    await page.getByRole("link", { name: "ready", exact: true }).click();
    await page.waitForURL(/\/power-shelves\?filter=state/);
    await page.getByText(/^\d+ power shelves$/).waitFor();
    expect(faults).toEqual([]);
  });

  test("a reader without the right to act is offered nothing that does", { timeout: 180_000 }, async () => {
    const { page } = await bench.signedIn();
    const answer = await page.evaluate(
      `fetch("/millwright.v1.TokenService/CreateToken", { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ name: "reader-" + Date.now(), roles: ["viewer"] }) }).then((answer) => answer.json())`,
    );
    const viewer = await bench.signedIn({ token: (answer as { token: string }).token });
    await viewer.page.goto(`${bench.server.httpUrl}/racks/rack-1`);
    await viewer.page.getByRole("heading", { name: "rack-1" }).waitFor();
    await viewer.page.getByRole("link", { name: "rack-1-shelf-1", exact: true }).waitFor();
    expect(await viewer.page.getByRole("button", { name: "Maintain…" }).count()).toBe(0);
    expect(await viewer.page.getByRole("link", { name: "Tokens" }).count()).toBe(0);
    const acting = viewer.page.getByRole("button", { name: /New plan|Start|Approve|Activate|Retire|Do it/ });
    await viewer.page.goto(`${bench.server.httpUrl}/plans/plan%2Freboot`);
    await viewer.page.getByRole("cell", { name: "reboot", exact: true }).first().waitFor();
    expect(await acting.count()).toBe(0);
    await viewer.page.goto(`${bench.server.httpUrl}/installs/m-02005e100001`);
    await viewer.page.getByText("What helps").waitFor({ timeout: 120_000 });
    expect(await acting.count()).toBe(0);
  });

  test.each([
    ["light", 1440],
    ["dark", 1440],
    ["light", 390],
    ["dark", 390],
  ])("has nothing that keeps people out: %s, %i wide", { timeout: 180_000 }, async (theme, width) => {
    const { page, faults } = await bench.signedIn({ dark: theme === "dark", width, height: 844 });
    const paths = [
      "/racks",
      "/racks/rack-1",
      "/power-shelves",
      "/switches",
      "/installs",
      "/fleet-nodes",
      "/lifecycles",
      "/lifecycles/rack",
      "/rack-firmware",
      "/plans",
      "/plans/plan%2Frepave-join",
      "/new-plan",
      "/workflows",
      "/rack-profiles",
      "/scripts",
      "/scripts/verify_network.sh",
      "/groups",
      "/images",
      "/clusters",
      "/sites",
      "/tokens",
    ];
    const found: Record<string, readonly string[]> = {};
    for (const path of paths) {
      await page.goto(`${bench.server.httpUrl}${path}`);
      await page.getByText("live", { exact: true }).waitFor();
      await page.locator("h1").waitFor();
      await expect.poll(() => page.getByText("Reading …").count(), { timeout: 30_000 }).toBe(0);
      found[path] = await findBarriers(page);
    }
    expect(found).toEqual(Object.fromEntries(paths.map((path) => [path, []])));
    expect(faults).toEqual([]);
  });
});
