import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { messageOf } from "../kernel/errors.ts";
import { Runbooks } from "../runs/steps/scripts/runbooks.ts";

const SHIPPED = join(import.meta.dirname, "..", "..", "runbooks");

/** The scripts that come with Millwright, and those of the site, which are read again when a run is started. */
export function loadRunbooks(directory: string | null = null): Runbooks {
  const shipped = readScripts(SHIPPED, [".sh"]);
  const earlier = earlierVersions();
  if (directory === null) return new Runbooks(shipped, {}, earlier);
  try {
    return new Runbooks(shipped, () => readScripts(directory, [".sh", ".yml", ".yaml"]), earlier);
  } catch (error) {
    throw new Error(`scripts.directory: the scripts in ${directory} cannot be used: ${messageOf(error)}`);
  }
}

/** `drain_node@1.sh` is `drain_node.sh` as an earlier version had it. */
const earlierVersions = (): [ref: string, text: string][] =>
  Object.entries(readScripts(join(SHIPPED, "earlier"), [".sh"])).map(([name, text]) => [
    name.replace(/@\d+/, ""),
    text,
  ]);

function readScripts(directory: string, endings: readonly string[]): Readonly<Record<string, string>> {
  const files = readdirSync(directory).filter((name) => endings.some((ending) => name.endsWith(ending)));
  return Object.fromEntries(files.map((name) => [name, readFileSync(join(directory, name), "utf8")]));
}
