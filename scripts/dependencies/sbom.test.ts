import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { beforeAll, describe, expect, test } from "vitest";
import { root } from "../run-tool.ts";
import { readLockFile, readManifest } from "./lock-file.ts";
import { sbom } from "./sbom.ts";

interface Bom {
  readonly components: readonly { readonly purl: string; readonly hashes: readonly { readonly content: string }[] }[];
  readonly dependencies: readonly { readonly ref: string; readonly dependsOn: readonly string[] }[];
  readonly metadata: { readonly component: { readonly purl: string } };
}

const purls = ({ components }: Pick<Bom, "components">) => new Set(components.map(({ purl }) => purl));
const without = (all: ReadonlySet<string>, others: ReadonlySet<string>) => [...all].filter((one) => !others.has(one));

describe("the list of what we ship", () => {
  let ours: Bom;
  beforeAll(async () => {
    ours = JSON.parse(sbom(await readLockFile(root), await readManifest(root))) as Bom;
  });

  test("names what npm names for an installation, and nothing that npm does not know", async () => {
    const [production, everything] = await Promise.all([npmSbom("--omit=dev"), npmSbom()]);
    expect(production.size).toBeGreaterThan(30);
    const workspaces = [...production].filter((one) => one.startsWith("pkg:npm/millwright-"));
    expect(without(production, purls(ours))).toEqual(workspaces);
    expect(without(purls(ours), everything)).toEqual([]);
  });

  test("holds no tool that is only for development", () => {
    expect([...purls(ours)].filter((purl) => /typescript|vitest|biome/.test(purl))).toEqual([]);
  });

  test("gives each a hash, and says of each who needs it", () => {
    const refs = new Set(ours.dependencies.map(({ ref }) => ref));
    const needed = new Set(ours.dependencies.flatMap(({ dependsOn }) => dependsOn));
    expect(without(needed, refs)).toEqual([]);
    expect(without(purls(ours), needed)).toEqual([]);
    for (const { hashes } of ours.components) expect(hashes[0]?.content).toMatch(/^[0-9a-f]{128}$/);
  });
});

/** The same, by npm: an implementation that is not ours. */
async function npmSbom(...flags: readonly string[]): Promise<ReadonlySet<string>> {
  const { stdout } = await promisify(execFile)(
    "npm",
    ["sbom", "--sbom-format", "cyclonedx", "--package-lock-only", ...flags],
    { cwd: root, maxBuffer: 32 << 20 },
  );
  return purls(JSON.parse(stdout) as Bom);
}
