import { withoutComments } from "./imports.ts";
import { isTest, type SourceFile } from "./source-files.ts";

const EXECUTOR = "src/runs/executor/";
/** The parts of identifiers and the words of texts: `overIpmi` has two. */
const PART = /[A-Z]?[a-z]+|[A-Z]+(?![a-z])/g;
const PROVIDER = /^src\/providers\/([^/]+)\//;

/** The technologies that there are providers for. */
export const technologiesOf = (files: readonly SourceFile[]): string[] =>
  [...new Set(files.flatMap(({ path }) => PROVIDER.exec(path)?.[1] ?? []))].filter((name) => name !== "transport");

/** The executor carries out steps, whatever hardware they are for: code that names a technology belongs into a step or a provider. */
export function findTechnologies({ path, text }: SourceFile, technologies: readonly string[]): string[] {
  if (!path.startsWith(EXECUTOR) || isTest(path)) return [];
  return withoutComments(text)
    .split("\n")
    .flatMap((line, at) => {
      const parts = new Set([...line.matchAll(PART)].map(([part]) => part.toLowerCase()));
      const named = technologies.find((technology) => parts.has(technology));
      return named === undefined ? [] : [`${path}:${at + 1} names ${named}; the executor knows capabilities only`];
    });
}
