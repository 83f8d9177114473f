import { isGenerated, isTest, type SourceFile } from "./source-files.ts";

const MAX_LINES = 500;
const MAX_FILES = 25;
/** Names that say nothing: whatever is put there could be named. */
const BANNED_NAMES = new Set(["common", "types", "type"]);
const BANNED_WORDS = new Set(["utils", "util", "helpers", "helper", "misc"]);

/** Folders and files, the generated ones apart, whose names say nothing. */
export function judgeName({ path }: SourceFile): string | undefined {
  if (isGenerated(path)) return undefined;
  for (const part of path.split("/")) {
    const name = part.replace(/\..*$/, "");
    const word = BANNED_NAMES.has(name) ? name : name.split("-").find((each) => BANNED_WORDS.has(each));
    if (word !== undefined) return `${path}: "${word}" says nothing; name what is in it`;
  }
  return undefined;
}

export function judgeLength({ path, text }: SourceFile): string | undefined {
  if (isGenerated(path) || isTest(path)) return undefined;
  const lines = text.split("\n").length - 1;
  return lines > MAX_LINES ? `${path}: ${lines} lines, and ${MAX_LINES} are the most; split it` : undefined;
}

/** Folders that nobody can take in at a glance; generated files do not count. */
export function findCrowdedFolders(files: readonly SourceFile[]): string[] {
  const own = files.filter(({ path }) => !isGenerated(path));
  return [...Map.groupBy(own, ({ path }) => path.slice(0, path.lastIndexOf("/")))]
    .filter(([, inside]) => inside.length > MAX_FILES)
    .map(
      ([folder, inside]) =>
        `${folder}/: ${inside.length} files, and ${MAX_FILES} are the most; give what belongs together a folder`,
    )
    .sort();
}
