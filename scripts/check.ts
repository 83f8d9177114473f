/** `npm run check`: everything that must hold of the sources themselves. All of it is run, and what failed is shown at the end. */

import { findForeignWords, stepKindsOf, technologiesOf } from "./check/executor-words.ts";
import { findCrowdedFolders, judgeLength, judgeName } from "./check/file-rules.ts";
import { importsOf } from "./check/imports.ts";
import { findBreakingChanges } from "./check/landed-contract.ts";
import { findRewrittenMigrations, findTakingMigrations } from "./check/landed-migrations.ts";
import { judgeImport } from "./check/layers.ts";
import { findBrokenLinks } from "./check/links.ts";
import { findMessageReaders } from "./check/message-readers.ts";
import { readSourceFiles } from "./check/source-files.ts";
import { judgeWrites } from "./check/store-writes.ts";
import { findUnusedExports } from "./check/unused-exports.ts";
import { findBadDependencies } from "./dependencies/bad-dependencies.ts";
import { readLockFile, readManifest } from "./dependencies/lock-file.ts";
import { root, runTool } from "./run-tool.ts";

/** What is wrong, line by line; nothing when all is well. */
type Check = () => Promise<readonly string[]>;

const files = readSourceFiles(root);

async function tool(name: string, ...args: readonly string[]): Promise<readonly string[]> {
  const { code, output } = await runTool(name, args);
  if (code === 0) return [];
  return [...output.trimEnd().split("\n"), `(\`${name} ${args.join(" ")}\` ended with code ${code})`];
}

const CHECKS: Readonly<Record<string, Check>> = {
  types: () => tool("tsc", "--noEmit", "--pretty", "false"),
  "types of the console": () => tool("tsc", "--project", "console", "--pretty", "false"),
  "lint and format": () => tool("biome", "check", "--colors=off", "--diagnostic-level=warn", "."),
  "contract lint": () => tool("buf", "lint"),
  "contract breaks nobody": () => findBreakingChanges(root),
  "migrations stay as they landed": () => findRewrittenMigrations(),
  "migrations only add": () => findTakingMigrations(),
  dependencies: async () => findBadDependencies(await readLockFile(root), await readManifest(root)),
  layers: async () => (await files).flatMap(importsOf).flatMap((each) => judgeImport(each) ?? []),
  "the executor names no provider, target or step": async () => {
    const all = await files;
    const words = { technologies: technologiesOf(all), stepKinds: stepKindsOf(all) };
    return all.flatMap((file) => findForeignWords(file, words));
  },
  "nobody reads messages": async () => (await files).flatMap(findMessageReaders),
  "file names": async () => (await files).flatMap((file) => judgeName(file) ?? []),
  "writes can be killed": async () => (await files).flatMap((file) => judgeWrites(file) ?? []),
  "file lengths": async () => (await files).flatMap((file) => judgeLength(file) ?? []),
  "unused exports": async () => findUnusedExports(await files),
  "folder sizes": async () => findCrowdedFolders(await files),
  links: () => findBrokenLinks(root),
  // Loaded late: its parser is the test runner's, which takes a while to load.
  proofs: async () => (await import("./check/proofs.ts")).findUnproven(root, await files),
  // Loaded late: it imports the sources, and when they do not load that must not hide what the other checks found.
  "generated files": async () => (await import("./check/generated-files.ts")).findDrift(root),
};

const results = await Promise.all(
  Object.entries(CHECKS).map(async ([name, check]) => {
    const started = performance.now();
    const faults = await check().catch((error: unknown) => [
      error instanceof Error ? (error.stack ?? error.message) : String(error),
    ]);
    console.log(
      `${faults.length === 0 ? "ok    " : "FAILED"} ${name} (${((performance.now() - started) / 1_000).toFixed(1)} s)`,
    );
    return { name, faults };
  }),
);
const failed = results.filter(({ faults }) => faults.length > 0);
for (const { name, faults } of failed) {
  console.log(`\n=== ${name} ===\n${faults.join("\n")}`);
}
console.log(failed.length === 0 ? "\nAll checks passed." : `\nFailed: ${failed.map(({ name }) => name).join(", ")}.`);
process.exitCode = failed.length === 0 ? 0 : 1;
