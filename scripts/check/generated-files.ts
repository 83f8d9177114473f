import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isGeneratedPage } from "../generate/markdown.ts";
import { GENERATED_FOLDERS, generatePages } from "../generate/pages.ts";
import { generateContract } from "../generate-contract.ts";

/** Generated files that differ from what `npm run generate` would write, are missing, or have no source any more. */
export async function findDrift(root: string): Promise<string[]> {
  const [contract, pages] = await Promise.all([findContractDrift(root), findPageDrift(root)]);
  return [...contract, ...pages];
}

async function findContractDrift(root: string): Promise<string[]> {
  const scratch = await mkdtemp(join(tmpdir(), "millwright-check-"));
  try {
    const fresh = join(scratch, "contract");
    await generateContract(fresh);
    return compareTrees("contract", await readTree(join(root, "contract")), await readTree(fresh));
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

async function findPageDrift(root: string): Promise<string[]> {
  const fresh = await generatePages();
  const drift: string[] = [];
  for (const folder of GENERATED_FOLDERS) {
    const below = (path: string) => path.startsWith(`${folder}/`);
    const wanted = new Map(
      [...fresh].filter(([path]) => below(path)).map(([path, text]) => [path.slice(folder.length + 1), text]),
    );
    const present = [...(await readTree(join(root, folder)))].filter(
      ([name, text]) => wanted.has(name) || isGeneratedPage(text),
    );
    drift.push(...compareTrees(folder, new Map(present), wanted));
  }
  return drift;
}

type Tree = ReadonlyMap<string, string>;

/** What differs between the files that are there and those that should be, by name. */
export function compareTrees(folder: string, present: Tree, wanted: Tree): string[] {
  const names = [...new Set([...present.keys(), ...wanted.keys()])].sort();
  return names.flatMap((name) => {
    if (present.get(name) === wanted.get(name)) return [];
    const what = !present.has(name) ? "is missing" : !wanted.has(name) ? "has no source any more" : "is out of date";
    return [`${folder}/${name} ${what}: run \`npm run generate\``];
  });
}

async function readTree(folder: string): Promise<Tree> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch(
    (error: NodeJS.ErrnoException) => {
      if (error.code === "ENOENT") return [];
      throw error;
    },
  );
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  const texts = await Promise.all(
    files.map(async (path) => [path.slice(folder.length + 1), await readFile(path, "utf8")] as const),
  );
  return new Map(texts);
}
