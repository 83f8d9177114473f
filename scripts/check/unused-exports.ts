import { importsOf, withoutComments } from "./imports.ts";
import { isGenerated, isTest, type SourceFile } from "./source-files.ts";

/** A named declaration; what follows it in the file is its own affair. */
const EXPORTED =
  /^export\s+(?:declare\s+)?(?:async\s+)?(?:abstract\s+)?(const|let|function\*?|class|interface|type)\s+(\w+)/gm;
const WORD = /[A-Za-z_$][\w$]*/g;

/**
 * Exports that only tests need, and may: each with its reason. Contracts are generated, and are not looked at.
 */
export const ALLOWED: Readonly<Record<string, string>> = {
  "src/services/run/workflow-starts.ts startWorkflow":
    "how tests start a workflow; racks start theirs as their request begins",
  "src/store/postgres/fail-points.ts watchFailPoints": "how kill tests learn which fail points a process passes",
};

interface Reading {
  readonly file: SourceFile;
  readonly words: ReadonlyMap<string, number>;
  readonly imported: ReadonlySet<string>;
}

/** Measurements and suites for providers are tests as well: what only they use, the product does not need. */
const isForTests = (path: string): boolean =>
  isTest(path) || /^(bench|simulator\/testing|src\/capabilities\/conformance)\//.test(path);

/**
 * What is exported and serves nobody: a declaration that only tests use, or a value that no other file imports. Types that
 * describe what a file exports may be exported with it.
 */
export function findUnusedExports(files: readonly SourceFile[], allowed = ALLOWED): string[] {
  const readings = files.filter(({ path }) => !isGenerated(path)).map(readWords);
  const importers = importersOf(readings);
  return readings
    .filter(({ file }) => /^(src|simulator|console)\//.test(file.path) && !isForTests(file.path))
    .flatMap((reading) => faultsOf(reading, importers.get(reading.file.path) ?? [], allowed));
}

function faultsOf({ file, words }: Reading, importers: readonly Reading[], allowed: typeof ALLOWED): string[] {
  return exportsOf(file).flatMap(({ name, isType, line }) => {
    if (Object.hasOwn(allowed, `${file.path} ${name}`)) return [];
    const users = importers.filter((importer) => importer.words.has(name));
    if (users.some((user) => !isForTests(user.file.path))) return [];
    const at = `${file.path}:${line} ${name}`;
    const isUsedHere = (words.get(name) ?? 0) > 1;
    if (!isUsedHere)
      return [`${at} is used by ${users.length > 0 ? "tests alone; move it to test/" : "nobody; delete it"}`];
    return users.length === 0 && !isType ? [`${at} is imported by nobody; it need not be exported`] : [];
  });
}

function exportsOf({ text }: SourceFile) {
  const source = withoutComments(text);
  return [...source.matchAll(EXPORTED)].map(({ index, 1: keyword = "", 2: name = "" }) => ({
    name,
    isType: keyword === "type" || keyword === "interface",
    line: source.slice(0, index).split("\n").length,
  }));
}

function readWords(file: SourceFile): Reading {
  const words = new Map<string, number>();
  for (const [word] of withoutComments(file.text).matchAll(WORD)) words.set(word, (words.get(word) ?? 0) + 1);
  const imported = new Set(importsOf(file).flatMap(({ target }) => (target.kind === "file" ? [target.path] : [])));
  return { file, words, imported };
}

/** Who imports a file, through files that pass all of it on as well. */
function importersOf(readings: readonly Reading[]): ReadonlyMap<string, readonly Reading[]> {
  const importers = new Map<string, Reading[]>();
  for (const reading of readings) {
    for (const path of reading.imported) importers.set(path, [...(importers.get(path) ?? []), reading]);
  }
  for (const { file, imported } of readings.filter(({ file }) => /^export \* from/m.test(file.text))) {
    const onward = importers.get(file.path) ?? [];
    for (const path of imported) importers.set(path, [...(importers.get(path) ?? []), ...onward]);
  }
  return importers;
}
