import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type BrowserContext, chromium, type Page } from "playwright-core";

/** Debian's; `.ci/run` installs it. */
export const CHROMIUM = "/usr/bin/chromium";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

export interface Viewed {
  readonly page: Page;
  /** What the page's policy kept from happening, and what failed in it. None of either is ever right. */
  readonly faults: readonly string[];
}

export interface TestBrowser {
  open(options?: { readonly dark?: boolean; readonly width?: number; readonly height?: number }): Promise<Viewed>;
  close(): Promise<void>;
}

/** A real Chromium with a profile of its own, that calls nobody but the server under test. */
export async function startBrowser(): Promise<TestBrowser> {
  const profile = mkdtempSync(join(tmpdir(), "millwright-chromium-"));
  const browser = await chromium.launch({
    executablePath: CHROMIUM,
    args: [
      "--no-sandbox",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
      "--disable-gpu",
      `--crash-dumps-dir=${profile}`,
    ],
  });
  const contexts: BrowserContext[] = [];
  return {
    async open({ dark = false, width = 1440, height = 900 } = {}) {
      const context = await browser.newContext({
        viewport: { width, height },
        colorScheme: dark ? "dark" : "light",
        reducedMotion: "reduce",
        locale: "en-GB",
        timezoneId: "UTC",
      });
      contexts.push(context);
      const page = await context.newPage();
      return { page, faults: await collectFaults(page) };
    },
    async close() {
      for (const context of contexts) await context.close();
      await browser.close();
      rmSync(profile, { recursive: true, force: true });
    },
  };
}

async function collectFaults(page: Page): Promise<readonly string[]> {
  const faults: string[] = [];
  page.on("pageerror", (error) => faults.push(`error: ${error.message}`));
  await page.exposeFunction("noteViolation", (text: string) => faults.push(`policy: ${text}`));
  await page.addInitScript(
    `document.addEventListener("securitypolicyviolation", (event) => noteViolation(event.violatedDirective + " " + event.blockedURI + " " + event.sample));`,
  );
  return faults;
}

interface AxeResult {
  readonly violations: readonly { readonly id: string; readonly nodes: readonly { readonly html: string }[] }[];
}

/** What keeps people from using the page, as axe finds it: the rule and the first elements. */
export async function findBarriers(page: Page): Promise<readonly string[]> {
  await page.evaluate(AXE);
  const { violations } = (await page.evaluate("axe.run(document, { resultTypes: ['violations'] })")) as AxeResult;
  return violations.map(
    ({ id, nodes }) =>
      `${id}: ${nodes
        .slice(0, 3)
        .map(({ html }) => html.slice(0, 160))
        .join(" | ")}`,
  );
}
