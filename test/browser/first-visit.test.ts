import { describe, expect, test } from "vitest";
import { findBarriers, type Viewed } from "../support/browser/browser.ts";
import { type ConsoleBench, openConsoleBench, whyNoBrowser } from "../support/browser/console-bench.ts";
import { afterAll, beforeAll } from "../support/second-try.ts";

const missing = whyNoBrowser();

/** As the browser received them, compressed. */
const scriptBytes = (page: Viewed["page"]): Promise<number> =>
  page.evaluate(
    `performance.getEntriesByType("resource").filter(({ name }) => /\\.js$/.test(name)).reduce((sum, { encodedBodySize }) => sum + encodedBodySize, 0)`,
  );

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
    await page.getByText("1 machine", { exact: true }).waitFor();
    await page.getByLabel("Filter").blur();
    await page.keyboard.press("j");
    await page.keyboard.press("e");
    await page.getByText(/machine m-rack1-03 is /).waitFor();
    expect(faults).toEqual([]);
  });

  test.each(["/", "/machines"])("loads at most 200 kB of script for a first visit of %s", async (path) => {
    const { page } = await bench.signedIn();
    await page.goto(`${bench.server.httpUrl}${path}`);
    await page.getByText("live", { exact: true }).waitFor();
    // The search is loaded by itself once the page stands, and counts.
    const loaded = () =>
      page.evaluate(`performance.getEntriesByType("resource").map(({ name }) => name).join()`) as Promise<string>;
    await expect.poll(loaded, { timeout: 30_000 }).toMatch(/\/search-/);
    expect(await scriptBytes(page)).toBeLessThanOrEqual(200_000);
  });

  test("completes a filter, groups what it finds, and keeps the view for other browsers of the same caller", async () => {
    const { page, faults } = await bench.signedIn();
    await page.goto(`${bench.server.httpUrl}/machines`);
    await page.getByText(/^3[67] machines$/).waitFor();
    const option = (name: string) => page.getByRole("option", { name, exact: true });
    await page.keyboard.press("/");
    await page.keyboard.type("rack=");
    await option("rack-1").waitFor();
    await page.keyboard.type("rack-2");
    await page.keyboard.press("Tab");
    await page.keyboard.type(" a");
    await page.getByRole("option", { name: /^AND/ }).waitFor();
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    await page.keyboard.type('serial!=""');
    await page.keyboard.press("Enter");
    await page.getByText("18 machines", { exact: true }).waitFor();
    expect(new URL(page.url()).searchParams.get("filter")).toBe('rack=rack-2 AND serial!=""');

    await page.getByLabel("Group by").selectOption("rack");
    await page.getByText("18 machines in 1 groups").waitFor();
    await page.getByRole("button", { name: /^rack-2 18/ }).click();
    await page.getByRole("link", { name: "m-rack2-03", exact: true }).waitFor();
    expect(await findBarriers(page)).toEqual([]);

    await page.getByRole("button", { name: "Views" }).click();
    await page.getByLabel("Name of the view").fill("second rack");
    await page.getByRole("button", { name: "Keep", exact: true }).click();
    await page.getByRole("button", { name: "second rack", exact: true }).waitFor();
    expect(faults).toEqual([]);

    const elsewhere = await bench.signedIn();
    await elsewhere.page.goto(`${bench.server.httpUrl}/machines`);
    await elsewhere.page.getByRole("button", { name: "Views" }).click();
    await elsewhere.page.getByRole("button", { name: "second rack", exact: true }).click();
    await elsewhere.page.getByText("18 machines in 1 groups").waitFor();
    await elsewhere.page.getByRole("button", { name: "Delete the view second rack" }).click();
    await elsewhere.page.getByRole("button", { name: "second rack", exact: true }).waitFor({ state: "detached" });
    expect(elsewhere.faults).toEqual([]);
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
