import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ConnectRouter } from "@connectrpc/connect";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Plan, PlanService } from "../../../../contract/baremetal/v1/baremetal_pb.js";
import {
  ClusterService,
  type CreateClusterRequest,
  type CreateImageRequest,
  ImageService,
  type UpdateClusterRequest,
} from "../../../../contract/millwright/v1/cluster_pb.js";
import { PlanCatalogService } from "../../../../contract/millwright/v1/plan_pb.js";
import { noted, runAgainst } from "../../../../test/support/cli/fake-terminal.ts";

let directory: string;
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), "millwright-cli-"));
});
afterAll(() => rmSync(directory, { recursive: true, force: true }));

const PLAN = `plan_id: my-plan
display_name: Mine
steps:
  - name: repave-os
    timeout_seconds: 1800
    max_retries: 1
    repave: {image: ubuntu-22.04}
  - name: check
    ssh:
      script_ref: verify.sh
      args: {fast: "yes"}
`;

function fakePlans() {
  const kept: Plan[] = [];
  const deleted: string[] = [];
  const routes = (router: ConnectRouter) => {
    router.service(PlanService, {
      getPlan: () => kept[0] ?? {},
    });
    router.service(PlanCatalogService, {
      listPlans: ({ pageToken }) =>
        pageToken === ""
          ? { plans: [{ planId: "plan/reboot", displayName: "Simple Reboot", builtIn: true }], nextPageToken: "p" }
          : { plans: kept },
      createPlan({ plan }) {
        if (plan) kept.push(plan);
        return plan ? { plan } : {};
      },
      deletePlan: ({ planId }) => noted(deleted, planId),
    });
  };
  return { kept, deleted, routes };
}

test("a plan is created from YAML, shown with its payloads, listed after the others and deleted", async () => {
  const { kept, deleted, routes } = fakePlans();
  const path = join(directory, "plan.yaml");
  writeFileSync(path, PLAN);
  expect((await runAgainst(routes, ["plan", "create", "-f", path])).out).toBe("Plan my-plan created, with 2 steps.\n");
  expect(kept[0]?.steps.map(({ name, kind }) => [name, kind.case])).toEqual([
    ["repave-os", "repave"],
    ["check", "ssh"],
  ]);
  const { out } = await runAgainst(routes, "plan show my-plan");
  expect(out).toMatch(/repave-os +repave +1800s +1 +image=ubuntu-22.04/);
  expect(out).toMatch(/check +ssh +0s +0 +script_ref=verify.sh args=\{"fast":"yes"\}/);
  expect((await runAgainst(routes, "plan list")).out).toMatch(
    /plan\/reboot +Simple Reboot +yes[\s\S]*my-plan +Mine +no/,
  );
  expect((await runAgainst(routes, "plan delete my-plan --yes")).out).toBe("Plan my-plan deleted.\n");
  expect(deleted).toEqual(["my-plan"]);
});

test("what `show -o yaml` prints can be created again", async () => {
  const { kept, routes } = fakePlans();
  await runAgainst(routes, "plan create -f -", { stdin: PLAN });
  const { out } = await runAgainst(routes, "plan show my-plan -o yaml");
  expect((await runAgainst(routes, "plan create -f -", { stdin: out })).code).toBe(0);
  expect(kept[1]).toEqual(kept[0]);
});

// biome-ignore format: a table is read by its columns
const FAULTS: readonly (readonly [what: string, file: string, said: RegExp])[] = [
  ["an unknown kind",     "steps: [{name: a}, {name: b, teleport: {}}]",         /steps\[1\]: "teleport" is neither a kind nor a field of a step; kinds: ssh, reboot, .*rma; fields: name, timeout_seconds, max_retries/],
  ["two kinds",           "steps: [{name: a, ssh: {}, reboot: {}}]",             /steps\[0\]: ssh, reboot: only one kind is wanted/],
  ["a word for a number", "steps: [{name: a, timeout_seconds: many}]",           /steps\[0\]\.timeout_seconds: "many" is no whole number/],
  ["a number for text",   "steps: [{name: a, ssh: {args: {pin: 12345}}}]",       /steps\[0\]\.ssh\.args\.pin: a number stands where text is wanted; put it in quotes/],
  ["an unknown field",    "steps: [{name: a, reboot: {hard: true}}]",            /steps\[0\]\.reboot: "hard" is no field of a reboot; known: force, mode/],
  ["a word for a flag",   "steps: [{name: a, reboot: {force: maybe}}]",          /steps\[0\]\.reboot\.force: "maybe" is neither true nor false/],
  ["no list",             "steps: {name: a}",                                    /steps: \{"name":"a"\} is no list/],
  ["a text for a step",   "steps: [reboot]",                                     /steps\[0\]: "reboot" stands where the fields of a step \(name, .*\) are wanted/],
  ["an unknown top",      "plan: x",                                             /"plan" is no field of a plan; known: plan_id, /],
  ["no YAML",             "a: b: c",                                             /neither YAML nor JSON: line 1, column 4: nested mappings are not allowed/],
  ["nothing",             "",                                                    /one document is wanted/],
];

test.each(FAULTS)(
  "of a plan with %s the place is named, and what may stand there, before the server is asked",
  async (_, stdin, said) => {
    const { kept, routes } = fakePlans();
    const { code, err } = await runAgainst(routes, "plan create -f -", { stdin });
    expect(err).toMatch(said);
    expect(err).not.toContain("12345");
    expect(code).toBe(2);
    expect(kept).toEqual([]);
  },
);

test("a plan of one step is said to have one", async () => {
  const { out } = await runAgainst(fakePlans().routes, "plan create -f -", {
    stdin: "{plan_id: p, steps: [{name: a, reboot: {}}]}",
  });
  expect(out).toBe("Plan p created, with 1 step.\n");
});

test("clusters and images are recorded, listed and forgotten", async () => {
  const clusters: CreateClusterRequest[] = [];
  const updated: UpdateClusterRequest[] = [];
  const images: CreateImageRequest[] = [];
  const deleted: string[] = [];
  const routes = (router: ConnectRouter) => {
    router.service(ClusterService, {
      createCluster: (request) => noted(clusters, request),
      updateCluster: (request) => noted(updated, request) && { warnings: ["the user may not: list nodes"] },
      listClusters: ({ pageToken }) =>
        pageToken === ""
          ? { clusters: [{ name: "c1", apiUrl: "https://a" }], nextPageToken: "p" }
          : { clusters: [{ name: "c2" }] },
      deleteCluster: ({ name }) => noted(deleted, name),
    });
    router.service(ImageService, {
      createImage: (request) => noted(images, request),
      listImages: () => ({ images: [{ name: "i1", kind: "iso", location: "http://i" }] }),
      deleteImage: ({ name }) => noted(deleted, name),
    });
  };
  const { out } = await runAgainst(routes, "cluster create c1 --api-url https://a --kubeconfig -", { stdin: "hush" });
  expect(out).toBe("Cluster c1 created.\n");
  expect(clusters).toMatchObject([{ name: "c1", apiUrl: "https://a", kubeconfig: "hush" }]);
  const update = "cluster update c1 --kubeconfig - --other-cluster";
  const answer = await runAgainst(routes, update, { stdin: "hush hush" });
  expect([answer.out, answer.err]).toEqual([
    "Cluster c1 has the new kubeconfig.\n",
    "warning: the user may not: list nodes\n",
  ]);
  expect(updated).toMatchObject([{ name: "c1", kubeconfig: "hush hush", otherCluster: true, skipProbe: false }]);
  expect((await runAgainst(routes, "cluster list")).out).toMatch(/c1 +https:\/\/a[\s\S]*c2/);
  const digest = `sha256:${"0".repeat(64)}`;
  await runAgainst(routes, `image create i1 --location http://i --digest ${digest}`);
  expect(images).toMatchObject([{ name: "i1", kind: "iso", location: "http://i", digest, successProof: "ssh" }]);
  expect((await runAgainst(routes, "image list")).out).toMatch(/i1 +iso/);
  await runAgainst(routes, "cluster delete c1 --yes");
  await runAgainst(routes, "image delete i1 -y");
  expect(deleted).toEqual(["c1", "i1"]);
  expect((await runAgainst(routes, "cluster create c1 --api-url https://a --kubeconfig /nowhere")).code).toBe(2);
});

test("a kind with nothing after it is that kind, as far as it is the only one", async () => {
  const { kept, routes } = fakePlans();
  const step = (kinds: string) => `plan_id: p\nsteps:\n  - name: a\n${kinds}`;
  expect((await runAgainst(routes, "plan create -f -", { stdin: step("    reboot:\n") })).code).toBe(0);
  await runAgainst(routes, "plan create -f -", { stdin: step("    reboot:\n    rma: {reason: broken}\n") });
  await runAgainst(routes, "plan create -f -", { stdin: step("    reboot:\n    rma:\n") });
  expect(kept.map(({ steps }) => steps[0]?.kind.case)).toEqual(["reboot", "rma", undefined]);
});
