import { describe, expect, test } from "vitest";
import { findBarriers } from "../support/browser/browser.ts";
import { type ConsoleBench, openConsoleBench, whyNoBrowser } from "../support/browser/console-bench.ts";
import { afterAll, beforeAll } from "../support/second-try.ts";

const missing = whyNoBrowser();

describe.skipIf(missing !== undefined)(`the console in a browser${missing ? ` (${missing})` : ""}`, () => {
  let bench: ConsoleBench;
  beforeAll(async () => {
    bench = await openConsoleBench();
  }, 120_000);
  afterAll(() => bench.close());

  test("signs its reader in by the printed link, once, and keeps no token where a script finds it", async () => {
    const { page, faults } = await bench.browser.open();
    await page.goto(bench.link);
    await page.getByRole("heading", { name: "Overview" }).waitFor();
    expect(new URL(page.url()).hash).toBe("");
    await page.getByText("live", { exact: true }).waitFor();
    expect(await page.evaluate("document.cookie")).toBe("");
    const stored = (await page.evaluate("JSON.stringify([{ ...localStorage }, { ...sessionStorage }])")) as string;
    expect(stored).not.toMatch(/mw_|session=|[0-9a-f]{32}/);
    expect(faults).toEqual([]);

    const stranger = await bench.browser.open();
    await stranger.page.goto(bench.link);
    await stranger.page.getByRole("alert").getByText("used already").waitFor();
  });

  test("leads from a page through the sign-in back to that page, and out again", async () => {
    const { page, faults } = await bench.browser.open();
    await page.goto(`${bench.server.httpUrl}/machines?filter=rack=rack-1`);
    await page.getByLabel("Token", { exact: true }).fill("mw_0000000000000000_wrong");
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("alert").getByText("not known here").waitFor();
    await page.getByLabel("Token", { exact: true }).fill(bench.token);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByText("18 machines").waitFor();
    expect(new URL(page.url()).search).toBe("?filter=rack%3Drack-1");
    await page.getByRole("button", { name: "dev", exact: true }).click();
    await page.getByRole("menuitem", { name: "Sign out" }).click();
    await page.waitForURL(/\/sign-in/);
    await page.goto(`${bench.server.httpUrl}/machines`);
    await page.waitForURL(/\/sign-in/);
    expect(faults).toEqual([]);
  });

  test("filters machines by the API's grammar, shows its refusals, and is used by keyboard alone", async () => {
    const { page, faults } = await bench.signedIn();
    await page.keyboard.press("Control+k");
    await page.getByRole("dialog").waitFor();
    await page.keyboard.type("machines");
    await page.keyboard.press("Enter");
    await page.getByText(/^3[67] machines$/).waitFor();
    await page.keyboard.press("/");
    await page.keyboard.type("phase=NONSENSE");
    await page.keyboard.press("Enter");
    await page.getByText(/NONSENSE/).waitFor();
    await page.keyboard.press("Control+a");
    await page.keyboard.type("machine_id=m-rack1-03");
    await page.keyboard.press("Enter");
    await page.getByText("1 machines").waitFor();
    await page.getByLabel("Filter").blur();
    await page.keyboard.press("j");
    await page.keyboard.press("e");
    await page.getByText(/machine m-rack1-03 is /).waitFor();
    expect(faults).toEqual([]);
  });

  test.each([
    ["light", 1440],
    ["dark", 1440],
    ["light", 390],
    ["dark", 390],
  ])("has nothing that keeps people out: %s, %i wide", async (theme, width) => {
    const { page, faults } = await bench.signedIn({ dark: theme === "dark", width, height: 844 });
    const found: Record<string, readonly string[]> = {};
    for (const path of ["/", "/machines"]) {
      await page.goto(`${bench.server.httpUrl}${path}`);
      await page.getByText("live", { exact: true }).waitFor();
      if (path === "/machines") await page.getByText("m-rack1-03").waitFor();
      found[path] = await findBarriers(page);
    }
    expect(found).toEqual({ "/": [], "/machines": [] });
    expect(faults).toEqual([]);
  });
});
