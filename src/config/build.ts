import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";

/** What runs here: which release, made from which commit, for which schema of the database. */
export interface Build {
  readonly version: string;
  /** Empty where nobody knows: neither a checkout, nor a package that says it. */
  readonly commit: string;
  /** The number of the newest migration. */
  readonly schema: string;
}

/** `root` is that of a checkout, or `dist/` of a package. */
export function readBuild(root: string): Build {
  const { version, commit } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
    readonly version: string;
    readonly commit?: string;
  };
  return { version, commit: commit ?? commitOfCheckout(root), schema: newestMigration(join(root, "migrations")) };
}

/** As one line for people. */
export function describeBuild({ version, commit, schema }: Build): string {
  return `${version} (commit ${commit.slice(0, 12) || "unknown"}, schema ${schema})`;
}

/** Reads what git wrote, since there need not be a git here. */
export function commitOfCheckout(root: string): string {
  try {
    const own = gitDirectory(root);
    const head = readFileSync(join(own, "HEAD"), "utf8").trim();
    if (!head.startsWith("ref: ")) return head;
    const ref = head.slice("ref: ".length);
    const shared = sharedDirectory(own);
    return textOf(join(shared, ref)) ?? packedRef(shared, ref) ?? "";
  } catch {
    return "";
  }
}

/** `.git` is a file in a worktree of its own: it names the directory. */
function gitDirectory(root: string): string {
  const place = join(root, ".git");
  const named = /^gitdir: (.*)/.exec(textOf(place) ?? "")?.[1];
  return named === undefined ? place : resolve(root, named);
}

const sharedDirectory = (own: string): string => resolve(own, textOf(join(own, "commondir")) ?? ".");

function packedRef(directory: string, ref: string): string | undefined {
  const line = textOf(join(directory, "packed-refs"))
    ?.split("\n")
    .find((each) => each.endsWith(` ${ref}`));
  return line?.split(" ")[0];
}

function textOf(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8").trim();
  } catch {
    return undefined;
  }
}

function newestMigration(directory: string): string {
  const numbers = readdirSync(directory).flatMap((name) => /^(\d{4})_.*\.sql$/.exec(name)?.[1] ?? []);
  return numbers.sort().at(-1) ?? "";
}
