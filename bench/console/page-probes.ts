import type { Page } from "playwright-core";

/**
 * What is measured inside of the page, by its own clock, from the event to the frame that shows what came of it. The page's policy lets no
 * script be added: these come with the browser, before the page.
 */
const PROBES = `
  const frames = { longest: 0, last: 0, on: false };
  const shows = [];
  const rowsText = () => [...document.querySelectorAll('[role="row"][aria-rowindex]')].map((row) => row.textContent).slice(1);
  const tick = (now) => {
    if (frames.on && frames.last > 0) frames.longest = Math.max(frames.longest, now - frames.last);
    frames.last = now;
    if (window.__firstRow === undefined && rowsText().length > 0) window.__firstRow = performance.now();
    for (const waiting of window.__waiting.splice(0)) {
      const rows = rowsText();
      if (rows.length > 0 && rows.every((text) => text.includes(waiting.text))) waiting.done(performance.now() - waiting.since);
      else window.__waiting.push(waiting);
    }
    if (window.__follow) {
      for (const text of rowsText()) {
        const n = /n=(\\d+)/.exec(text)?.[1];
        if (n !== undefined && !(n in shows)) shows[n] = performance.timeOrigin + performance.now();
      }
    }
    requestAnimationFrame(tick);
  };
  window.__waiting = [];
  window.__frames = frames;
  window.__shows = shows;
  requestAnimationFrame(tick);
  document.addEventListener("keydown", (event) => { if (event.key === "Enter") window.__entered = performance.now(); }, true);
`;

export async function addProbes(page: Page): Promise<void> {
  await page.addInitScript(PROBES);
}

/** From the start of the navigation until the first row is on the screen; undefined as long as there is none. */
export const firstRowAt = (page: Page): Promise<number | undefined> => page.evaluate("window.__firstRow");

/** From the last Enter until all rows that are shown have the text. */
export const untilRowsHave = (page: Page, text: string): Promise<number> =>
  page.evaluate(
    `new Promise((done) => window.__waiting.push({ text: ${JSON.stringify(text)}, since: window.__entered, done }))`,
  );

/** The longest time between two frames since the last call. */
export const longestFrame = (page: Page): Promise<number> =>
  page.evaluate(
    `(() => { const { longest } = window.__frames; Object.assign(window.__frames, { longest: 0, on: true }); return longest; })()`,
  );

/** When the n-th change was first seen on the screen, by the clock of the computer, from now on. */
export const followChanges = (page: Page): Promise<void> => page.evaluate("void (window.__follow = true)");
export const changesSeen = (page: Page): Promise<readonly (number | null)[]> => page.evaluate("[...window.__shows]");

/** As the browser received them, compressed. */
export const scriptBytes = (page: Page): Promise<number> =>
  page.evaluate(
    `performance.getEntriesByType("resource").filter(({ name }) => /\\.js$/.test(name)).reduce((sum, { encodedBodySize }) => sum + encodedBodySize, 0)`,
  );

/** What the page's objects take once what nobody holds is gone. */
export async function heapMb(page: Page): Promise<number> {
  const session = await page.context().newCDPSession(page);
  await session.send("HeapProfiler.collectGarbage");
  const { usedSize } = await session.send("Runtime.getHeapUsage");
  await session.detach();
  return usedSize / 1_048_576;
}
