import { describe, expect, test } from "vitest";
import { importsOf } from "./imports.ts";

const targets = (text: string, path = "src/store/work.ts") =>
  importsOf({ path, text }).map(({ line, target }) => ({ line, ...target }));

describe("the imports of a file", () => {
  test("are found however they are written", () => {
    const text = [
      'import { a } from "./journal.ts";',
      'import type { B } from "../kernel/decide.ts";',
      "import {",
      "  c,",
      "  type D,",
      "} from '../../contract/forge/forge_pb.js';",
      'export { e } from "./claims.ts";',
      'export * from "./locks.ts";',
      'import "node:fs";',
      'import pg, { type Pool } from "pg";',
      'import * as wkt from "@bufbuild/protobuf/wkt";',
      'const late = async () => (await import("../engine/pass.ts")).makePass;',
      "const later = await import(",
      '  "fastify"',
      ");",
    ].join("\n");
    expect(targets(text)).toEqual([
      { line: 1, kind: "file", path: "src/store/journal.ts" },
      { line: 2, kind: "file", path: "src/kernel/decide.ts" },
      { line: 6, kind: "file", path: "contract/forge/forge_pb.js" },
      { line: 7, kind: "file", path: "src/store/claims.ts" },
      { line: 8, kind: "file", path: "src/store/locks.ts" },
      { line: 9, kind: "builtin", name: "node:fs" },
      { line: 10, kind: "package", name: "pg" },
      { line: 11, kind: "package", name: "@bufbuild/protobuf" },
      { line: 12, kind: "file", path: "src/engine/pass.ts" },
      { line: 15, kind: "package", name: "fastify" },
    ]);
  });

  test("that a program works out while it runs are told as such", () => {
    expect(targets("const module = await import(new URL(name, base).href);")).toEqual([{ line: 1, kind: "computed" }]);
  });

  test("are not what comments say, nor what is merely exported", () => {
    const text = [
      '// import { a } from "../engine/pass.ts";',
      "/**",
      ' * import { a } from "../engine/pass.ts";',
      " */",
      "export const from = 1;",
      'export const text = "../engine/pass.ts";',
      'export function load(): string {\n  return "pg";\n}',
    ].join("\n");
    expect(targets(text)).toEqual([]);
  });
});
