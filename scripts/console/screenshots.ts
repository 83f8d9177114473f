/**
 * Screenshots of the console: `bin/node scripts/console/screenshots.ts --link URL --out FOLDER [--pages /,/machines] [--sizes 1440x900,390x844]`.
 * The link is the one that `npm start` prints.
 */
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { findBarriers, startBrowser } from "../../test/support/browser/browser.ts";

const { values } = parseArgs({
  options: {
    link: { type: "string" },
    token: { type: "string" },
    out: { type: "string", default: "screenshots" },
    pages: { type: "string", default: "/" },
    sizes: { type: "string", default: "1440x900,390x844" },
    themes: { type: "string", default: "light,dark" },
    /** A selector that is clicked before the picture is taken. */
    click: { type: "string" },
  },
});
if (values.link === undefined) throw new Error("--link is required");
const { origin } = new URL(values.link);
await mkdir(values.out, { recursive: true });

const browser = await startBrowser();
try {
  const signedIn = await browser.open();
  await signedIn.page.goto(values.link);
  if (values.token !== undefined) {
    await signedIn.page.getByLabel("Token", { exact: true }).fill(values.token);
    await signedIn.page.getByRole("button", { name: "Sign in" }).click();
  }
  await signedIn.page.waitForURL((url) => url.pathname !== "/sign-in");
  const cookies = await signedIn.page.context().cookies();
  for (const size of values.sizes.split(","))
    for (const theme of values.themes.split(",")) await takePictures(size, theme, cookies);
} finally {
  await browser.close();
}

async function takePictures(size: string, theme: string, cookies: readonly object[]): Promise<void> {
  const [width, height] = size.split("x").map(Number);
  const { page, faults } = await browser.open({ dark: theme === "dark", width: width ?? 1440, height: height ?? 900 });
  await page.context().addCookies(cookies as Parameters<ReturnType<typeof page.context>["addCookies"]>[0]);
  for (const path of values.pages.split(",")) {
    await page.goto(`${origin}${path}`);
    await page.locator("h1").first().waitFor();
    await page.waitForLoadState("load");
    await page.waitForTimeout(1_500); // pictures are for people: late data may still come in
    if (values.click !== undefined) {
      await page.locator(values.click).first().click();
      await page.waitForTimeout(800);
    }
    const name = `${path.replace(/[^\w-]+/g, "_").replace(/^_|_$/g, "") || "overview"}-${width}-${theme}.png`;
    await page.screenshot({ path: join(values.out, name) });
    const barriers = await findBarriers(page);
    for (const fault of [...faults, ...barriers]) console.log(`${path} ${size} ${theme}: ${fault}`);
    console.log(name);
  }
  await page.context().close();
}
