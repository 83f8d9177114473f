import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, symlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { nameAt, readLockFile, readManifest } from "../../scripts/dependencies/lock-file.ts";
import { openProcessBench, type ProcessBench, ROOT } from "../support/processes/process-bench.ts";
import { killAll, processesTold } from "../support/processes/process-table.ts";
import { devTokenOf, startServerProcess } from "../support/processes/server-process.ts";

/** All that stands at the top of the package. Anything else would be shipped by mistake. */
const TOP = ["CHANGELOG.md", "LICENSE", "README.md", "SECURITY.md", "bin", "dist", "docs", "package.json"];
const IN_DIST = ["console", "contract", "migrations", "netboot", "package.json", "runbooks", "simulator", "src"];

describe("the package that npm pack makes", () => {
  let bench: ProcessBench;
  let installed: string;
  let program: string;

  beforeAll(async () => {
    bench = openProcessBench();
    const modules = join(bench.directory, "app", "node_modules");
    installed = join(modules, "millwright");
    mkdirSync(installed, { recursive: true });
    const packed = execFileSync("npm", ["pack", "--json", "--pack-destination", bench.directory], {
      cwd: ROOT,
      encoding: "utf8",
      stdio: ["ignore", "pipe", "ignore"],
      env: { ...process.env, npm_config_cache: join(bench.directory, "npm") },
    });
    const tarball = /"filename": "([^"]+)"/.exec(packed)?.[1] ?? "";
    execFileSync("tar", ["-xzf", join(bench.directory, tarball), "-C", installed, "--strip-components", "1"]);
    await linkDependencies(modules);
    program = join(modules, ".bin", "millwright");
    mkdirSync(dirname(program), { recursive: true });
    symlinkSync("../millwright/bin/millwright", program);
  }, 180_000);

  afterAll(async () => {
    killAll(processesTold(bench.directory));
    await bench.close();
  });

  test("holds what runs, and neither sources nor tests nor tools", () => {
    expect(readdirSync(installed).sort()).toEqual(TOP);
    expect(readdirSync(join(installed, "dist")).sort()).toEqual(IN_DIST);
    const files = readdirSync(installed, { recursive: true, encoding: "utf8" });
    expect(files).toContain("docs/reference/sbom.cdx.json");
    expect(files.filter((file) => /\.ts$|\.test\.|\.map$/.test(file))).toEqual([]);
  });

  test("says its version", async () => {
    const { version } = await readManifest(ROOT);
    const said = bench.start({ command: program, args: ["--version"] });
    expect(await said.exited, said.transcript()).toEqual({ code: 0, signal: null });
    expect(said.stdout()).toContain(version);
  });

  test("serves, with its simulator, its migrations and its pages, and is its own client", async () => {
    const server = await startServerProcess(bench, { command: "dev", program });
    expect((await server.get("/api/v1/docs")).text).toContain("<html");
    const console = await server.get("/");
    expect(console.status).toBe(200);
    const [, script = ""] = /src="(\/assets\/[^"]+\.js)"/.exec(console.text) ?? [];
    expect((await server.get(script)).status).toBe(200);
    const list = bench.start({
      command: program,
      args: ["machine", "list", "-o", "json", "--server", server.httpUrl],
      env: { MILLWRIGHT_TOKEN: devTokenOf(server) },
    });
    expect(await list.exited, list.transcript()).toEqual({ code: 0, signal: null });
    expect(JSON.parse(list.stdout())).not.toEqual([]);
    server.process.signal("SIGTERM");
    expect(await server.process.exited, server.process.transcript()).toEqual({ code: 0, signal: null });
  }, 60_000);
});

/** As `npm install` lays it out: what the package needs beside it, and nothing that only its development needs. */
async function linkDependencies(modules: string): Promise<void> {
  const { packages } = await readLockFile(ROOT);
  for (const [place, locked] of packages) {
    const isBeside = place === `node_modules/${nameAt(place)}`;
    if (!isBeside || locked.dev === true || !existsSync(join(ROOT, place))) continue;
    const link = join(modules, nameAt(place));
    mkdirSync(dirname(link), { recursive: true });
    symlinkSync(join(ROOT, place), link);
  }
}
