import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Code, ConnectError } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { Script_Origin, ScriptService } from "../../../contract/millwright/v1/script_pb.js";
import { loadRunbooks } from "../../../src/wiring/runbook-files.ts";
import { type RunSurface, startRunSurface } from "../../support/run-bench.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";

let directory: string;
const OWN = "#!/bin/sh\n# Ours. Variables: depth\necho own\n";
let surface: RunSurface;

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), "millwright-scripts-"));
  writeFileSync(join(directory, "own.sh"), OWN);
  writeFileSync(join(directory, "drain_check.sh"), "exit 0\n");
  writeFileSync(join(directory, "notes.txt"), "no script\n");
  surface = await startRunSurface({ runbooks: loadRunbooks(directory) });
  await surface.plans.createPlan({
    plan: { planId: "plan-own", steps: [{ name: "own", kind: { case: "ssh", value: { scriptRef: "own.sh" } } }] },
  });
});
afterAll(async () => {
  await surface.close();
  rmSync(directory, { recursive: true });
});

test("shipped scripts and the site's are listed, with what they do and which plans run them", async () => {
  const { scripts } = await surface.client(ScriptService).listScripts({});
  expect(scripts.map(({ ref }) => ref)).toEqual([
    "cordon_node.sh",
    "drain_check.sh",
    "drain_node.sh",
    "own.sh",
    "uncordon_node.sh",
    "upgrade_k8s.sh",
    "verify_network.sh",
  ]);
  const found = (ref: string) => scripts.find((script) => script.ref === ref);
  expect(found("own.sh")).toMatchObject({
    digest: expect.stringMatching(/^sha256:[0-9a-f]{64}$/),
    sizeBytes: OWN.length,
    description: "Ours.",
    variables: "depth",
    origin: Script_Origin.SITE,
    planIds: ["plan-own"],
  });
  expect(found("drain_check.sh")).toMatchObject({ origin: Script_Origin.SITE, planIds: ["plan/rma"] });
  expect(found("verify_network.sh")).toMatchObject({ origin: Script_Origin.SHIPPED, planIds: ["plan/net-reconfig"] });
  for (const { ref, origin, description } of scripts)
    if (origin === Script_Origin.SHIPPED) expect(description, ref).not.toBe("");
});

test("one script is shown with its text; one that is not there is NOT_FOUND", async () => {
  const client = surface.client(ScriptService);
  expect(await client.getScript({ ref: "own.sh" })).toMatchObject({ text: OWN, script: { ref: "own.sh" } });
  const error = ConnectError.from(
    await client.getScript({ ref: "../../etc/passwd" }).catch((reason: unknown) => reason),
  );
  expect(error.code).toBe(Code.NotFound);
  expect(error.rawMessage).toContain("../../etc/passwd");
});

test("a directory that is not there, or a script whose name makes no sense, stops the start with the setting's name", () => {
  expect(() => loadRunbooks(join(directory, "none"))).toThrow(/scripts\.directory.*none/);
  const bad = mkdtempSync(join(tmpdir(), "millwright-scripts-"));
  writeFileSync(join(bad, "my script.sh"), "");
  expect(() => loadRunbooks(bad)).toThrow(/scripts\.directory.*my script\.sh/);
  rmSync(bad, { recursive: true });
});
