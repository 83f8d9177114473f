import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { join, relative } from "node:path";

/** What the built console is made from: its own sources, the contract, and the packages of the lock file. */
const SOURCES = ["console", "contract", "package-lock.json", "scripts/console"];
const LEFT_OUT = new Set(["dist", "node_modules"]);

/** The same sources give the same digest, wherever the checkout is and whenever it was made. */
export async function digestOfConsole(root: string): Promise<string> {
  const digest = createHash("sha256");
  const paths = (await Promise.all(SOURCES.map((source) => filesBelow(join(root, source))))).flat().sort();
  for (const path of paths) digest.update(`${relative(root, path)}\0`).update(await readFile(path));
  return digest.digest("hex");
}

async function filesBelow(path: string): Promise<string[]> {
  const entries = await readdir(path, { withFileTypes: true }).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOTDIR") return null;
    throw error;
  });
  if (entries === null) return [path];
  const kept = entries.filter(({ name }) => !LEFT_OUT.has(name));
  return (await Promise.all(kept.map(({ name }) => filesBelow(join(path, name))))).flat();
}
