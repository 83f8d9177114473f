import { fromJson, type MessageInitShape } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { PlanSchema, type StepSchema } from "../../../contract/baremetal/v1/baremetal_pb.js";
import { BUILT_IN_PLANS } from "../../../src/runs/plans/built-in.ts";
import { getKubeconfigs } from "../../../src/store/catalog/clusters.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";
import { as, dumpTables, refusal } from "../api/forge-under-test.ts";
import { type MachinesUnderTest, startMachines } from "./machines-under-test.ts";

let site: MachinesUnderTest;
beforeAll(async () => {
  site = await startMachines();
  await site.machines.registerMachine({ machine: { machineId: "m-1", spec: { targetClusterRef: "used-by-machine" } } });
});
afterAll(() => site.close());

/** As it is printed in the specification, under another id: its own belongs to the built-in plan. */
const samplePlan = (planId: string) =>
  fromJson(PlanSchema, {
    plan_id: planId,
    display_name: "Repave Ubuntu 22.04 + Join Cluster",
    steps: [
      { name: "set-netboot", timeout_seconds: 60, max_retries: 2, netboot: { mode: "PXE" } },
      { name: "repave-os", timeout_seconds: 1800, max_retries: 1, repave: { image: "ubuntu-22.04" } },
      { name: "reboot", timeout_seconds: 300, max_retries: 2, reboot: { mode: "bmc" } },
      { name: "join-cluster", timeout_seconds: 600, max_retries: 1, join: { cluster_ref: "cluster-a" } },
      { name: "verify", timeout_seconds: 300, max_retries: 0, verify: { cluster_ref: "cluster-a" } },
    ],
  });
const historyOf = async (kind: string, id: string) =>
  (await site.history.listHistory({ kind, id })).events.map(({ type, actor }) => `${type} by ${actor}`);

describe("plans", () => {
  test("are there from the start, and cannot be deleted", async () => {
    const { plans, nextPageToken } = await site.plans.listPlans({});
    expect(plans.filter(({ builtIn }) => builtIn).map(({ planId }) => planId)).toEqual(
      BUILT_IN_PLANS.map(({ planId }) => planId),
    );
    expect(nextPageToken).toBe("");
    for (const { planId } of BUILT_IN_PLANS) {
      expect((await site.plans.getPlan({ planId })).createdAt).toBeUndefined();
      const refused = await refusal(site.catalog.deletePlan({ planId }));
      expect(refused).toMatchObject({ code: Code.FailedPrecondition, field: "plan_id" });
    }
  });

  test("that are not there are NOT_FOUND; what is no id is INVALID_ARGUMENT", async () => {
    expect((await refusal(site.plans.getPlan({ planId: "plan/none" }))).code).toBe(Code.NotFound);
    expect((await refusal(site.catalog.deletePlan({ planId: "plan/none" }))).code).toBe(Code.NotFound);
    expect(await refusal(site.plans.getPlan({}))).toMatchObject({ code: Code.InvalidArgument, field: "plan_id" });
  });

  test("are created, read back with defaults filled in and both spellings, and deleted", async () => {
    const { plan } = await site.catalog.createPlan({ plan: samplePlan("my-plan") }, as("kim"));
    expect(plan).toMatchObject({ planId: "my-plan", builtIn: false });
    expect(plan?.steps.map(({ name, kind }) => [name, kind.case])).toEqual([
      ["set-netboot", "netboot"],
      ["repave-os", "repave"],
      ["reboot", "reboot"],
      ["join-cluster", "join"],
      ["verify", "verify"],
    ]);
    expect(plan?.steps[1]?.kind.value).toMatchObject({ image: "ubuntu-22.04", imageRef: "ubuntu-22.04" });
    expect(plan?.steps[3]?.kind.value).toMatchObject({
      clusterRef: "cluster-a",
      targetCluster: { clusterId: "cluster-a" },
    });
    expect(await site.plans.getPlan({ planId: "my-plan" })).toEqual(plan);
    await site.catalog.deletePlan({ planId: "my-plan" }, as("lee"));
    expect((await refusal(site.plans.getPlan({ planId: "my-plan" }))).code).toBe(Code.NotFound);
    expect(await historyOf("plan", "my-plan")).toEqual(["created by kim", "deleted by lee"]);
  });

  test("are the same when created again, and refused when they differ, the built-in ones too", async () => {
    await site.catalog.createPlan({ plan: samplePlan("twice") });
    const before = await dumpTables(site.db);
    const { plan } = await site.catalog.createPlan({ plan: samplePlan("twice") });
    expect(plan?.planId).toBe("twice");
    expect((await site.catalog.createPlan({ plan: samplePlan("plan-repave-ubuntu-2204-v1") })).plan?.builtIn).toBe(
      true,
    );
    expect(await dumpTables(site.db)).toEqual(before);
    for (const planId of ["twice", "plan/reboot"])
      expect(
        await refusal(site.catalog.createPlan({ plan: { ...samplePlan(planId), displayName: "Another" } })),
      ).toMatchObject({ code: Code.AlreadyExists, field: "plan.plan_id" });
  });

  test("are checked alone: what creating them would refuse and answer, and nothing is kept", async () => {
    await site.catalog.createPlan({ plan: samplePlan("kept") });
    const before = await dumpTables(site.db);
    const check = (plan: ReturnType<typeof samplePlan>) => site.catalog.createPlan({ plan, validateOnly: true });
    const { plan } = await check(samplePlan("only-checked"));
    expect(plan).toMatchObject({ planId: "only-checked", builtIn: false });
    expect(plan?.createdAt).toBeUndefined();
    expect((await refusal(site.plans.getPlan({ planId: "only-checked" }))).code).toBe(Code.NotFound);
    expect((await check(samplePlan("kept"))).plan?.createdAt).toBeDefined();
    expect(await refusal(check({ ...samplePlan("kept"), displayName: "Another" }))).toMatchObject({
      code: Code.AlreadyExists,
      field: "plan.plan_id",
    });
    expect(await refusal(check({ ...samplePlan("bad"), steps: [] }))).toMatchObject({
      code: Code.InvalidArgument,
      field: "steps",
    });
    expect(await dumpTables(site.db)).toEqual(before);
  });

  test("of two who create different ones under one id at once, one wins", { tags: "race" }, async () => {
    const tries = await Promise.allSettled(
      Array.from({ length: 10 }, (_, at) =>
        site.catalog.createPlan({ plan: { ...samplePlan("contested"), displayName: `Plan ${at}` } }),
      ),
    );
    expect(tries.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    for (const one of tries)
      if (one.status === "rejected") expect(one.reason).toMatchObject({ code: Code.AlreadyExists });
  });

  test.each([
    ["no plan", undefined, "plan"],
    ["no id", { planId: "" }, "plan_id"],
    ["no steps", { steps: [] }, "steps"],
    ["a step without a kind", { steps: [{ name: "a" }] }, "steps[0].kind"],
    ["a step without a name", { steps: [{ kind: { case: "reboot", value: {} } }] }, "steps[0].name"],
    [
      "two steps of one name",
      { steps: ["reboot", "rma"].map((word) => ({ name: "a", kind: { case: word, value: {} } })) },
      "steps[1].name",
    ],
    [
      "an unknown mode",
      { steps: [{ name: "a", kind: { case: "reboot", value: { mode: "magic" } } }] },
      "steps[0].reboot.mode",
    ],
    [
      "two images",
      { steps: [{ name: "a", kind: { case: "repave", value: { image: "a", imageRef: "b" } } }] },
      "steps[0].repave.image_ref",
    ],
    [
      "a network setting that there is not",
      { steps: [{ name: "a", kind: { case: "net", value: { params: { mtu: "9000" } } } }] },
      "steps[0].net.params.mtu",
    ],
    [
      "a network setting that makes no sense",
      { steps: [{ name: "a", kind: { case: "net", value: { params: { rollback_seconds: "soon" } } } }] },
      "steps[0].net.params.rollback_seconds",
    ],
    [
      "too many retries",
      { steps: [{ name: "a", maxRetries: 101, kind: { case: "reboot", value: {} } }] },
      "steps[0].max_retries",
    ],
  ])("with %s are refused by the field", async (_, change, field) => {
    const plan = change && { planId: "bad", displayName: "", steps: samplePlan("bad").steps, ...(change as object) };
    expect(await refusal(site.catalog.createPlan(plan === undefined ? {} : { plan }))).toMatchObject({
      code: Code.InvalidArgument,
      field,
    });
  });

  // biome-ignore format: a table is read by its columns
  test.each([
    ["ssh",     { scriptRef: "verify_network.sh" },     300,   0],
    ["reboot",  {},                                     300,   1],
    ["netboot", {},                                     60,    2],
    ["repave",  { imageRef: "ubuntu-22.04" },           1_800, 1],
    ["join",    {},                                     600,   1],
    ["verify",  {},                                     300,   0],
    ["net",     { params: { action: "reconfigure" } },  120,   1],
    ["rma",     {},                                     120,   1],
  ])("that leave timeout and retries of %s open take those of the kind, and 0 retries where they say so", async (kind, value, timeoutSeconds, maxRetries) => {
    const step = { name: "a", kind: { case: kind, value } } as MessageInitShape<typeof StepSchema>;
    const [open, none] = [{ ...step, timeoutSeconds: 0 }, { ...step, name: "b", timeoutSeconds: 77, maxRetries: 0 }];
    const { plan } = await site.catalog.createPlan({ plan: { planId: `open-${kind}`, steps: [open, none] } });
    expect(plan?.steps).toMatchObject([{ timeoutSeconds, maxRetries }, { timeoutSeconds: 77, maxRetries: 0 }]);
    expect(await site.plans.getPlan({ planId: `open-${kind}` })).toEqual(plan);
  });

  test("stay when a run refers to them, also once it has ended", async () => {
    await site.catalog.createPlan({ plan: samplePlan("referred") });
    await site.addRun({ id: "run-referring", machineId: "m-1", planId: "referred", state: "SUCCEEDED" });
    const refused = await refusal(site.catalog.deletePlan({ planId: "referred" }));
    expect(refused.code).toBe(Code.FailedPrecondition);
    expect(refused.message).toContain("run-referring");
  });

  test("are listed page by page in the order of their ids, built-in ones among the others", async () => {
    for (const planId of ["a-first", "plan/middle", "z-last", "Z-capital"])
      await site.catalog.createPlan({ plan: samplePlan(planId) });
    const seen: string[] = [];
    let pageToken = "";
    do {
      const page = await site.plans.listPlans({ pageSize: 2, pageToken });
      seen.push(...page.plans.map(({ planId }) => planId));
      pageToken = page.nextPageToken;
    } while (pageToken !== "");
    const { plans } = await site.plans.listPlans({});
    expect(seen).toEqual(plans.map(({ planId }) => planId));
    expect(seen).toEqual(seen.toSorted((a, b) => (a < b ? -1 : 1)));
    expect(seen).toEqual(expect.arrayContaining(["Z-capital", "a-first", "plan/middle", "plan/reboot", "z-last"]));
  });
});

describe("clusters", () => {
  const KUBECONFIG = "apiVersion: v1\nusers: [{user: {token: hush-hush}}]\n";
  const cluster = (name: string) => ({ name, apiUrl: "https://10.0.0.1:6443", kubeconfig: KUBECONFIG });

  const kubeconfigOf = async (name: string) => (await getKubeconfigs(site.db, site.deps.secrets, [name])).get(name);

  test("are created, listed without their kubeconfig, and deleted with it", async () => {
    const { cluster: created } = await site.clusters.createCluster(cluster("one"), as("kim"));
    expect(created).toMatchObject({ name: "one", apiUrl: "https://10.0.0.1:6443" });
    expect(await kubeconfigOf("one")).toBe(KUBECONFIG);
    expect(JSON.stringify(await dumpTables(site.db))).not.toContain("hush-hush");
    expect((await site.clusters.listClusters({})).clusters).toEqual([created]);
    expect((await refusal(site.clusters.createCluster({ ...cluster("one"), kubeconfig: "other" }))).code).toBe(
      Code.AlreadyExists,
    );
    expect(await kubeconfigOf("one")).toBe(KUBECONFIG);
    await site.clusters.deleteCluster({ name: "one" }, as("lee"));
    expect(await kubeconfigOf("one")).toBeUndefined();
    expect(await historyOf("cluster", "one")).toEqual(["created by kim", "deleted by lee"]);
    expect((await refusal(site.clusters.deleteCluster({ name: "one" }))).code).toBe(Code.NotFound);
  });

  test.each([
    ["name", { name: "Not A Name" }],
    ["api_url", { apiUrl: "ftp://10.0.0.1" }],
    ["api_url", { apiUrl: "https://kim:hush@10.0.0.1" }],
    ["kubeconfig", { kubeconfig: " " }],
  ])("with a wrong %s are refused", async (field, change) => {
    const refused = await refusal(site.clusters.createCluster({ ...cluster("wrong"), ...change }));
    expect(refused).toMatchObject({ code: Code.InvalidArgument, field });
  });

  test("stay while a machine or an active run refers to them", async () => {
    await site.clusters.createCluster(cluster("used-by-machine"));
    expect((await refusal(site.clusters.deleteCluster({ name: "used-by-machine" }))).message).toContain("machine m-1");
    await site.clusters.createCluster(cluster("served-in"));
    await site.machines.registerMachine({ machine: { machineId: "m-serving" } });
    await site.db.execute(`update machines set facts = '{"joinedCluster": "served-in"}' where id = 'm-serving'`);
    const inCluster = (status: boolean) =>
      site.observe("m-serving", [{ type: "InCustomerCluster", status, reason: "Seen", message: "" }]);
    await inCluster(true);
    const serving = await refusal(site.clusters.deleteCluster({ name: "served-in" }));
    expect(serving).toMatchObject({ code: Code.FailedPrecondition, next: "millwright machine show m-serving" });
    await inCluster(false);
    await site.clusters.deleteCluster({ name: "served-in" });
    await site.clusters.createCluster(cluster("used-by-run"));
    const plan = { steps: [{ kind: "join", payload: { cluster_ref: "used-by-run" } }] };
    await site.addRun({ id: "run-joining", machineId: "m-1", plan });
    const refused = await refusal(site.clusters.deleteCluster({ name: "used-by-run" }));
    expect(refused.code).toBe(Code.FailedPrecondition);
    expect(refused.message).toContain("run run-joining");
    await site.db.execute("update runs set state = 'FAILED' where id = 'run-joining'");
    await site.clusters.deleteCluster({ name: "used-by-run" });
  });
});

describe("images", () => {
  const image = (name: string) => ({
    name,
    kind: "iso",
    location: "http://images.example/u.iso",
    digest: `sha256:${"0".repeat(64)}`,
  });

  test("are created, listed page by page, and deleted", async () => {
    const { image: created } = await site.images.createImage(image("ubuntu:22.04-k8s"), as("kim"));
    expect(created).toMatchObject({ ...image("ubuntu:22.04-k8s"), successProof: "ssh" });
    await site.images.createImage({ ...image("another"), kind: "disk", successProof: "token" });
    const first = await site.images.listImages({ pageSize: 1 });
    expect(first.images.map(({ name }) => name)).toEqual(["another"]);
    const second = await site.images.listImages({ pageSize: 1, pageToken: first.nextPageToken });
    expect(second).toMatchObject({ images: [created], nextPageToken: "" });
    expect((await refusal(site.images.createImage(image("another")))).code).toBe(Code.AlreadyExists);
    await site.images.deleteImage({ name: "another" });
    expect((await refusal(site.images.deleteImage({ name: "another" }))).code).toBe(Code.NotFound);
    expect(await historyOf("image", "ubuntu:22.04-k8s")).toEqual(["created by kim"]);
  });

  test.each([
    ["name", { name: "" }],
    ["kind", { kind: "floppy" }],
    ["location", { location: "file:///etc/passwd" }],
    ["digest", { digest: "sha256:abc" }],
    ["success_proof", { successProof: "hope" }],
    ["seed", { seed: "magic" }],
    ["seed", { seed: "nocloud", kind: "disk" }],
    ["seed", { seed: "ignition" }],
  ])("with a wrong %s are refused", async (field, change) => {
    expect(await refusal(site.images.createImage({ ...image("wrong"), ...change }))).toMatchObject({
      code: Code.InvalidArgument,
      field,
    });
  });

  test("say what their installers read", async () => {
    const { image: created } = await site.images.createImage({ ...image("seeded"), seed: "autoinstall" });
    expect(created?.seed).toBe("autoinstall");
    expect((await site.images.listImages({})).images.filter(({ seed }) => seed !== "").map(({ name }) => name)).toEqual(
      ["seeded"],
    );
    const overNetwork = {
      ...image("over-network"),
      kind: "netboot",
      location: "pxe-ubuntu-22.04",
      seed: "autoinstall",
    };
    expect((await site.images.createImage(overNetwork)).image?.seed).toBe("autoinstall");
    await site.db.execute(
      `insert into install_workflows (id, name, os_family, architecture, boot_mode, install_method, boot, created_by)
       values ('deaf', 'deaf', 'linux', 'x86_64', 'any', 'kernel', '{"kernel_url": "/files/k", "cmdline": "quiet"}', 'test')`,
    );
    const deaf = await refusal(site.images.createImage({ ...overNetwork, name: "deaf", location: "deaf" }));
    expect(deaf).toMatchObject({ code: Code.InvalidArgument, field: "seed" });
    expect(deaf.message).toContain("does not say ${seed}");
  });

  test("stay while an active run installs them", async () => {
    await site.images.createImage(image("installing"));
    const plan = { steps: [{ kind: "repave", payload: { image_ref: "installing" } }] };
    await site.addRun({ id: "run-installing", machineId: "m-1", plan });
    const refused = await refusal(site.images.deleteImage({ name: "installing" }));
    expect(refused.code).toBe(Code.FailedPrecondition);
    expect(refused.message).toContain("run-installing");
  });
});

describe("cloud-init documents", () => {
  const content = "#cloud-config\npassword: secret-of-the-document\n";

  test("are created, listed without what they say, shown, and deleted", async () => {
    const { document } = await site.cloudInit.createCloudInit({ name: "cloud-init/mine", content }, as("kim"));
    expect(document).toMatchObject({ name: "cloud-init/mine", content: "", digest: expect.stringMatching(/^sha256:/) });
    const { documents } = await site.cloudInit.listCloudInit({});
    expect(documents.map(({ name }) => name)).toEqual(["cloud-init/mine", "cloud-init/worker-node"]);
    expect(documents.map((each) => each.content)).toEqual(["", ""]);
    expect((await site.cloudInit.getCloudInit({ name: "cloud-init/mine" })).document?.content).toBe(content);
    const again = { name: "cloud-init/mine", content: "#cloud-config\n" };
    expect((await refusal(site.cloudInit.createCloudInit(again))).code).toBe(Code.AlreadyExists);
    const journal = JSON.stringify(await site.db.query("select * from journal where kind = 'cloud_init'"));
    expect(journal).not.toContain("secret-of-the-document");
    await site.cloudInit.deleteCloudInit({ name: "cloud-init/mine" }, as("lee"));
    expect((await refusal(site.cloudInit.getCloudInit({ name: "cloud-init/mine" }))).code).toBe(Code.NotFound);
    expect(await historyOf("cloud_init", "cloud-init/mine")).toEqual(["created by kim", "deleted by lee"]);
  });

  test.each([
    ["name", { name: "a b" }],
    ["content", { content: "" }],
    ["content", { content: "x".repeat(70_000) }],
    ["content", { content: "#cloud-config\na: [" }],
    ["content", { content: "#cloud-config\n- a list\n" }],
    ["content", { content: "{ not json" }],
  ])("with a wrong %s are refused", async (field, change) => {
    const before = await dumpTables(site.db);
    expect(await refusal(site.cloudInit.createCloudInit({ name: "wrong", content, ...change }))).toMatchObject({
      code: Code.InvalidArgument,
      field,
    });
    expect(await dumpTables(site.db)).toEqual(before);
  });
});

test("plans, clusters, images and documents are found by a filter, in an order, and counted", async () => {
  await site.catalog.createPlan({ plan: samplePlan("find-plan") });
  const plans = await site.catalog.listPlans({
    ...{ filter: "step_kind=repave AND built_in=true", orderBy: "plan_id desc", pageSize: 1, withTotal: true },
  });
  const repaving = BUILT_IN_PLANS.filter(({ steps }) => steps.some(({ kind }) => kind === "repave"));
  expect(plans).toMatchObject({ totalSize: repaving.length, plans: [{ builtIn: true }] });
  expect(plans.plans[0]?.planId).toBe(
    repaving
      .map(({ planId }) => planId)
      .toSorted()
      .at(-1),
  );
  const own = await site.catalog.listPlans({ filter: "built_in=false AND plan_id=find-plan" });
  expect(own.plans).toMatchObject([{ planId: "find-plan", builtIn: false }]);

  for (const name of ["find-a", "find-b"]) {
    await site.clusters.createCluster({ name, apiUrl: `https://${name}:6443`, kubeconfig: "{}" });
    await site.cloudInit.createCloudInit({ name, content: "#cloud-config\npassword: hush\n" });
  }
  const query = { filter: "name^=find-", orderBy: "name desc", withTotal: true };
  const clusters = await site.clusters.listClusters(query);
  expect(clusters).toMatchObject({ totalSize: 2, clusters: [{ name: "find-b" }, { name: "find-a" }] });
  expect((await site.clusters.listClusters({ filter: "api_url~find-a" })).clusters).toMatchObject([{ name: "find-a" }]);
  const documents = await site.cloudInit.listCloudInit(query);
  expect(documents).toMatchObject({ totalSize: 2, documents: [{ name: "find-b" }, { name: "find-a" }] });
  // Content may be secret: no filter tells what is in it.
  expect(await refusal(site.cloudInit.listCloudInit({ filter: "content~hush" }))).toMatchObject({ field: "filter" });
  expect(await site.images.listImages({ filter: "kind=iso AND kind=disk", withTotal: true })).toMatchObject({
    images: [],
    totalSize: 0,
  });
});
