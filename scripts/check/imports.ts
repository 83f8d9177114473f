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

/**
 * Every way in which a file can depend on another one. Types count as values do: a layer that names another's types knows it.
 *
 * `import … from "x"`, `export … from "x"` and `import "x"`, over several lines too. Between the braces there may be comments and
 * quoted names.
 */
const STATIC =
  /^[ \t]*(?:import|export)\b(?:(?:[^;"'`/]|\/\/[^\n]*|["'][^"'\n]*["']\s+as\b)*?\bfrom)?\s*["']([^"']+)["']/gm;
/** `await import("x")`, and in types `import("x").T` and `typeof import("x")`. */
const CALLED = /\bimport\(\s*(?:["']([^"']+)["']\s*[,)])?/g;
/** `import x = require("x")`, and what a module says of another one's types: `declare module "x"`. */
const OTHER =
  /^[ \t]*(?:(?:export\s+)?import\s+(?:type\s+)?\w+\s*=\s*require\(|declare\s+module\b)\s*["']([^"']+)["']/gm;
/** `/// <reference path="x" />`, which is a comment to all but the compiler. */
const REFERENCE = /^[ \t]*\/\/\/\s*<reference\s+(path|types)\s*=\s*["']([^"']+)["']/gm;
/** Strings, templates and regular expressions come first: `/*` in one of them begins no comment. */
const LITERAL_OR_COMMENT =
  /"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`(?:\\[\s\S]|[^`\\])*`|(?<=[=(,:!&|?;{}[\n]\s*)\/(?![*/])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n[])+\/|(\/\/[^\n]*|\/\*[\s\S]*?\*\/)/g;

/** The text with its comments blanked, line by line where it was: prose may speak of imports. */
export const withoutComments = (text: string): string =>
  text.replace(LITERAL_OR_COMMENT, (found, comment: string | undefined) =>
    comment === undefined ? found : comment.replace(/[^\n]/g, " "),
  );

/** All that a file imports. */
export function importsOf({ path, text }: SourceFile): Import[] {
  const source = withoutComments(text);
  const found = [STATIC, CALLED, OTHER].flatMap((form) =>
    [...source.matchAll(form)].map((match) => ({ match, specifier: match[1] })),
  );
  const referred = [...text.matchAll(REFERENCE)].map((match) => ({
    match,
    specifier: match[1] === "path" ? `./${match[2]}` : match[2],
  }));
  return [...found, ...referred]
    .map(({ match, specifier }) => ({ from: path, line: lineAt(text, match), target: targetOf(path, specifier) }))
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
