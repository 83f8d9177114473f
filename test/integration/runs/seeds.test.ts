import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { Code, ConnectError } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Run_Phase } from "../../../contract/baremetal/v1/baremetal_pb.js";
import { RunService as AllRunsService, RunActionsService } from "../../../contract/millwright/v1/run_pb.js";
import { createCloudInit, deleteCloudInit } from "../../../src/services/catalog/cloud-init.ts";
import { createImage } from "../../../src/services/catalog/images.ts";
import { createPlan } from "../../../src/services/run/plans.ts";
import { storeOf } from "../../../src/store/lifecycle/things.ts";
import { allStores } from "../../../src/wiring/things/all-things.ts";
import { eventually } from "../../support/eventually.ts";
import { type RunBench, startRunBench, startRunSurface, tester } from "../../support/run-bench.ts";

/** Machines whose BMCs download media, and whose installers see nothing of a medium's address. */
const HIDING = ["media_downloaded", "medium_url_hidden"];
const SECOND = "/redfish/v1/Managers/bmc/VirtualMedia/Cd2/Actions/VirtualMedia.InsertMedia";

let bench: RunBench;
let web: Server;
let unused: string[];
let plans = 0;
beforeAll(async () => {
  bench = await startRunBench({ servesSeeds: true });
  web = createServer((_, response) => response.end("a medium")).listen(0, "127.0.0.1");
  await once(web, "listening");
  const [known] = await bench.control<{ digest: string }[]>("GET", "/images");
  const location = `http://127.0.0.1:${(web.address() as AddressInfo).port}/ubuntu-22.04-k8s.iso`;
  for (const seed of ["", "nocloud", "kickstart"])
    await createImage(bench.deps, tester, {
      name: `image-${seed || "without"}`,
      kind: "iso",
      location,
      digest: known?.digest ?? "",
      successProof: "ssh",
      seed,
    });
  await createCloudInit(bench.deps, tester, { name: "mine", content: "#cloud-config\npackages: [kept]\n" });
  unused = bench.simulated.map(({ machine_id }) => machine_id);
});
afterAll(async () => {
  web.close();
  await bench.close();
});

async function machine(profile: readonly string[] = HIDING): Promise<string> {
  const id = unused.shift();
  if (id === undefined) throw new Error("there is no machine left");
  await bench.control("PUT", `/devices/${id}/profile`, { profile });
  return id;
}

async function start(machineId: string, image: string, document = "", on: Pick<RunBench, "deps" | "runs"> = bench) {
  const planId = `plan-${++plans}`;
  const payload = { image_ref: image, cloud_init_ref: document };
  const steps = [{ name: "install", kind: "repave", payload, timeoutSeconds: 60, maxRetries: 0 }];
  await createPlan(on.deps, tester, { planId, displayName: "", steps });
  return (await on.runs.startRun({ requestId: "r", machineId, planId })).runId;
}

interface Truth {
  readonly media: string | null;
  readonly second_medium: string | null;
  readonly effects: Readonly<Record<string, number>>;
}
const truth = (id: string) => bench.control<Truth>("GET", `/devices/${id}`);

/** The way to the seed that a machine's BMC was given. */
const untilSeeded = (id: string): Promise<string> =>
  eventually(async () => (await truth(id)).second_medium ?? undefined, { what: "the seed is inserted" });

describe("an installer that cannot see the address of its medium", { timeout: 60_000 }, () => {
  test("learns from a second medium what to install, and both media are ejected", async () => {
    const id = await machine();
    const runId = await start(id, "image-nocloud", "mine");
    const url = await untilSeeded(id);
    await deleteCloudInit(bench.deps, tester, "mine"); // the run has its own
    const seed = await fetch(url);
    expect([seed.status, seed.headers.get("cache-control")]).toEqual([200, "no-store"]);
    const text = Buffer.from(await seed.arrayBuffer()).toString("latin1");
    expect(text).toContain("kept");
    expect(text).toContain("ssh-ed25519 ");
    expect(text).not.toContain("PRIVATE KEY");
    const run = await bench.ended(runId);
    expect(run.phase, run.error?.message).toBe(Run_Phase.SUCCEEDED);
    expect(await truth(id)).toMatchObject({
      media: null,
      second_medium: null,
      effects: { installs: 1, media_ejects: 2 },
    });
    expect((await fetch(url)).status).toBe(404);
  });

  test("that has no seed leaves a system that is not from this installation", async () => {
    const run = await bench.ended(await start(await machine(), "image-without"));
    expect(run.phase).toBe(Run_Phase.FAILED);
    expect(run.error?.message).toContain("not from this installation");
  });

  test("is not begun where its BMC cannot fetch the seed, and the way to it is shown to nobody", async () => {
    const id = await machine();
    await bench.fault({ device: id, method: "POST", path: SECOND, fault: { type: "status", status: 500 } });
    const runId = await start(id, "image-nocloud");
    const run = await bench.ended(runId, 20_000);
    expect(run.error?.message).toContain("the medium with the seed was not inserted");
    const { effects, media } = await truth(id);
    expect([media, effects.installs_started]).toEqual([null, 0]);
    const told = JSON.stringify([run, await bench.logs(runId)], (_, value) => (typeof value === "bigint" ? 0 : value));
    expect(told).not.toMatch(/seeds\/run-/);
  });
});

test("a run whose seed needs a second drive is refused where the BMC has one alone, and the preview says so; a silent BMC is left to the step", async () => {
  const id = await machine(["one_virtual_drive"]);
  const refused = await start(id, "image-nocloud").catch((error) => ConnectError.from(error));
  expect(refused).toMatchObject({ code: Code.FailedPrecondition });
  expect((refused as ConnectError).message).toContain("this BMC has one virtual drive");
  const planId = `plan-${plans}`;
  const { conflicts } = await bench.client(RunActionsService).previewRun({ machineId: id, planId });
  expect(conflicts).toEqual([expect.stringContaining("this BMC has one virtual drive")]);
  expect((await bench.runs.listRuns({ filter: `machine_id=${id}` })).runs).toEqual([]);
  expect((await bench.ended(await start(id, "image-without"))).phase).toBe(Run_Phase.SUCCEEDED);
  await bench.fault({ device: id, fault: { type: "drop" } });
  const { runId } = await bench.runs.startRun({ requestId: "silent", machineId: id, planId });
  await bench.runs.cancelRun({ runId });
});

test("a seed reaches the machines of many runs that are started at once", { timeout: 60_000 }, async () => {
  const id = await machine();
  const steps = [
    { name: "install", kind: "repave", payload: { image_ref: "image-nocloud" }, timeoutSeconds: 60, maxRetries: 0 },
  ];
  await createPlan(bench.deps, tester, { planId: "plan-of-many", displayName: "", steps });
  const asked = { requestId: "many", filter: `machine_id=${id}`, planId: "plan-of-many" };
  const { run } = await bench.client(RunActionsService).startRuns(asked);
  const runId = run?.run?.runId ?? "";
  const many = await eventually(
    async () => {
      const { run: shown } = await bench.client(AllRunsService).getRun({ runId });
      return (shown?.run?.phase ?? 0) > Run_Phase.RUNNING ? shown : undefined;
    },
    { what: "it has ended", within: 50_000 },
  );
  expect(many?.run?.phase, many?.run?.message).toBe(Run_Phase.SUCCEEDED);
  expect((await truth(id)).effects).toMatchObject({ installs: 1 });
});

describe("a seed", { timeout: 60_000 }, () => {
  test("is found by who knows the way alone, in pieces too, and only where it is", async () => {
    const id = await machine();
    const runId = await start(id, "image-nocloud");
    const url = await untilSeeded(id);
    const [directory = "", key = ""] = [new URL(".", url).href, url.split("/").at(-2)];
    const whole = Buffer.from(await (await fetch(url)).arrayBuffer());
    const piece = await fetch(url, { headers: { range: "bytes=2048-4095" } });
    expect(piece.status).toBe(206);
    expect(Buffer.from(await piece.arrayBuffer()).equals(whole.subarray(2_048, 4_096))).toBe(true);
    expect((await fetch(url, { method: "HEAD" })).headers.get("content-length")).toBe(String(whole.length));
    expect(await (await fetch(`${directory}user-data`)).text()).toContain("/etc/millwright-image");
    for (const wrong of [
      url.replace(
        key,
        key.replace(/^./, (first) => (first === "0" ? "1" : "0")),
      ),
      url.replace(key, "0"),
      url.replace(runId, "run-none"),
      url.replace(runId, `node.${id}`),
      `${directory}ks.cfg`,
      `${directory}..%2f..%2fetc%2fpasswd`,
    ])
      expect([wrong, (await fetch(wrong)).status]).toEqual([wrong, 404]);
    expect((await bench.ended(runId)).phase).toBe(Run_Phase.SUCCEEDED);
  });

  test("tells whom to call, and that the installer has begun is kept once", async () => {
    const id = await machine([...HIDING, "once_kept_as_continuous", "no_last_reset_time", "no_boot_progress"]);
    const runId = await start(id, "image-nocloud");
    const url = await untilSeeded(id);
    const runs = storeOf(allStores, "run");
    const [before] = (await runs.load(bench.db, [runId])).things;
    expect(before && (await runs.overtaken?.(bench.db, [before]))).toEqual([]);
    const home = new URL("phone-home", url).href;
    const began = () => bench.db.query("select 1 from journal where id = $1 and type = 'installer_began'", [runId]);
    await eventually(async () => (await began()).length > 0, { what: "the installer has called" });
    for (const body of ["instance_id=1", "{", "\0\0"])
      expect((await fetch(home, { method: "POST", body })).status).toBe(204);
    // A pass that waits for the system to come up is ended by that: the boot source is to be cleared while the installer is at work.
    expect(before && (await runs.overtaken?.(bench.db, [before]))).toEqual([runId]);
    expect((await fetch(home.replace(runId, "run-none"), { method: "POST" })).status).toBe(404);
    const run = await bench.ended(runId);
    expect(run.phase, run.error?.message).toBe(Run_Phase.SUCCEEDED);
    expect((await truth(id)).effects).toMatchObject({ installs_started: 1, installs: 1 });
    expect(await began()).toHaveLength(1);
    expect((await fetch(home, { method: "POST" })).status).toBe(404);
  });
});

describe("a run with a seed is refused", () => {
  test.each([
    [
      "whose document is not what the installer reads",
      "image-kickstart",
      "cloud-init/worker-node",
      /not a kickstart file/,
    ],
    ["that needs a document and has none", "image-kickstart", "", /names none/],
    ["whose document is not there", "image-nocloud", "gone", /cloud-init document "gone", which is not there/],
  ])("%s", async (_, image, document, why) => {
    const [id = ""] = unused.slice(-1);
    await expect(start(id, image, document)).rejects.toThrow(why);
    expect((await truth(id)).effects).toMatchObject({ media_inserts: 0 });
  });

  test("where the server does not know where BMCs reach it, and on a provider that inserts no second medium", async () => {
    const surface = await startRunSurface();
    try {
      const image = {
        kind: "iso",
        location: "http://images/a.iso",
        digest: `sha256:${"0".repeat(64)}`,
        successProof: "ssh",
      };
      await createImage(surface.deps, tester, { name: "seeded", ...image, seed: "nocloud" });
      await surface.addMachine("m-bmc", "redfish");
      await surface.addMachine("m-ironic", "ironic");
      await expect(start("m-bmc", "seeded", "", surface)).rejects.toThrow(/set install.public_url/);
      await expect(start("m-ironic", "seeded", "", surface)).rejects.toThrow(/provider ironic inserts none/);
      // As a further attempt as well: the image was another when the first was started.
      await createImage(surface.deps, tester, { name: "changed", ...image, seed: "" });
      const runId = await start("m-bmc", "changed", "", surface);
      await surface.db.execute("update runs set state = 'FAILED' where id = $1", [runId]);
      await surface.db.execute("update images set seed = 'nocloud' where name = 'changed'");
      const actions = surface.client(RunActionsService);
      for (const again of [actions.rerunRun, actions.retryRun, actions.restartRunClean])
        await expect(again({ runId, requestId: "again" })).rejects.toThrow(/set install.public_url/);
    } finally {
      await surface.close();
    }
  });
});
