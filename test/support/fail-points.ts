import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

const SOURCES = join(import.meta.dirname, "..", "..", "src");

/** The names of all fail points in the sources, so that a new one without a crash test is noticed. */
export function listFailPoints(directory = SOURCES): readonly string[] {
  const names = new Set<string>();
  for (const entry of readdirSync(directory, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile() || !entry.name.endsWith(".ts") || entry.name.endsWith(".test.ts")) continue;
    const source = readFileSync(join(entry.parentPath, entry.name), "utf8");
    for (const [, name] of source.matchAll(/\bfailPoint\(\s*["'`]([^"'`]+)["'`]\s*[,)]/g))
      if (name !== undefined) names.add(name);
  }
  return [...names].sort();
}
