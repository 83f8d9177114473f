import { setTimeout as pause } from "node:timers/promises";
import type { Page } from "playwright-core";
import { startBrowser, type TestBrowser } from "../../test/support/browser/browser.ts";
import type { BenchServer } from "../bench-server.ts";
import { createMachineFleet } from "../machine-fleet.ts";
import { type Measurement, percentile } from "../measurement.ts";
import { startServeProcess } from "../serve-process.ts";
import { changeMachines } from "./machine-changes.ts";
import {
  addProbes,
  changesSeen,
  firstRowAt,
  followChanges,
  heapMb,
  longestFrame,
  scriptBytes,
  untilRowsHave,
} from "./page-probes.ts";

const MACHINES = 100_000;
/** A statement that takes too long is canceled. */
const AT_ONCE = 10_000;
/** Those that a window shows. */
const ON_SCREEN = 20;

interface Setting {
  readonly browser: TestBrowser;
  readonly httpUrl: string;
  readonly db: Parameters<typeof changeMachines>[0];
}

/** The console in a real Chromium, before a server with 100,000 machines on record: what a person waits for. */
export async function measureConsole(
  server: BenchServer,
  { quick, seconds }: { quick: boolean; seconds?: number | undefined },
): Promise<Measurement[]> {
  const { db, config, drop } = await server.freshDatabase();
  const fleet = createMachineFleet(db);
  for (let first = 1; first <= MACHINES; first += AT_ONCE) await fleet.addMachines(first, AT_ONCE);
  const serve = await startServeProcess(config, { keyFile: fleet.keyFile });
  const browser = await startBrowser();
  try {
    const setting = { browser, httpUrl: serve.httpUrl, db };
    const lasts = seconds ?? (quick ? 20 : 600);
    return [
      ...(await measureVisits(setting, quick ? 3 : 9)),
      ...(await measureFilters(setting, quick ? 20 : 60)),
      ...(await measureScrolling(setting)),
      ...(await measureChanges(setting, lasts)),
    ];
  } finally {
    await browser.close();
    await serve.stop();
    fleet.close();
    await drop();
  }
}

async function openMachines({ browser, httpUrl }: Setting, search = ""): Promise<Page> {
  const { page } = await browser.open();
  await addProbes(page);
  await page.goto(`${httpUrl}/machines${search}`);
  await page.locator('[role="row"]').nth(5).waitFor();
  await page.getByText("live", { exact: true }).waitFor();
  return page;
}

/** Each with a browser that has been nowhere. */
async function measureVisits(setting: Setting, visits: number): Promise<Measurement[]> {
  await (await openMachines(setting)).close(); // warms the server
  const [times, sizes]: [number[], number[]] = [[], []];
  for (let visit = 0; visit < visits; visit += 1) {
    const page = await openMachines(setting);
    times.push((await firstRowAt(page)) ?? Number.NaN);
    await page.waitForTimeout(1_500); // the search comes once the page stands
    sizes.push((await scriptBytes(page)) / 1_000);
    await page.close();
  }
  return [
    {
      what: "console, first visit of the machines: first row",
      values: times,
      unit: "ms",
      target: 1_000,
      better: "lower",
    },
    { what: "  script, kB over the network", values: sizes, unit: "", target: 200, better: "lower" },
  ];
}

async function measureFilters(setting: Setting, filters: number): Promise<Measurement[]> {
  const page = await openMachines(setting);
  const times: number[] = [];
  for (let n = 0; n < filters; n += 1) {
    const rack = `rack-${(n * 53) % 5_000}`;
    await page.getByLabel("Filter").fill(`rack=${rack} AND phase=FACTORY_READY`);
    await page.keyboard.press("Enter");
    times.push(await untilRowsHave(page, rack));
  }
  await page.close();
  return [
    {
      what: "  filter → its rows on the screen, p95",
      values: [percentile(times, 0.95)],
      unit: "ms",
      target: 300,
      better: "lower",
    },
  ];
}

/** As fast as a wheel turns, until some thousands of rows have gone by. */
async function measureScrolling(setting: Setting): Promise<Measurement[]> {
  const page = await openMachines(setting);
  const table = page.getByRole("region", { name: "Machines" });
  await table.hover();
  await longestFrame(page);
  for (let turn = 0; turn < 200; turn += 1) {
    await page.mouse.wheel(0, 960);
    await page.waitForTimeout(16);
  }
  const longest = await longestFrame(page);
  await page.close();
  return [
    { what: "  longest frame while 6,000 rows scroll by", values: [longest], unit: "ms", target: 250, better: "lower" },
  ];
}

/** Machines on the screen change, then very many, then the page stays open. */
async function measureChanges(setting: Setting, lasts: number): Promise<Measurement[]> {
  const page = await openMachines(setting, "?order=serial");
  const onScreen = (await page.evaluate(
    `[...document.querySelectorAll('[role="row"] a[href^="/machines/"]')].map((link) => link.textContent).slice(0, ${ON_SCREEN})`,
  )) as string[];
  await followChanges(page);
  await longestFrame(page);
  const sent = await changeMachines(setting.db, { ids: onScreen, perSecond: 50, count: 50 * Math.min(lasts, 30) });
  await pause(2_000);
  const seen = await changesSeen(page);
  const delays = sent.flatMap((at, n) => {
    // One that was overtaken by the next of its machine has shown by then.
    const shown = seen.find((time, later) => later >= n && (later - n) % onScreen.length === 0 && time !== null);
    return typeof shown === "number" ? [shown - at] : [];
  });
  const many = Array.from({ length: 2_000 }, (_, index) => `m-${index + 1}`);
  await longestFrame(page);
  await changeMachines(setting.db, { ids: many, perSecond: 1_000, count: 10_000 });
  const frozen = await longestFrame(page);
  await changeMachines(setting.db, { ids: onScreen, perSecond: 50, count: 50 * Math.max(0, lasts - 42) });
  const heap = await heapMb(page);
  await page.close();
  return [
    {
      what: "  commit → on the screen, 50 events/s, p99",
      values: [percentile(delays, 0.99)],
      unit: "ms",
      target: 250,
      better: "lower",
    },
    { what: "  longest frame at 1,000 events/s", values: [frozen], unit: "ms", target: 500, better: "lower" },
    { what: `  heap after ${lasts} s with events`, values: [heap], unit: "MB", target: 150, better: "lower" },
  ];
}
