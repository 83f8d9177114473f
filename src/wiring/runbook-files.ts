import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Runbooks } from "../runs/runbooks.ts";

const SHIPPED = join(import.meta.dirname, "..", "..", "runbooks");

/** The scripts that come with Millwright. */
export function loadRunbooks(directory = SHIPPED): Runbooks {
  const files = readdirSync(directory).filter((name) => name.endsWith(".sh"));
  return new Runbooks(Object.fromEntries(files.map((name) => [name, readFileSync(join(directory, name), "utf8")])));
}
