/** `npm run generate`: writes everything that is derived from the contracts and the tables. `npm run check` compares it. */
import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { isGeneratedPage } from "./generate/markdown.ts";
import { generateContract } from "./generate-contract.ts";
import { root } from "./run-tool.ts";

await generateContract(join(root, "contract"));
// Only now: the pages are made from the server, which may import a part of the contract that was not there before.
const { GENERATED_FOLDERS, generatePages } = await import("./generate/pages.ts");
const pages = await generatePages();
for (const folder of GENERATED_FOLDERS) await removeStale(folder);
for (const [path, text] of pages) {
  await mkdir(dirname(join(root, path)), { recursive: true });
  await writeFile(join(root, path), text);
}
console.log(`wrote contract/ and ${pages.size} pages below docs/`);

/** A page whose source is gone must go as well; what was written by hand stays. */
async function removeStale(folder: string): Promise<void> {
  await mkdir(join(root, folder), { recursive: true });
  for (const name of await readdir(join(root, folder))) {
    const path = join(root, folder, name);
    if (name.endsWith(".md") && isGeneratedPage(await readFile(path, "utf8"))) await rm(path);
  }
}
