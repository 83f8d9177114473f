import { Code, ConnectError } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { Run_Phase } from "../../../contract/baremetal/v1/baremetal_pb.js";
import { ErrorInfoSchema } from "../../../contract/millwright/v1/error_info_pb.js";
import { ExplainService } from "../../../contract/millwright/v1/explain_pb.js";
import { type FleetNodeDetail, FleetNodeService } from "../../../contract/millwright/v1/fleet_node_pb.js";
import { RunActionsService, RunService } from "../../../contract/millwright/v1/run_pb.js";
import { enrolAgent } from "../../../src/services/fleet/agent/enrol.ts";
import { onboardNode } from "../../../src/services/fleet/onboard.ts";
import { getMachineBmcCredentials } from "../../../src/store/machine/credentials.ts";
import { listMachines } from "../../../src/store/machine/machines.ts";
import { runPrinted } from "../../support/cli/run-printed.ts";
import { storedBmcCredentials } from "../../support/credentials/stored-credentials.ts";
import { eventually } from "../../support/eventually.ts";
import { faultsAtRest } from "../../support/fleet/at-rest.ts";
import { insertNode, placeNode } from "../../support/fleet/fleet-node.ts";
import { obeyed, stagedSteps, stagedWorkflows } from "../../support/fleet/staged-workflows.ts";
import { type RunSurface, startRunSurface } from "../../support/run-bench.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";

/** What surrounds the jobs of fleet nodes: who onboards, reads, moves and acts. The workflows themselves stand in with a stage or two. */
let surface: RunSurface;
beforeAll(async () => {
  surface = await startRunSurface({
    ...{ steps: stagedSteps, workflows: stagedWorkflows, controller: true },
    fleetServer: "https://millwright.example",
  });
  const { db } = surface;
  await db.execute(
    `insert into fleet_sites (name, url, created_by) values ('lab', 'http://192.0.2.1/MAAS', 'test'), ('hall', 'http://192.0.2.2/MAAS', 'test')`,
  );
  await db.execute(
    `insert into fleet_sites (name, url, is_enabled, created_by) values ('shut', 'http://192.0.2.3/MAAS', false, 'test')`,
  );
  await db.execute(`insert into fleet_profiles (site, name, policy, created_by) values
    ('lab', 'h100', '{"max_deploy_retry_attempts": 1}', 'test'), ('lab', 'pair', '{"batch_max_parallel": 2}', 'test'), ('lab', 'brief', '{"enrollment_token_ttl_seconds": 1}', 'test'), ('hall', 'h100', '{}', 'test'), ('shut', 'h100', '{}', 'test')`);
});
afterAll(() => surface.close());

const nodes = () => surface.client(FleetNodeService);
let count = 0;
const given = (more: object = {}) => {
  count += 1;
  const [high, low] = [Math.floor(count / 250), (count % 250) + 1];
  return {
    ...{ requestId: `request-${count}`, site: "lab", profile: "h100", sku: "gpu8" },
    ...{ hostname: `gpu-${count}`, ipmiIp: `10.0.${high}.${low}`, mode: "" },
    ...more,
  };
};
const onboard = async (more: object = {}): Promise<FleetNodeDetail> => {
  const { node } = await nodes().onboardNode(given(more));
  if (!node) throw new Error("there is no node in the answer");
  return node;
};
const show = async (node: string): Promise<FleetNodeDetail> => {
  const { node: detail } = await nodes().getFleetNode({ node });
  if (!detail) throw new Error("there is no node in the answer");
  return detail;
};
const idOf = ({ node }: FleetNodeDetail) => node?.id ?? "";
const until = (node: string, ...states: string[]): Promise<FleetNodeDetail> =>
  eventually(
    async () => {
      const detail = await show(node);
      return states.includes(detail.job?.state ?? "") && detail;
    },
    { what: `the job of ${node} is ${states.join(" or ")}` },
  );
const active = async (more: object = {}) => until(idOf(await onboard(more)), "completed");
const refusal = async (work: Promise<unknown>): Promise<ConnectError> => {
  const error = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (error instanceof ConnectError) return error;
  throw new Error("it was not refused");
};
let requests = 0;
const act = async (node: string, action: string, more: object = {}) =>
  nodes().actOnNode({ node, action, requestId: `action-${++requests}`, comment: "", ...more });

describe("onboarding", () => {
  test("makes machine, node and job at once, and leads both to where they can be used", async () => {
    const made = await onboard({ hostname: "gpu-first", ipmiIp: "10.9.0.1" });
    expect(made.node).toMatchObject({ hostname: "gpu-first", site: "lab", mode: "maas", createdBy: "tester" });
    expect(made.job).toMatchObject({ type: "ONBOARD", attempt: 1 });
    const { node, job, nextCommand } = await until("gpu-first", "completed");
    expect(node).toMatchObject({ state: "active", quarantineReason: "" });
    expect(job).toMatchObject({ stage: "bring_up", round: 1, failureClass: "" });
    expect(nextCommand).toBe("");
    const machineId = node?.machineId ?? "";
    const machine = await surface.machines.getMachine({ machineId });
    expect(machine).toMatchObject({
      labels: { hostname: "gpu-first" },
      spec: { provider: "maas", bmcEndpoint: "10.9.0.1" },
    });
    const [row] = await surface.db.query<{ state: string }>("select state from machines where id = $1", [machineId]);
    expect(row?.state).toBe("READY");
    const [created] = await surface.db.query<{ to: string }>(
      `select to_state as "to" from journal where kind = 'fleet_node' and id = $1 and type = 'created'`,
      [node?.id],
    );
    expect(created?.to).toBe("enrolling");
  });

  test("of one request twice is the same node, and other parameters under its id are refused", async () => {
    const request = given();
    const [first, second] = await Promise.all([nodes().onboardNode(request), nodes().onboardNode(request)]);
    expect(second.node?.node?.id).toBe(first.node?.node?.id);
    const other = await refusal(nodes().onboardNode({ ...request, sku: "gpu4" }));
    expect(other).toMatchObject({ code: Code.AlreadyExists });
  });

  test("of one node twenty times at once makes exactly one, with one machine and one job", async () => {
    const attempts = Array.from({ length: 20 }, (_, at) =>
      nodes().onboardNode({ ...given({ hostname: "gpu-race", ipmiIp: "10.9.0.2" }), requestId: `race-${at}` }),
    );
    const outcomes = await Promise.allSettled(attempts);
    expect(outcomes.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    for (const outcome of outcomes)
      if (outcome.status === "rejected") expect(outcome.reason).toMatchObject({ code: Code.AlreadyExists });
    expect(await surface.db.query("select 1 from fleet_nodes where hostname = 'gpu-race'")).toHaveLength(1);
    expect(await surface.db.query("select 1 from machines where labels ->> 'hostname' = 'gpu-race'")).toHaveLength(1);
    const [node] = await surface.db.query<{ id: string }>("select id from fleet_nodes where hostname = 'gpu-race'");
    expect(await surface.db.query("select 1 from runs where target_id = $1", [node?.id])).toHaveLength(1);
  });

  test("of one BMC under twenty names at once makes exactly one", async () => {
    const attempts = Array.from({ length: 20 }, () => nodes().onboardNode(given({ ipmiIp: "10.9.0.3" })));
    const outcomes = await Promise.allSettled(attempts);
    expect(outcomes.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    expect(await surface.db.query("select 1 from fleet_nodes where ipmi_ip = '10.9.0.3'")).toHaveLength(1);
    expect(await surface.db.query("select 1 from machine_identities where value = '10.9.0.3 623'")).toHaveLength(1);
  });

  test("keeps the account of the BMC with the machine, and shows it to nobody", async () => {
    const { db, deps, runDeps } = surface;
    const account = { bmcUsername: "maas", bmcPassword: "pass-of-17" };
    const { node } = await onboard({ hostname: "gpu-account", ipmiIp: "10.9.6.1", ...account });
    const id = node?.machineId ?? "";
    expect(await getMachineBmcCredentials(db, deps.secrets, await listMachines(db, { ids: [id] }))).toEqual([
      { username: "maas", password: "pass-of-17" },
    ]);
    const written = await db.query<{ text: string }>("select row(t.*)::text as text from journal t");
    expect(written.map(({ text }) => text).join()).not.toContain("pass-of-17");

    const operator = { name: "pat", roles: ["operator"], address: null };
    const refused = onboardNode(runDeps, operator, given({ ipmiIp: "10.9.6.2", ...account }));
    await expect(refused).rejects.toMatchObject({ kind: "permission_denied" });
    expect(await db.query("select 1 from machine_identities where value like '10.9.6.2 %'")).toEqual([]);
    // A node that has the address already keeps the account that it has.
    const twin = await refusal(onboard({ ipmiIp: "10.9.6.1", bmcUsername: "root", bmcPassword: "other" }));
    expect(twin.code).toBe(Code.AlreadyExists);
    expect(await getMachineBmcCredentials(db, deps.secrets, await listMachines(db, { ids: [id] }))).toMatchObject([
      { username: "maas" },
    ]);
  });

  test.each([
    ["a name without its password", { bmcUsername: "maas" }, "bmc_password: is required"],
    ["a password without its name", { bmcPassword: "pass" }, "bmc_username: is required"],
    ["an account for no address", { mode: "manual", ipmiIp: "", bmcUsername: "maas", bmcPassword: "pass" }, "ipmi_ip"],
    ["a site that there is not", { site: "moon" }, "does not exist"],
    ["a site that is disabled", { site: "shut" }, "is disabled"],
    ["a profile that there is not", { profile: "b200" }, "has no profile b200"],
    ["a host name that is none", { hostname: "GPU 1" }, "labels of letters"],
    ["an address that is none", { ipmiIp: "bmc-1" }, "must be the IP address"],
    ["no address", { ipmiIp: "" }, "must be the IP address"],
    ["a mode that there is not", { mode: "pxe" }, "must be one of maas, manual"],
    ["no request id", { requestId: "" }, "request_id"],
  ])("with %s is refused, and leaves nothing behind", async (_what, more, words) => {
    const request = given(more);
    expect((await refusal(nodes().onboardNode(request))).message).toContain(words);
    expect(await surface.db.query("select 1 from fleet_nodes where hostname = $1", [request.hostname])).toEqual([]);
    expect(
      await surface.db.query("select 1 from machines where labels ->> 'hostname' = $1", [request.hostname]),
    ).toEqual([]);
  });

  test("finds the machine that is on record with the BMC, and leaves one alone that others work on", async () => {
    const { machines, db } = surface;
    const spec = { provider: "maas", bmcEndpoint: "10.9.1.1", bmcProtocol: "ipmi" };
    await machines.registerMachine({ machine: { machineId: "m-known", spec } });
    expect((await onboard({ ipmiIp: "10.9.1.1" })).node?.machineId).toBe("m-known");
    await machines.registerMachine({ machine: { machineId: "m-ours", spec: { bmcEndpoint: "10.9.1.2" } } });
    const refused = await refusal(onboard({ ipmiIp: "10.9.1.2" }));
    expect(refused.message).toContain("worked on by provider datacenter");
    expect(refused.findDetails(ErrorInfoSchema)).toMatchObject([
      { next: "millwright machine update m-ours --provider maas" },
    ]);
    await surface.changeSpec("m-ours", { provider: "maas" });
    expect((await onboard({ ipmiIp: "10.9.1.2" })).node?.machineId).toBe("m-ours");
    for (const phase of ["IN_SERVICE", "MAINTENANCE", "RMA", "RETIRED"]) {
      const id = `m-${phase.toLowerCase().replace("_", "-")}`;
      const bmcEndpoint = `10.9.2.${phase.length}`;
      await machines.registerMachine({ machine: { machineId: id, spec: { provider: "maas", bmcEndpoint } } });
      await db.execute("update machines set state = $2 where id = $1", [id, phase]);
      expect((await refusal(onboard({ ipmiIp: bmcEndpoint }))).message).toContain(`is ${phase}`);
    }
  });
});

describe("a job that fails", () => {
  test("and may be retried leaves the node enrolling, and the recommended command helps as printed", async () => {
    const failed = await until(idOf(await onboard({ hostname: "flaky-1" })), "failed_retryable");
    expect(failed).toMatchObject({
      node: { state: "enrolling" },
      job: { stage: "bring_up", failureClass: "maas_unavailable" },
    });
    const node = idOf(failed);
    expect(failed.nextCommand).toBe(`millwright fleet action ${node} retry-stage`);
    const { nextCommands } = await surface.client(ExplainService).explain({ kind: "fleet_node", id: node });
    const ofRun = await surface.client(ExplainService).explain({ kind: "run", id: failed.job?.runId ?? "" });
    expect([nextCommands[0]?.command, ofRun.nextCommands[0]?.command]).toEqual([
      failed.nextCommand,
      failed.nextCommand,
    ]);
    obeyed.add("flaky-1");
    await runPrinted(surface, failed.nextCommand);
    expect(await until(node, "completed")).toMatchObject({ node: { state: "active" }, job: { attempt: 2 } });
  });

  test("and takes a person quarantines the node with the reason, until the job succeeds after all", async () => {
    const failed = await until(idOf(await onboard({ hostname: "broken-1" })), "failed_manual_intervention");
    expect(failed.node).toMatchObject({
      state: "quarantined",
      quarantineReason: expect.stringContaining("no BOSS disk"),
    });
    obeyed.add("broken-1");
    await act("broken-1", "rerun");
    expect((await until("broken-1", "completed")).node).toMatchObject({ state: "active", quarantineReason: "" });
  });

  test.each([
    ["while it runs", "slow-cancel"],
    ["after it has failed", "flaky-cancel"],
  ])("or is canceled %s quarantines the node", async (_when, hostname) => {
    const id = idOf(await onboard({ hostname }));
    await until(id, hostname.startsWith("slow") ? "running" : "failed_retryable");
    await act(id, "cancel");
    expect((await until(id, "cancelled")).node?.state).toBe("quarantined");
    obeyed.add(hostname);
    const { nextCommand } = await show(id);
    expect(nextCommand).toBe(`millwright fleet action ${id} rerun`);
    await act(id, "rerun");
    expect((await until(id, "completed")).node?.state).toBe("active");
  });

  /** Table 1.7: what each action is for, by the job's state. */
  // biome-ignore format: a table is read by its columns
  test.each([
    ["flaky",  "failed_retryable",           ["retry-stage", "resume", "rerun", "restart-clean", "adopt-observed-state", "mark-manual", "cancel"]],
    ["broken", "failed_manual_intervention", ["retry-stage", "resume", "rerun", "restart-clean", "adopt-observed-state", "mark-manual", "cancel"]],
    ["slow",   "running",                    ["resume", "mark-manual", "cancel"]],
    ["gpu",    "completed",                  []],
  ])("of kind %s, which is %s, takes the actions of the table and no others", async (word, state, allowed) => {
    const all = ["retry-stage", "resume", "rerun", "restart-clean", "adopt-observed-state", "mark-manual", "cancel"];
    for (const action of all) {
      const id = idOf(await onboard({ hostname: `${word}-${action}-${++count}` }));
      await until(id, state);
      const asked = act(id, action, { comment: "seen to" });
      if (allowed.includes(action)) expect((await asked).node?.node?.id, action).toBe(id);
      else expect((await refusal(asked)).code, action).toBe(Code.FailedPrecondition);
    }
  });

  test("is acted on once for a request", async () => {
    const id = idOf(await onboard({ hostname: "flaky-once" }));
    await until(id, "failed_retryable");
    const requestId = "once";
    await Promise.all([act(id, "retry-stage", { requestId }), act(id, "retry-stage", { requestId })]);
    expect(await until(id, "failed_retryable")).toMatchObject({ job: { attempt: 2 } });
  });

  test("frozen by an operator stops after its stage, as a job that takes a person", async () => {
    const hostname = "slow-frozen";
    const id = idOf(await onboard({ hostname }));
    await until(id, "running");
    await act(id, "mark-manual", { comment: "the cabling is wrong" });
    obeyed.add(hostname);
    await until(id, "failed_manual_intervention", "completed");
  });
});

describe("the machine of a node", () => {
  test("cannot be repaved, joined, returned to its vendor or retired, also not in a preview; a reboot is let through", async () => {
    const { node } = await active();
    const machineId = node?.machineId ?? "";
    const { runs, lifecycle, client } = surface;
    for (const type of ["REPAVE", "JOIN", "RMA"]) {
      const request = { requestId: `${machineId} ${type}`, machineId, type };
      for (const ask of [() => runs.startRun(request), () => client(RunActionsService).previewRun(request)]) {
        const refused = await refusal(ask());
        expect(refused.code, type).toBe(Code.FailedPrecondition);
        expect(refused.message, type).toContain(`is fleet node ${node?.hostname}`);
      }
    }
    const reboot = await refusal(runs.startRun({ requestId: `${machineId} REBOOT`, machineId, type: "REBOOT" }));
    expect(reboot.message).not.toContain("fleet node");
    expect((await refusal(lifecycle.retireMachine({ machineId, comment: "" }))).message).toContain(
      "remove the node first",
    );
  });

  test("is one live node, also where two that onboard it name neither the same BMC nor the same host", async () => {
    const { id } = await insertNode(surface.db, "m-shared");
    await expect(insertNode(surface.db, "m-shared")).rejects.toThrow("fleet_nodes_one_live");
    await placeNode(surface.db, id, "deleted");
    await insertNode(surface.db, "m-shared");
    await expect(insertNode(surface.db, "m-shared")).rejects.toThrow("fleet_nodes_one_live");
  });

  test.each([
    ["ONBOARD", "millwright fleet onboard"],
    ["DECOMMISSION", "millwright fleet decommission"],
  ])("takes no run of type %s: the refusal names the command", async (type, command) => {
    const { node } = await active();
    const request = { requestId: `${node?.id} ${type}`, machineId: node?.machineId ?? "", type };
    expect((await refusal(surface.runs.startRun(request))).message).toContain(command);
  });

  test("is claimed by the job, and one that is canceled while it waits for the machine quarantines its node", async () => {
    const { db, machines } = surface;
    const holder = await onboard({ hostname: "slow-holder" });
    await until(idOf(holder), "running");
    const held = await db.query(
      "select 1 from claims where thing_kind = 'machine' and thing_id = $1 and granted_at is not null",
      [holder.node?.machineId],
    );
    expect(held).toHaveLength(1);
    const spec = { provider: "maas", bmcEndpoint: "10.9.3.1", bmcProtocol: "ipmi" };
    await machines.registerMachine({ machine: { machineId: "m-held", spec } });
    await db.execute(
      `insert into claims (thing_kind, thing_id, holder_kind, holder_id, reason, granted_at)
       values ('machine', 'm-held', 'rack', 'rack-9', 'maintenance', now())`,
    );
    const waiting = idOf(await onboard({ ipmiIp: "10.9.3.1" }));
    expect((await until(waiting, "pending")).node?.state).toBe("enrolling");
    await act(waiting, "cancel");
    expect((await until(waiting, "cancelled")).node?.state).toBe("quarantined");
  });
});

describe("a node", () => {
  test("is quarantined with a reason, not lifted by anything but recover, and not twice", async () => {
    const id = idOf(await active());
    expect((await refusal(nodes().quarantineNode({ node: id, comment: "" }))).code).toBe(Code.InvalidArgument);
    await nodes().quarantineNode({ node: id, comment: "fan 3 stands still" });
    await nodes().quarantineNode({ node: id, comment: "fan 3 stands still" });
    const held = await show(id);
    expect(held).toMatchObject({
      node: { state: "quarantined", quarantineReason: "fan 3 stands still" },
      nextCommand: `millwright fleet recover ${id}`,
    });
    await nodes().recoverNode({ node: id, comment: "replaced" });
    await nodes().recoverNode({ node: id, comment: "replaced" });
    expect((await show(id)).node).toMatchObject({ state: "active", quarantineReason: "" });
  });

  test("that was never brought up is not recovered, which would have it given away", async () => {
    const id = idOf(await onboard({ hostname: "broken-unproven" }));
    expect((await until(id, "failed_manual_intervention")).node?.state).toBe("quarantined");
    const refused = await refusal(nodes().recoverNode({ node: id, comment: "it looks fine" }));
    expect(refused).toMatchObject({
      code: Code.FailedPrecondition,
      message: expect.stringContaining("its onboarding"),
    });
    await act(id, "cancel");
    await until(id, "cancelled");
    expect((await refusal(nodes().recoverNode({ node: id, comment: "" }))).message).toContain("is cancelled");
    expect((await show(id)).node?.state).toBe("quarantined");
  });

  test("is not moved by hand while its job is under way", async () => {
    const id = idOf(await onboard({ hostname: "slow-busy" }));
    await until(id, "running");
    const refused = await refusal(nodes().quarantineNode({ node: id, comment: "odd" }));
    expect(refused.message).toContain("cancel it first");
    const second = await refusal(nodes().decommissionNode({ node: id, mode: "soft_reset", requestId: "busy" }));
    expect(second.code).toBe(Code.FailedPrecondition);
  });

  test("that is retired drains from that commit on by a job, keeps its identity, and comes back offline", async () => {
    const id = idOf(await active());
    const retired = await nodes().retireNode({ node: id, requestId: "retire-1", comment: "" });
    expect(retired.node).toMatchObject({ job: { type: "DECOMMISSION", mode: "retire" } });
    await nodes().retireNode({ node: id, requestId: "retire-1", comment: "" });
    expect((await until(id, "completed")).node?.state).toBe("retired");
    expect((await show(id)).nextCommand).toBe(`millwright fleet reactivate ${id}`);
    await nodes().reactivateNode({ node: id, comment: "" });
    expect((await show(id)).node?.state).toBe("offline");
  });

  test("is draining in the very commit that starts the job, and an abort brings it back by that job's cancel", async () => {
    const hostname = "slow-drain";
    obeyed.add(hostname);
    const id = idOf(await active({ hostname }));
    obeyed.delete(hostname);
    const { node } = await nodes().retireNode({ node: id, requestId: "retire-2", comment: "" });
    expect(node?.node?.state).toBe("draining");
    const commits = await surface.db.query(
      `select distinct xid from journal where (kind = 'fleet_node' and id = $1 and to_state = 'draining')
         or (kind = 'run' and id = $2 and type = 'created')`,
      [id, node?.job?.runId],
    );
    expect(commits).toHaveLength(1);
    await nodes().abortDrain({ node: hostname, comment: "not now" });
    expect((await until(id, "cancelled")).node?.state).toBe("offline");
    expect((await refusal(nodes().abortDrain({ node: id, comment: "" }))).code).toBe(Code.FailedPrecondition);
  });

  test("is named by its id, its host name, or with its site where two sites have one of that name", async () => {
    const here = await onboard({ hostname: "twin" });
    const there = await onboard({ hostname: "twin", site: "hall" });
    expect((await refusal(show("twin"))).message).toContain("hall/twin, lab/twin");
    expect(idOf(await show("hall/twin"))).toBe(idOf(there));
    expect(idOf(await show(idOf(here)))).toBe(idOf(here));
    expect((await refusal(show("nobody"))).code).toBe(Code.NotFound);
  });

  test("is listed with the coarse words alone: filtered, sorted, counted and page by page", async () => {
    const all = await nodes().listFleetNodes({ filter: "site=hall", orderBy: "hostname", withTotal: true });
    expect(all.nodes.map(({ hostname }) => hostname)).toEqual(["twin"]);
    expect(all.totalSize).toBe(1);
    const first = await nodes().listFleetNodes({ filter: "state=active", orderBy: "created_at", pageSize: 1 });
    const second = await nodes().listFleetNodes({
      filter: "state=active",
      orderBy: "created_at",
      pageSize: 1,
      pageToken: first.nextPageToken,
    });
    expect(second.nodes[0]?.id).not.toBe(first.nodes[0]?.id);
    expect(Object.keys(first.nodes[0] ?? {})).not.toContain("stage");
    expect((await refusal(nodes().listFleetNodes({ filter: "stage=bring_up" }))).code).toBe(Code.InvalidArgument);
  });
});

describe("a batch", () => {
  const row = (hostname: string, more: object = {}) => ({
    ...given({ hostname, profile: "pair" }),
    requestId: "",
    ...more,
  });
  /** Its run is on no machine, so that baremetal.v1 does not know it. */
  const ended = (runId: string) =>
    eventually(
      async () => {
        const { run } = (await surface.client(RunService).getRun({ runId })).run ?? {};
        return run !== undefined && run.phase > Run_Phase.RUNNING && run;
      },
      { what: `${runId} has ended` },
    );
  const began = async (prefix: string) =>
    (await surface.db.query("select 1 from fleet_nodes where hostname like $1", [`${prefix}%`])).length;

  test("onboards as many at a time as the profile says, and the rest as those end", async () => {
    const hosts = ["slow-row1", "slow-row2", "slow-row3", "slow-row4", "slow-row5"];
    const request = { requestId: "batch-1", nodes: hosts.map((host) => row(host)) };
    const [{ runId }, again] = await Promise.all([nodes().onboardNodes(request), nodes().onboardNodes(request)]);
    expect(again.runId).toBe(runId);
    for (const host of hosts.slice(0, 2))
      await eventually(
        () =>
          show(host).then(
            () => true,
            () => false,
          ),
        { what: `${host} begins` },
      );
    await until("slow-row1", "running");
    expect(await began("slow-row")).toBe(2);
    obeyed.add("slow-row1");
    await eventually(
      () =>
        show("slow-row3").then(
          () => true,
          () => false,
        ),
      { what: "the third begins" },
    );
    expect(await began("slow-row")).toBe(3);
    for (const host of hosts) obeyed.add(host);
    expect((await ended(runId)).phase).toBe(Run_Phase.SUCCEEDED);
    expect((await nodes().listFleetNodes({ filter: "profile=pair AND state=active" })).nodes).toHaveLength(5);
  });

  test("goes on past nodes that are refused or fail, and says at the end which", async () => {
    await active({ hostname: "gpu-taken" });
    const rows = [row("gpu-b1"), row("gpu-taken"), row("broken-b2"), row("gpu-b3")];
    const { runId } = await nodes().onboardNodes({ requestId: "batch-2", nodes: rows });
    const run = await ended(runId);
    expect(run.phase).toBe(Run_Phase.FAILED);
    expect(run.error?.message).toContain("2 of 4 onboarded; failed: broken-b2; refused: gpu-taken (");
    expect((await show("gpu-b3")).node?.state).toBe("active");
    obeyed.add("broken-b2");
    await act("broken-b2", "retry-stage");
    await until("broken-b2", "completed");
  });

  test("keeps the accounts of its nodes with their machines, and not in its plan", async () => {
    await active({ hostname: "gpu-held", ipmiIp: "10.9.4.9", bmcUsername: "maas", bmcPassword: "pass-held" });
    const account = (name: string) => ({ bmcUsername: "maas", bmcPassword: `pass-${name}` });
    const rows = [
      row("gpu-c1", { ipmiIp: "10.9.4.1", ...account("c1") }),
      row("gpu-c2", { ipmiIp: "10.9.4.9", ...account("c2") }),
      row("gpu-c3"),
    ];
    const request = { requestId: "batch-accounts", nodes: rows };
    const { runId } = await nodes().onboardNodes(request);
    const run = await ended(runId);
    expect(run.error?.message).toContain("2 of 3 onboarded; refused: gpu-c2 (");
    const { db, deps } = surface;
    const machineOf = async (name: string) => (await show(name)).node?.machineId ?? "";
    const ids = [await machineOf("gpu-c1"), await machineOf("gpu-held")];
    expect(await Promise.all(ids.map((one) => storedBmcCredentials(db, deps.secrets, one)))).toMatchObject([
      { password: "pass-c1" },
      { password: "pass-held" },
    ]);
    const kept = await db.query<{ text: string }>("select row(t.*)::text as text from runs t where id = $1", [runId]);
    expect(kept.map(({ text }) => text).join()).not.toContain("pass-");
    expect((await nodes().onboardNodes(request)).runId).toBe(runId);
  });

  test.each([
    ["a row that is wrong", () => [row("gpu-b8"), row("GPU 9")], "nodes[1]: hostname"],
    ["a name that is there twice", () => [row("gpu-b8"), row("gpu-b8")], "is there twice"],
    ["no row", () => [], "from 1 to 1000"],
    ["a profile that there is not", () => [row("gpu-b8"), row("gpu-b9", { profile: "b200" })], "has no profile b200"],
    ["a site that is disabled", () => [row("gpu-b8"), row("gpu-b9", { site: "shut" })], "is disabled"],
    ["a site that there is not", () => [row("gpu-b8"), row("gpu-b9", { site: "moon" })], "does not exist"],
  ])("with %s is refused as a whole, and leaves no machine and no account behind", async (_what, rows, words) => {
    const withAccount = rows().map((one) => ({ ...one, bmcUsername: "maas", bmcPassword: "pass-of-nobody" }));
    const refused = await refusal(nodes().onboardNodes({ requestId: `wrong ${words}`, nodes: withAccount }));
    expect(refused.message).toContain(words);
    expect(await began("gpu-b8")).toBe(0);
    const registered =
      "select 1 from machines where labels ->> 'hostname' like 'gpu-b8%' or labels ->> 'hostname' like 'gpu-b9%'";
    expect(await surface.db.query(registered)).toEqual([]);
  });
});

describe("a manual node", () => {
  const manual = async (more: object = {}) => {
    const { node, bootstrap } = await nodes().onboardNode(given({ mode: "manual", ipmiIp: "", ...more }));
    return { id: node?.node?.id ?? "", state: node?.node?.state, job: node?.job, command: bootstrap?.command ?? "" };
  };
  /** What the command would write on the host. */
  const tokenIn = (command: string): string => {
    const script = /^echo (\S+) \| base64 -d \| sudo sh$/.exec(command)?.[1] ?? "";
    const variable = /^MILLWRIGHT_ENROLMENT_TOKEN='([^']*)'$/m;
    return variable.exec(Buffer.from(script, "base64").toString())?.[1]?.trim() ?? "";
  };
  const enrol = (nodeId: string, token: string) =>
    enrolAgent(surface.deps, { nodeId, token, nonce: "0123456789abcdef", address: null });

  test("waits with a command for its owner, and is onboarded once its agent has enrolled", async () => {
    const { id, state, job, command } = await manual();
    expect([state, job]).toEqual(["bootstrap_issued", undefined]);
    expect(command.split("\n")).toHaveLength(1);
    expect((await show(id)).node?.ipmiIp).toBe("");
    await enrol(id, tokenIn(command));
    const done = await until(id, "completed");
    expect(done.node?.state).toBe("active");
    expect(done.job?.type).toBe("ONBOARD");
    expect(await surface.db.query("select 1 from runs where target_id = $1", [id])).toHaveLength(1);
    const kept = await surface.db.query<{ row: string }>(
      "select row(t.*)::text as row from fleet_nodes t where id = $1",
      [id],
    );
    const told = await surface.db.query<{ data: string }>("select data::text from journal where id = $1", [id]);
    const answers = [...kept.map(({ row }) => row), ...told.map(({ data }) => data)].join();
    expect(answers).not.toContain(tokenIn(command));
    expect((await refusal(nodes().reissueBootstrap({ node: id }))).code).toBe(Code.FailedPrecondition);
  });

  test("whose bundle expires is quarantined by way of enrolling, and another bundle leads out", async () => {
    const { id, command } = await manual({ profile: "brief" });
    await eventually(async () => (await show(id)).node?.state === "quarantined", { what: "it is quarantined" });
    const moves = await surface.db.query<{ move: string; xid: string }>(
      `select from_state || ' ' || to_state as move, xid::text from journal
        where kind = 'fleet_node' and id = $1 and from_state <> to_state order by version`,
      [id],
    );
    expect(moves.map(({ move }) => move)).toEqual(["bootstrap_issued enrolling", "enrolling quarantined"]);
    expect(new Set(moves.map(({ xid }) => xid)).size).toBe(1);
    await expect(enrol(id, tokenIn(command))).rejects.toMatchObject({ kind: "unauthenticated" });
    expect((await show(id)).nextCommand).toBe(`millwright fleet bootstrap reissue ${id}`);
    await surface.db.execute(`update fleet_nodes set profile = 'h100' where id = $1`, [id]);
    const { bootstrap } = await nodes().reissueBootstrap({ node: id });
    await enrol(id, tokenIn(bootstrap?.command ?? ""));
    expect((await until(id, "completed")).node).toMatchObject({ state: "active", quarantineReason: "" });
  });

  test("is given another command, and that of before is worth nothing", async () => {
    const { id, command } = await manual();
    const { bootstrap } = await nodes().reissueBootstrap({ node: id });
    await expect(enrol(id, tokenIn(command))).rejects.toMatchObject({ kind: "unauthenticated" });
    await enrol(id, tokenIn(bootstrap?.command ?? ""));
    await until(id, "completed");
  });

  test("of one request twice is told the same command", async () => {
    const request = given({ mode: "manual", ipmiIp: "" });
    const [first, second] = [await nodes().onboardNode(request), await nodes().onboardNode(request)];
    expect(second.bootstrap?.command).toBe(first.bootstrap?.command);
    expect(first.bootstrap?.command).toContain("base64 -d | sudo sh");
  });
});

// The last of all: it goes over what every test before it has left in the journal.
test("whatever was asked, nodes, jobs, machines and installs went together after every commit", async () => {
  expect(await faultsAtRest(surface.db)).toEqual([]);
});
