import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Code, ConnectError } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { RunActionsService } from "../../../contract/millwright/v1/run_pb.js";
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

test("a script that changed on disk is what the next run takes; a run that goes on keeps its own until told otherwise", async () => {
  const machineId = await surface.addMachine("m-changed");
  const start = (requestId: string) => surface.runs.startRun({ requestId, machineId, planId: "plan-own" });
  const digestIn = async (runId: string) => {
    const [row] = await surface.db.query<{ digest: string }>(
      "select facts -> 'scripts' ->> 'own.sh' as digest from runs where id = $1",
      [runId],
    );
    return row?.digest;
  };
  const { runId } = await start("before");
  await surface.db.execute("update runs set state = 'FAILED' where id = $1", [runId]);
  writeFileSync(join(directory, "own.sh"), `${OWN}echo more\n`);
  const actions = surface.client(RunActionsService);
  const { run: again } = await actions.retryRun({ runId, requestId: "again" });
  expect(await digestIn(again?.runId ?? "")).toBe(await digestIn(runId));
  await surface.db.execute("update runs set state = 'FAILED' where id = $1", [again?.runId]);
  const { run: retried } = await actions.retryRun({
    runId: again?.runId ?? "",
    requestId: "once more",
    takeNewScripts: true,
  });
  const { script } = await surface.client(ScriptService).getScript({ ref: "own.sh" });
  expect(await digestIn(retried?.runId ?? "")).toBe(script?.digest);
  expect(await digestIn(runId)).not.toBe(script?.digest);
  await surface.db.execute("update runs set state = 'FAILED' where id = $1", [retried?.runId]);
  writeFileSync(join(directory, "own.sh"), OWN);
  expect(await digestIn((await start("after")).runId)).toBe(await digestIn(runId));
});

test("a directory that cannot be used any more refuses runs of scripts, and no others", async () => {
  const machineId = await surface.addMachine("m-unused");
  writeFileSync(join(directory, "no name.sh"), "");
  try {
    const start = (planId: string) => surface.runs.startRun({ requestId: planId, machineId, planId });
    const refused = await start("plan-own").catch((error: unknown) => ConnectError.from(error));
    expect(refused).toMatchObject({ code: Code.FailedPrecondition, rawMessage: expect.stringContaining("no name.sh") });
    expect((await start("plan/reboot")).runId).toMatch(/^run-/);
  } finally {
    rmSync(join(directory, "no name.sh"));
  }
});

test("a plan is kept although a script, an image or a cluster is not there yet, with a warning for each", async () => {
  const { warnings } = await surface.plans.createPlan({
    plan: {
      planId: "plan-to-come",
      steps: [
        { name: "own", kind: { case: "ssh", value: { scriptRef: "own.sh" } } },
        { name: "other", kind: { case: "ssh", value: { scriptRef: "to_come.sh" } } },
        { name: "image", kind: { case: "repave", value: { imageRef: "image-to-come" } } },
        { name: "join", kind: { case: "join", value: { clusterRef: "cluster-to-come" } } },
        { name: "own-cluster", kind: { case: "verify", value: {} } },
      ],
    },
  });
  expect(warnings).toEqual([
    'step other names the script "to_come.sh", which is not there yet',
    'step image names the image "image-to-come", which is not there yet',
    'step join names the cluster "cluster-to-come", which is not there yet',
  ]);
});

test("a directory that is not there, or a script whose name makes no sense, stops the start with the setting's name", () => {
  expect(() => loadRunbooks(join(directory, "none"))).toThrow(/scripts\.directory.*none/);
  const bad = mkdtempSync(join(tmpdir(), "millwright-scripts-"));
  // What lies beside playbooks for other purposes stops nobody.
  mkdirSync(join(bad, "roles.yml"));
  writeFileSync(join(bad, ".gitlab-ci.yml"), "");
  writeFileSync(join(bad, "large.yml"), "#".repeat(100 * 1_024));
  writeFileSync(join(bad, "site.yml"), "- hosts: all\n");
  expect(loadRunbooks(bad).refs.filter((ref) => !ref.endsWith(".sh"))).toEqual(["site.yml"]);
  writeFileSync(join(bad, "my script.sh"), "");
  expect(() => loadRunbooks(bad)).toThrow(/scripts\.directory.*my script\.sh/);
  rmSync(bad, { recursive: true });
});
