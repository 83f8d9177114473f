import { join } from "node:path";
import { expect, test } from "vitest";
import { type DevSite, startDevSite } from "../support/dev-site.ts";
import { eventually } from "../support/eventually.ts";
import { ROOT } from "../support/processes/process-bench.ts";
import { afterAll, beforeAll } from "../support/second-try.ts";

/** What the README says of installing over the network: the simulated site has machines that do so. */
let site: DevSite;
beforeAll(async () => {
  site = await startDevSite({ MILLWRIGHT_SIM_SITE: "racks=1,unknown=3", MILLWRIGHT_SIM_SPEED: "400" });
});
afterAll(() => site?.close());

interface Node {
  readonly id: string;
  readonly state: string;
  readonly installation_progress: number | null;
  readonly installation_steps: readonly { readonly name: string; readonly state: string }[];
  readonly last_install_error: string | null;
}

async function cli(...args: string[]): Promise<string> {
  const { server, token, bench } = site;
  const started = bench.start({
    command: join(ROOT, "bin", "millwright"),
    args: ["--server", server.httpUrl, "--token", token, ...args],
  });
  expect(await started.exited, started.transcript()).toEqual({ code: 0, signal: null });
  return started.stdout();
}

async function rest<T = Node>(path: string, method = "GET", body?: object): Promise<T> {
  const answer = await fetch(`${site.server.httpUrl}/api/v1${path}`, {
    method,
    headers: { authorization: `Bearer ${site.token}`, ...(body && { "content-type": "application/json" }) },
    ...(body && { body: JSON.stringify(body) }),
  });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
  return (JSON.parse(text) as { data: T }).data;
}

const nodeOf = (number: number) => `m-02005e10000${number}`;
const becomes = (id: string, wanted: (node: Node) => boolean, what: string) =>
  eventually(async () => wanted(await rest(`/nodes/${id}`).catch(() => ({}) as Node)), {
    what,
    within: 30_000,
    seen: async () => JSON.stringify(await rest(`/nodes/${id}`).catch(String)),
  });
const reset = async (device: string) => {
  for (const power of ["off", "on"]) await site.simulator.call("POST", `/devices/${device}/power`, { power });
};

test("a machine that nobody knows boots, is discovered, is approved, and installs step by step", async () => {
  const id = nodeOf(1);
  await becomes(id, ({ state }) => state === "discovered", "it is discovered");
  expect(await cli("node", "list", "--state", "discovered")).toContain(id);
  await cli("node", "approve", id, "--workflow", "simulated");
  const seen = new Set<number>();
  await becomes(
    id,
    (node) => {
      if (node.state === "installing" && node.installation_progress !== null) seen.add(node.installation_progress);
      return node.state === "installed";
    },
    "it is installed",
  );
  expect(seen.size).toBeGreaterThan(1);
  expect(await cli("node", "show", id)).toMatch(
    /write image +boot +completed +1[\s\S]*pending +installing +node_report/,
  );
  await cli("node", "activate", id);
  const { os } = await site.simulator.call<{ os: object }>("GET", "/devices/unknown-1");
  expect(os).toMatchObject({ source: "pxe", image: "disk.img" });
});

test("a machine that dies at 60 % stays there, and installs once people have seen to it", async () => {
  const id = nodeOf(2);
  const fault = { device: "unknown-2", fault: { type: "install_dies", percent: 60 }, times: 1 };
  await site.simulator.call("POST", "/faults", fault);
  await becomes(id, ({ state }) => state === "discovered", "it is discovered");
  await cli("node", "approve", id, "--workflow", "simulated");
  await eventually(
    async () =>
      (await site.simulator.call<{ os: { hung: string } }>("GET", "/devices/unknown-2")).os.hung === "kernel_panic",
    { what: "it has died" },
  );
  expect(await rest(`/nodes/${id}`)).toMatchObject({ state: "installing", installation_progress: 50 });
  expect(await cli("explain", "node", id)).toContain("step 3 of 4 (seed) is running");
  await reset("unknown-2");
  await rest(`/nodes/${id}/state`, "PATCH", { state: "install_failed", comment: "it died" });
  await cli("node", "retry", id, "--workflow", "simulated", "--force");
  await becomes(id, ({ state }) => state === "installed", "it is installed");
});

test("a registered machine is repaved over the network by a run, through its BMC", async () => {
  const ask = <T = unknown>(method: string, body: object) => site.server.ask<T>(method, body, site.token);
  const { boot } = await rest<{ boot: { image_digest: string } }>("/workflows/simulated");
  const image = {
    name: "netboot",
    kind: "netboot",
    location: "simulated",
    digest: boot.image_digest,
    success_proof: "ssh",
  };
  await ask("millwright.v1.ImageService/CreateImage", image);
  const step = { name: "install", timeout_seconds: 600, max_retries: 0, repave: { image_ref: "netboot" } };
  await ask("millwright.v1.PlanCatalogService/CreatePlan", { plan: { plan_id: "over-network", steps: [step] } });
  // Those that hang on the way are told apart, all the while.
  for (const [device, type] of [
    ["m-rack1-06", "hangs_in_post"],
    ["m-rack1-07", "loses_lease"],
  ] as const) {
    await site.simulator.call("POST", "/faults", { device, fault: { type } });
    await ask("baremetal.v1.RunService/StartRun", { request_id: type, machine_id: device, plan_id: "over-network" });
  }
  const start = { request_id: "over-network", machine_id: "m-rack1-05", plan_id: "over-network" };
  const { runId } = await ask<{ runId: string }>("baremetal.v1.RunService/StartRun", start);
  const show = () => ask<{ phase: string }>("baremetal.v1.RunService/GetRun", { run_id: runId });
  await eventually(async () => ["SUCCEEDED", "FAILED"].includes((await show()).phase), {
    what: "the run has ended",
    within: 45_000,
    seen: async () => JSON.stringify(await show()),
  });
  expect(await show()).toMatchObject({ phase: "SUCCEEDED" });
  expect(await rest("/nodes/m-rack1-05")).toMatchObject({ state: "active" });
  const device = await site.simulator.call<object>("GET", "/devices/m-rack1-05");
  expect(device).toMatchObject({ os: { source: "pxe", image: "netboot" }, effects: { installs: 1 } });
  for (const [machine, why] of [
    ["m-rack1-06", "restarted; it has not asked for its boot script yet"],
    ["m-rack1-07", "(write image) is running"],
  ] as const)
    await eventually(async () => (await cli("explain", "machine", machine)).includes(why), {
      what: `explain says of ${machine}: ${why}`,
      within: 30_000,
      seen: () => cli("explain", "machine", machine),
    });
});
