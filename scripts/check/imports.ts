import { posix } from "node:path";
import type { SourceFile } from "./source-files.ts";

export interface Import {
  /** The file that imports, from the root. */
  readonly from: string;
  readonly line: number;
  /** A file from the root, a package (`pg`, `@scope/name`), a built-in (`node:fs`), or what could not be read. */
  readonly target:
    | { readonly kind: "file"; readonly path: string }
    | { readonly kind: "package"; readonly name: string }
    | { readonly kind: "builtin"; readonly name: string }
    | { readonly kind: "computed" };
}

/** `import … from "x"`, `export … from "x"` and `import "x"`, over several lines too; type imports count as any other. */
const STATIC = /^[ \t]*(?:import|export)\b(?:[^;"'`]*?\bfrom)?\s*["']([^"']+)["']/gm;
const DYNAMIC = /\bimport\(\s*(?:["']([^"']+)["']\s*\)|)/g;
/** Prose in comments may speak of imports. Strings are left alone: none of ours looks like a comment with an import in it. */
const COMMENTS = /^[ \t]*\/\/.*$|\/\*[\s\S]*?\*\//gm;

/** All that a file imports. */
export function importsOf({ path, text }: SourceFile): Import[] {
  const source = text.replace(COMMENTS, (comment) => comment.replace(/[^\n]/g, " "));
  const found = [...source.matchAll(STATIC), ...source.matchAll(DYNAMIC)];
  return found
    .map((match) => ({ from: path, line: lineAt(source, match), target: targetOf(path, match[1]) }))
    .toSorted((a, b) => a.line - b.line);
}

const lineAt = (source: string, { index, 0: text }: RegExpExecArray): number =>
  source.slice(0, index + text.length).split("\n").length;

function targetOf(from: string, specifier: string | undefined): Import["target"] {
  if (specifier === undefined) return { kind: "computed" };
  if (specifier.startsWith(".")) return { kind: "file", path: posix.join(posix.dirname(from), specifier) };
  if (specifier.startsWith("node:")) return { kind: "builtin", name: specifier };
  const words = specifier.split("/");
  return { kind: "package", name: words.slice(0, specifier.startsWith("@") ? 2 : 1).join("/") };
}
