import { afterEach, describe, expect, test } from "vitest";
import { Run_Phase } from "../../../contract/baremetal/v1/baremetal_pb.js";
import { createCluster } from "../../../src/services/catalog/clusters.ts";
import { createImage } from "../../../src/services/catalog/images.ts";
import { type RunSurface, startRunSurface, tester } from "../../support/run-bench.ts";

let surface: RunSurface | undefined;
afterEach(() => surface?.close());

/** Nothing of what is on record leads anywhere: a fake machine never leaves the process. */
async function aServer(options: {
  speed: "default" | "slow" | "instant";
  failures?: readonly ("join" | "verify" | "rma" | "reboot")[];
}) {
  surface = await startRunSurface({ controller: true, fake: options });
  const { deps } = surface;
  await createCluster(deps, tester, {
    name: "default-cluster",
    apiUrl: "https://nowhere.example:6443",
    kubeconfig: "{}",
  });
  await createImage(deps, tester, {
    name: "ubuntu:22.04-k8s",
    kind: "iso",
    location: "https://nowhere.example/ubuntu.iso",
    digest: `sha256:${"cd".repeat(32)}`,
    successProof: "",
  });
  await surface.addMachine("m-fake", "fake");
  return surface;
}

const ALL_KINDS = [
  { name: "arm", timeoutSeconds: 60, kind: { case: "netboot", value: { mode: "PXE" } } },
  { name: "install", timeoutSeconds: 60, kind: { case: "repave", value: { imageRef: "ubuntu:22.04-k8s" } } },
  { name: "restart", timeoutSeconds: 60, kind: { case: "reboot", value: {} } },
  { name: "restart-in-band", timeoutSeconds: 60, kind: { case: "reboot", value: { mode: "in_band" } } },
  { name: "script", timeoutSeconds: 60, kind: { case: "ssh", value: { scriptRef: "verify_network.sh" } } },
  { name: "network", timeoutSeconds: 60, kind: { case: "net", value: { params: { action: "reconfigure" } } } },
  { name: "enter", timeoutSeconds: 60, kind: { case: "join", value: {} } },
  { name: "confirm", timeoutSeconds: 60, kind: { case: "verify", value: {} } },
  { name: "return", timeoutSeconds: 60, kind: { case: "rma", value: { reason: "demonstration" } } },
] as const;

describe("a fake machine", () => {
  test("goes through steps of all eight kinds, and shows what each did", async () => {
    const { plans, runs, ended, logs, machines } = await aServer({ speed: "default" });
    await plans.createPlan({ plan: { planId: "everything", displayName: "All kinds", steps: [...ALL_KINDS] } });
    const { runId } = await runs.startRun({ machineId: "m-fake", requestId: "r", planId: "everything" });
    const run = await ended(runId);
    expect(run.error?.message ?? "").toBe("");
    expect(run.phase).toBe(Run_Phase.SUCCEEDED);
    expect(run.steps).toHaveLength(ALL_KINDS.length);
    const text = (await logs(runId)).map(({ data }) => Buffer.from(data).toString()).join("");
    for (const prefix of ["netboot", "reboot", "repave", "join", "rma", "ssh", "net"])
      expect(text).toContain(`[${prefix}]`);
    expect((await machines.getMachine({ machineId: "m-fake" })).status?.conditions).toContainEqual(
      expect.objectContaining({ type: "InCustomerCluster", status: true }),
    );
  });

  test.each(["REPAVE", "REBOOT", "UPGRADE", "NET_RECONFIG", "RMA"])(
    "succeeds at %s at once when it is instant",
    async (type) => {
      const { runs, ended } = await aServer({ speed: "instant" });
      if (type === "UPGRADE") {
        const repave = await runs.startRun({ machineId: "m-fake", requestId: "before", type: "REPAVE" });
        await ended(repave.runId);
      }
      const { runId } = await runs.startRun({ machineId: "m-fake", requestId: "r", type });
      const run = await ended(runId);
      expect(run.error?.message ?? "").toBe("");
      expect(run.phase).toBe(Run_Phase.SUCCEEDED);
    },
  );

  test("fails where it was told to, and the run says so", async () => {
    const { runs, ended } = await aServer({ speed: "instant", failures: ["reboot"] });
    const { runId } = await runs.startRun({ machineId: "m-fake", requestId: "r", type: "REBOOT" });
    expect(await ended(runId)).toMatchObject({
      phase: Run_Phase.FAILED,
      error: { message: expect.stringContaining("[reboot] this fake provider was set to fail at reboot") },
    });
  });

  test("stops at once when its run is canceled", async () => {
    const { runs, ended } = await aServer({ speed: "slow" });
    const { runId } = await runs.startRun({ machineId: "m-fake", requestId: "r", type: "REBOOT" });
    await runs.cancelRun({ runId });
    expect((await ended(runId)).phase).toBe(Run_Phase.CANCELED);
  });
});

test("there is no provider fake unless the server was told to have it", async () => {
  surface = await startRunSurface();
  await surface.addMachine("m-fake", "fake");
  await expect(surface.runs.startRun({ machineId: "m-fake", requestId: "r", type: "REBOOT" })).rejects.toThrow(/fake/);
});
