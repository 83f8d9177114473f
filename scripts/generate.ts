/** `npm run generate`: writes everything that is derived from the contracts and the tables. `npm run check` compares it. */
import { mkdir, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { GENERATED_FOLDERS, generatePages } from "./generate/pages.ts";
import { generateContract } from "./generate-contract.ts";
import { root } from "./run-tool.ts";

await generateContract(join(root, "contract"));
const pages = await generatePages();
// A page whose source is gone must go as well.
for (const folder of GENERATED_FOLDERS) await rm(join(root, folder), { recursive: true, force: true });
for (const [path, text] of pages) {
  await mkdir(dirname(join(root, path)), { recursive: true });
  await writeFile(join(root, path), text);
}
console.log(`wrote contract/ and ${pages.size} pages below docs/`);
