import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { root } from "../run-tool.ts";
import { importsOf } from "./imports.ts";
import { judgeImport, LAYERS, layerOf } from "./layers.ts";
import { readSourceFiles } from "./source-files.ts";

const scratches: string[] = [];
afterEach(async () => {
  for (const scratch of scratches.splice(0)) await rm(scratch, { recursive: true, force: true });
});

/** What the rule says about a checkout that holds these files alone. */
async function faultsOf(files: Readonly<Record<string, string>>): Promise<string[]> {
  const scratch = await mkdtemp(join(tmpdir(), "millwright-layers-"));
  scratches.push(scratch);
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(scratch, path)), { recursive: true });
    await writeFile(join(scratch, path), text);
  }
  return (await readSourceFiles(scratch)).flatMap(importsOf).flatMap((each) => judgeImport(each) ?? []);
}

describe("the layer rule refuses", () => {
  test.each([
    ["src/kernel/decide.ts", "../capabilities/call.ts", "kernel may import nothing outside itself"],
    ["src/kernel/decide.ts", "node:crypto", "kernel does no input and output"],
    ["src/kernel/decide.ts", "zod", "the package zod, which is not for kernel"],
    ["src/capabilities/call.ts", "../lifecycles/rack/rack.ts", "capabilities may import only kernel"],
    ["src/capabilities/call.ts", "vitest", "the package vitest, which is not for capabilities"],
    ["src/lifecycles/rack/handlers.ts", "../../store/database.ts", "lifecycles may import only kernel, capabilities"],
    ["src/store/work.ts", "../engine/pass.ts", "store may import only"],
    ["src/store/work.ts", "../telemetry/log.ts", "store may import only"],
    ["src/engine/pass.ts", "../providers/redfish/client.ts", "engine may import only"],
    ["src/engine/pass.ts", "pg", "the package pg, which is not for engine"],
    ["src/services/racks.ts", "../engine/pass.ts", "services may import only"],
    ["src/services/racks.ts", "../../contract/forge/forge_pb.js", "services may import only"],
    ["src/services/racks.ts", "fastify", "the package fastify, which is not for services"],
    ["src/api/server.ts", "../store/work.ts", "api may import only"],
    ["src/api/server.ts", "../engine/pass.ts", "api may import only"],
    ["src/providers/redfish/client.ts", "../../store/secrets.ts", "providers may import only kernel, capabilities"],
    ["src/providers/redfish/client.ts", "../ipmi/client.ts", "providers do not know each other"],
    ["src/providers/transport/breaker.ts", "../ipmi/client.ts", "providers do not know each other"],
    ["src/telemetry/log.ts", "../config.ts", "telemetry may import only kernel"],
    ["src/config/load.ts", "../services/racks.ts", "config may import only kernel"],
    ["src/wiring/engine.ts", "../cli/main.ts", "wiring may import only"],
    ["src/main.ts", "./cli/main.ts", "main may import only"],
    ["src/cli/main.ts", "../services/roles.ts", "cli may import only contract"],
    ["src/cli/main.ts", "../kernel/errors.ts", "cli may import only contract"],
    ["src/services/racks.ts", "../wiring/handlers.ts", "services may import only"],
    ["src/services/racks.ts", "../main.ts", "services may import only"],
    ["simulator/site.ts", "../src/kernel/duration.ts", "simulator may import nothing outside itself"],
    ["simulator/site.test.ts", "../src/kernel/duration.ts", "the simulator stands alone, its tests too"],
    ["simulator/site.ts", "pg", "the package pg, which is not for simulator"],
    ["console/src/app.tsx", "../../src/kernel/errors.ts", "console may import only contract"],
    ["src/helpful/thing.ts", "../kernel/errors.ts", "is in no layer"],
  ])("that %s imports %s", async (path, target, fault) => {
    const faults = await faultsOf({
      [path]: `// first line\nimport { it } from "${target}";\nexport const kept = it;\n`,
    });
    expect(faults).toHaveLength(1);
    expect(faults[0]).toContain(`${path}:2 `);
    expect(faults[0]).toContain(fault);
  });

  test.each([
    'import type { Unit } from "../store/unit.ts";',
    'import type Unit from "../store/unit.ts";',
    'import type * as store from "../store/unit.ts";',
    'import { type Unit } from "../store/unit.ts";',
    'import {\n  // it\'s needed\n  type Unit, // and "this"\n} from "../store/unit.ts";',
    'import { "odd name" as odd } from "../store/unit.ts";',
    'export type { Unit } from "../store/unit.ts";',
    'export type * from "../store/unit.ts";',
    'export type * as store from "../store/unit.ts";',
    'export { type Unit } from "../store/unit.ts";',
    'export type Kept = import("../store/unit.ts").Unit;',
    'export type Kept = readonly import(\n  "../store/unit.ts"\n).Unit[];',
    'export type All = typeof import("../store/unit.ts");',
    'export const kept = null as import("../store/unit.ts", { with: { "resolution-mode": "import" } }).Unit | null;',
    'export function keep(unit: import("../store/unit.ts").Unit): void {}',
    'import store = require("../store/unit.ts");',
    'import type store = require("../store/unit.ts");',
    'export import store = require("../store/unit.ts");',
    'declare module "../store/unit.ts" {\n  interface Unit {}\n}',
    '/// <reference path="../store/unit.ts" />',
  ])("a type, however it is reached: %s", async (text) => {
    const faults = await faultsOf({ "src/kernel/decide.ts": `${text}\n` });
    expect(faults).toHaveLength(1);
    expect(faults[0]).toContain("imports src/store/unit.ts, but kernel may import nothing outside itself");
  });

  test("the types of a package that is not for the layer", async () => {
    const faults = await faultsOf({
      "src/services/a.ts": 'import type { Pool } from "pg";\n',
      "src/services/b.ts": 'export type Pool = import("pg").Pool;\n',
      "src/services/c.ts": '/// <reference types="pg" />\n',
    });
    expect(faults).toHaveLength(3);
    for (const fault of faults) expect(fault).toContain("the package pg, which is not for services");
  });

  test("what is imported late, for its types alone, or passed on", async () => {
    const faults = await faultsOf({
      "src/kernel/a.ts": 'export const late = () => import("../store/work.ts");\n',
      "src/kernel/b.ts": 'import type { Database } from "../store/database.ts";\nexport type Kept = Database;\n',
      "src/kernel/c.ts": 'export { wake } from "../store/work.ts";\n',
      "src/services/d.ts": "export const hidden = (name: string) => import(name);\n",
    });
    expect(faults.map((fault) => fault.split(" ")[0])).toEqual([
      "src/kernel/a.ts:1",
      "src/kernel/b.ts:1",
      "src/kernel/c.ts:1",
      "src/services/d.ts:1",
    ]);
  });
});

describe("the layer rule allows", () => {
  test.each([
    ["src/store/work.ts", "../lifecycles/rack/rack.ts"],
    ["src/store/work.ts", "pg"],
    ["src/store/work.ts", "node:fs"],
    ["src/services/racks.ts", "../store/work.ts"],
    ["src/api/server.ts", "../../contract/forge/forge_pb.js"],
    ["src/api/server.ts", "fastify"],
    ["src/capabilities/conformance/power-control.ts", "vitest"],
    ["src/providers/redfish/client.ts", "../transport/bmc-gateway.ts"],
    ["src/config/value-kinds.ts", "../services/call/roles.ts"],
    ["src/engine/watch.ts", "../store/event-source.ts"],
    ["src/wiring/handlers.ts", "../providers/redfish/shelf/redfish-shelf-provider.ts"],
    ["src/main.ts", "./wiring/server.ts"],
    ["src/cli/main.ts", "../../contract/forge/forge_pb.js"],
    ["src/cli/main.ts", "commander"],
    ["console/src/app.tsx", "../../contract/forge/forge_pb.js"],
    ["console/src/app.tsx", "react"],
    ["src/kernel/paths.test.ts", "../wiring/things/all-things.ts"],
    ["test/integration/any.test.ts", "../../src/wiring/handlers.ts"],
    ["scripts/generate/any.ts", "../../src/cli/describe.ts"],
    ["bench/run.ts", "pg"],
  ])("that %s imports %s", async (path, target) => {
    expect(await faultsOf({ [path]: `import { it } from "${target}";\nexport const kept = it;\n` })).toEqual([]);
  });
});

test("every folder of the sources is in a layer, and the table speaks of no layer that it does not have", async () => {
  const files = await readSourceFiles(root);
  expect(files.length).toBeGreaterThan(100);
  expect(files.filter(({ path }) => layerOf(path) === undefined)).toEqual([]);
  const named = Object.values(LAYERS).flatMap((layer) => layer.imports);
  expect(named.filter((name) => !Object.hasOwn(LAYERS, name))).toEqual([]);
});
