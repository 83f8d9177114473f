import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { ReturnedToken } from "../../lifecycles/restore-review/restore-review.ts";
import type { Memory } from "./judge.ts";

const FILE = "database-witness.json";

/** What the next start in the same data directory can compare the database with. */
export interface Witnessed extends Memory {
  /** The tokens that were revoked when it was written, the newest last. */
  readonly revoked: readonly ReturnedToken[];
}

/** Nothing where there is no such file, or no readable one: then nobody remembers, which is no sign of anything. */
export function readWitnessFile(directory: string): Witnessed | null {
  try {
    const read = JSON.parse(readFileSync(join(directory, FILE), "utf8")) as Partial<Witnessed>;
    const { databaseId, generation, witness, beat, cursor = null, at, revoked = [] } = read;
    const isWhole =
      typeof databaseId === "string" &&
      typeof witness === "string" &&
      typeof at === "string" &&
      Number.isInteger(generation) &&
      Number.isInteger(beat) &&
      Array.isArray(revoked);
    if (!isWhole) return null;
    return { databaseId, generation: generation as number, witness, beat: beat as number, cursor, at, revoked };
  } catch {
    return null;
  }
}

/** By rename: a reader finds the old one or the new one. After a crash of the host the old one is there, which proves less, and nothing wrong. */
export function writeWitnessFile(directory: string, witnessed: Witnessed): void {
  const path = join(directory, FILE);
  writeFileSync(`${path}.new`, `${JSON.stringify(witnessed)}\n`, { mode: 0o600 });
  renameSync(`${path}.new`, path);
}
