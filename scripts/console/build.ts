/**
 * Builds the console into `console/dist/`: `npm run console`, `npm ci` and, where the sources differ from what was built,
 * `npm start`. The build appears as a whole or not at all, so that a server beside it never serves half of one.
 *
 * `--if-changed` does nothing where the sources are those of the present build.
 */
import { readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { root } from "../run-tool.ts";
import { compressBelow } from "./compress.ts";
import { digestOfConsole } from "./console-digest.ts";

const DIST = join(root, "console", "dist");
const DIGEST = "digest.txt";
/** In the built page, where each answer puts a nonce of its own. `src/api/console/console-document.ts` knows it too. */
const NONCE = "__CSP_NONCE__";

const digest = await digestOfConsole(root);
const built = await readFile(join(DIST, DIGEST), "utf8").catch(() => "");
if (!process.argv.includes("--if-changed") || built !== digest) await buildConsole();

async function buildConsole(): Promise<void> {
  const { build } = await import("vite"); // late: it is a tool of the checkout, and takes longer to load than to find out that nothing changed
  const fresh = `${DIST}.${process.pid}`;
  try {
    await build({
      configFile: false,
      root: join(root, "console"),
      logLevel: "warn",
      html: { cspNonce: NONCE },
      build: {
        outDir: fresh,
        target: "es2022",
        // The policy forbids data: addresses.
        assetsInlineLimit: 0,
        modulePreload: { polyfill: false },
        chunkSizeWarningLimit: 1_000,
        // Libraries mark what is for browsers; here everything is.
        rolldownOptions: {
          onLog(level, log, next) {
            if (log.code !== "MODULE_LEVEL_DIRECTIVE") next(level, log);
          },
        },
      },
    });
    await compressBelow(join(fresh, "assets"));
    await writeFile(join(fresh, DIGEST), digest);
    await rm(DIST, { recursive: true, force: true });
    await rename(fresh, DIST);
  } finally {
    await rm(fresh, { recursive: true, force: true });
  }
}
