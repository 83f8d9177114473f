import { readdir, readFile } from "node:fs/promises";
import { join, relative, sep } from "node:path";

export interface SourceFile {
  /** From the root, with forward slashes: `src/kernel/decide.ts`. */
  readonly path: string;
  readonly text: string;
}

const FOLDERS = ["bench", "console", "contract", "examples", "scripts", "simulator", "src", "test"];
const SKIPPED = new Set(["node_modules", "dist"]);
const CODE = /\.(ts|tsx|js|mjs|cjs)$/;

/** All code of the checkout, in the order of its paths. */
export async function readSourceFiles(root: string): Promise<SourceFile[]> {
  const paths = (await Promise.all(FOLDERS.map((folder) => listCode(join(root, folder))))).flat().sort();
  return Promise.all(
    paths.map(async (path) => ({
      path: relative(root, path).split(sep).join("/"),
      text: await readFile(path, "utf8"),
    })),
  );
}

async function listCode(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { withFileTypes: true }).catch(noneIfAbsent);
  const nested = entries.map(async (entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return SKIPPED.has(entry.name) ? [] : listCode(path);
    return CODE.test(entry.name) ? [path] : [];
  });
  return (await Promise.all(nested)).flat();
}

function noneIfAbsent(error: NodeJS.ErrnoException): [] {
  if (error.code === "ENOENT") return [];
  throw error;
}

export const isTest = (path: string): boolean => /\.test\.tsx?$/.test(path) || path.startsWith("test/");
export const isGenerated = (path: string): boolean => path.startsWith("contract/");
