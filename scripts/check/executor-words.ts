import { withoutComments } from "./imports.ts";
import { isTest, type SourceFile } from "./source-files.ts";

/** What every run goes through, whatever it works on. */
const EXECUTOR = /^src\/runs\/(executor\/|children\/|model\/plan\/resolve-plan\.ts$)/;
const STEPS = "src/runs/steps/";
/** The parts of identifiers and the words of texts: `overIpmi` has two. */
const PART = /[A-Z]?[a-z]+|[A-Z]+(?![a-z])/g;
const PROVIDER = /^src\/providers\/([^/]+)\//;
const STEP_KIND = /^ {2}kind: "(\w+)",$/gm;

/** What belongs to one kind of target: steps declare it, or `src/runs/targets/` says it. */
const OF_TARGETS = [
  "machine",
  "install",
  "installation",
  "cluster",
  "node",
  "condition",
  "bmc",
  "boot",
  "rack",
  "shelf",
  "fleet",
];
/** What the executor knows of steps under such a word: the file that says it, and who asks that file. */
const EXCEPTIONS: Readonly<Record<string, readonly string[]>> = {
  "src/runs/executor/next-boot.ts": ["boot"],
  // Any step may report what it has seen of a condition; the kind of target decides what becomes of that.
  "src/runs/executor/progress.ts": ["condition"],
};

/** The technologies that there are providers for. */
export const technologiesOf = (files: readonly SourceFile[]): string[] =>
  [...new Set(files.flatMap(({ path }) => PROVIDER.exec(path)?.[1] ?? []))].filter((name) => name !== "transport");

/** The kinds of steps that there are. */
export const stepKindsOf = (files: readonly SourceFile[]): string[] =>
  files
    .filter(({ path }) => path.startsWith(STEPS) && !isTest(path))
    .flatMap(({ text }) => [...text.matchAll(STEP_KIND)].map(([, kind]) => kind as string));

export interface ForeignWords {
  readonly technologies: readonly string[];
  readonly stepKinds: readonly string[];
}

/** The executor carries out steps, whatever they do and on whatever: code that names that belongs into a step, a target or a provider. */
export function findForeignWords({ path, text }: SourceFile, { technologies, stepKinds }: ForeignWords): string[] {
  if (!EXECUTOR.test(path) || isTest(path)) return [];
  const foreign = [...technologies, ...OF_TARGETS].filter((word) => !EXCEPTIONS[path]?.includes(word));
  return withoutComments(text)
    .split("\n")
    .flatMap((line, at) => {
      const own = line.replace(/from "[^"]*"/, ""); // the name of a file that is imported is another one's
      const parts = new Set([...own.matchAll(PART)].map(([part]) => part.toLowerCase().replace(/s$/, "")));
      const named = foreign.find((word) => parts.has(word)) ?? stepKinds.find((kind) => own.includes(`"${kind}"`));
      return named === undefined
        ? []
        : [`${path}:${at + 1} names ${named}; the executor knows steps and capabilities only`];
    });
}
