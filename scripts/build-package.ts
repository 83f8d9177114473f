/**
 * Makes `dist/`, what `npm pack` ships: plain JavaScript, since Node strips no types below `node_modules`, and each file that
 * the program reads, at the same place relative to the code as in a checkout.
 */
import { cp, mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { basename, dirname, join, relative } from "node:path";
import { commitOfCheckout } from "../src/config/build.ts";
import { root, runTool } from "./run-tool.ts";

const DIST = join(root, "dist");
/** What the code reads or imports, as it is. */
const COPIED = ["contract", "migrations", "runbooks", "netboot"];
/** Pieces of `contract/` for compilers and checks alone. */
const isShipped = (path: string): boolean => !path.endsWith(".d.ts") && basename(path) !== "landed.json";

await rm(DIST, { recursive: true, force: true });
await import("./console/build.ts");
const { code, output } = await runTool("tsc", ["--project", "tsconfig.package.json", "--pretty", "false"]);
if (code !== 0) {
  console.error(output.trimEnd());
  process.exit(1);
}
for (const name of COPIED) await cp(join(root, name), join(DIST, name), { recursive: true, filter: isShipped });
await cp(join(root, "console", "dist"), join(DIST, "console", "dist"), { recursive: true });
for (const folder of ["src", "simulator"]) await copyAssets(join(root, folder));
await writeManifest();

/** With the commit, which nothing in a package would tell otherwise. A build without a checkout, such as that of an image, names it. */
async function writeManifest(): Promise<void> {
  const manifest = JSON.parse(await readFile(join(root, "package.json"), "utf8")) as object;
  const commit = process.env.SOURCE_COMMIT || commitOfCheckout(root);
  await writeFile(join(DIST, "package.json"), `${JSON.stringify({ ...manifest, commit }, null, 2)}\n`);
}

/** What stands beside the code and is no code, such as pages that it serves. */
async function copyAssets(folder: string): Promise<void> {
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    if (!entry.isFile() || /\.(ts|md)$/.test(entry.name)) continue;
    const place = join(DIST, relative(root, path));
    await mkdir(dirname(place), { recursive: true });
    await cp(path, place);
  }
}
