import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { AppError, messageOf } from "../kernel/errors.ts";
import type { Log } from "../kernel/log.ts";
import { isRunbook, Runbooks } from "../runs/steps/scripts/runbooks.ts";

const SHIPPED = join(import.meta.dirname, "..", "..", "runbooks");

/**
 * The scripts that come with Millwright, and those of the site, which are read again when a run is started.
 *
 * @throws AppError invalid_argument where those of the site cannot be used.
 */
export function loadRunbooks(directory: string | null = null): Runbooks {
  const shipped = readScripts(SHIPPED, [".sh"]);
  const earlier = earlierVersions();
  if (directory === null) return new Runbooks(shipped, {}, earlier);
  try {
    return new Runbooks(shipped, () => readScripts(directory, [".sh", ".yml", ".yaml"]), earlier);
  } catch (error) {
    const message = `scripts.directory: the scripts in ${directory} cannot be used: ${messageOf(error)}`;
    throw new AppError("invalid_argument", message, { next: "millwright config check" });
  }
}

/** They are read at each start of a run as well; this says beforehand whether they can be used. */
export function reloadRunbooks(runbooks: Runbooks, log: Log): void {
  try {
    runbooks.refresh();
  } catch (error) {
    log.error({ error: messageOf(error) }, "the scripts of the site cannot be used; the earlier ones stay");
  }
}

/** `drain_node@1.sh` is `drain_node.sh` as an earlier version had it. */
const earlierVersions = (): [ref: string, text: string][] =>
  Object.entries(readScripts(join(SHIPPED, "earlier"), [".sh"])).map(([name, text]) => [
    name.replace(/@\d+/, ""),
    text,
  ]);

/** YAML that no plan could name (`.gitlab-ci.yml`, a large file of variables) lies there for other purposes, and is left out. */
function readScripts(directory: string, endings: readonly string[]): Readonly<Record<string, string>> {
  const files = readdirSync(directory, { withFileTypes: true })
    .filter((entry) => !entry.isDirectory() && endings.some((ending) => entry.name.endsWith(ending)))
    .map(({ name }) => [name, readFileSync(join(directory, name), "utf8")] as const);
  return Object.fromEntries(files.filter(([name, text]) => name.endsWith(".sh") || isRunbook(name, text)));
}
