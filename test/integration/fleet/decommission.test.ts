import { afterEach, describe, expect, test } from "vitest";
import { aCall } from "../../../src/capabilities/conformance/device-bench.ts";
import type { MaasTarget } from "../../../src/capabilities/fleet/maas.ts";
import { createMaas } from "../../../src/providers/maas/maas-provider.ts";
import { createBmcGateway } from "../../../src/providers/transport/bmc-gateway.ts";
import { createToken } from "../../../src/store/access/tokens.ts";
import { printedNext, runPrinted, type Typed } from "../../support/cli/run-printed.ts";
import { eventually } from "../../support/eventually.ts";
import { faultsAtRest } from "../../support/fleet/at-rest.ts";
import { type FleetServer, startFleetServer } from "../../support/fleet/fleet-server.ts";
import { type ScriptedAgent, startScriptedAgent } from "../../support/fleet/scripted-agent.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";
import { type MaasHost, startMaasSite } from "./maas-site.ts";

let it: FleetServer;
let site: Awaited<ReturnType<typeof startMaasSite>>;
let token: string;
const maas = createMaas({ gateway: createBmcGateway() });
let target: MaasTarget;
let hosts: MaasHost[];
let count = 0;

interface Shown {
  readonly node: { readonly state: string; readonly quarantine_reason?: string };
  readonly state: string;
  readonly job: {
    readonly state: string;
    readonly stage: string;
    readonly failure_class: string;
    readonly message: string;
    readonly run_id: string;
  } | null;
  readonly next_command: string;
}

async function api<T>(
  method: string,
  path: string,
  body?: unknown,
): Promise<{ status: number; text: string; data: T }> {
  const response = await fetch(`${it.server.httpUrl}/api/v1/fleet${path}`, {
    method,
    headers: { authorization: `Bearer ${token}`, ...(body !== undefined && { "content-type": "application/json" }) },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  return { status: response.status, text, data: (JSON.parse(text) as { data: T }).data };
}
async function ok<T>(method: string, path: string, body?: unknown): Promise<T> {
  const answer = await api<T>(method, path, body);
  if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${answer.text}`);
  return answer.data;
}

beforeAll(async () => {
  site = await startMaasSite({ hosts: 17 });
  it = await startFleetServer({
    MILLWRIGHT_BMC_ALLOWED_NETWORKS: "127.0.0.0/8",
    MILLWRIGHT_FLEET_PUBLIC_URL: "http://192.0.2.1:8080",
    MILLWRIGHT_FLEET_OFFLINE_AFTER: "5s",
  });
  ({ token } = await createToken(it.db, { name: "pat", roles: ["admin"], createdBy: "test" }));
  const { url, apiKey } = site;
  await ok("PATCH", "/sites/lab", { url, api_key: apiKey, allow_http: true });
  await ok("PUT", "/sites/lab/profiles/h100", {});
  const { hostname, port, pathname } = new URL(url);
  const trust = { mode: "off" } as const;
  target = { address: hostname, port: Number(port), scheme: "http", trust, path: pathname, apiKey };
  hosts = [...site.hosts];
});
afterAll(async () => {
  maas.close();
  await it.close();
  await site.stop();
});
const agents: ScriptedAgent[] = [];
afterEach(async () => {
  for (const agent of agents.splice(0)) await agent.stop();
  await site.control("DELETE", "/faults");
});

/** A node with an agent that works, without a machine in MAAS. */
async function aNode(state = "active") {
  const id = await it.makeNode(state);
  const bearer = await it.enrol(id);
  const agent = startScriptedAgent(it, id, bearer);
  agents.push(agent);
  return { id, agent };
}

/** The same, deployed by MAAS. */
async function aDeployedNode(state = "active") {
  const host = hosts.shift();
  if (!host) throw new Error("the site has too few servers");
  const power = { address: host.ipmi_address, username: host.ipmi_username, password: host.ipmi_password };
  const { systemId } = await maas.createMachine(target, { hostname: host.id, power }, aCall());
  const becomes = (status: number) =>
    eventually(async () => (await maas.findMachine(target, systemId, aCall()))?.status === status, {
      what: `${systemId} has status ${status}`,
    });
  await maas.commission(target, systemId, aCall());
  await becomes(4);
  const order = { userData: "", distroSeries: null, hardwareSync: true, comment: "" };
  await maas.linkSubnet(target, { systemId, interfaceId: 1, subnetId: 1, ipAddress: null }, aCall());
  await maas.deploy(target, systemId, order, aCall());
  await becomes(6);
  const node = await aNode(state);
  await it.db.execute(
    `update fleet_nodes set facts = facts || jsonb_build_object('systemId', $2::text) where id = $1`,
    [node.id, systemId],
  );
  return { ...node, systemId, host: host.id };
}

const decommission = (id: string, mode: string, more: object = {}) =>
  api<Shown>("POST", `/nodes/${id}/decommission`, { mode, request_id: `request-${++count}`, ...more });
const action = (id: string, name: string) =>
  ok<Shown>("POST", `/nodes/${id}/actions`, { action: name, request_id: `request-${++count}` });
/** The command that `fleet show` prints is this one, and does as it is. */
async function asPrinted(id: string, line: string, typed: Typed = {}): Promise<void> {
  const cli = { env: { MILLWRIGHT_SERVER: it.server.httpUrl, MILLWRIGHT_TOKEN: token } };
  const printed = await eventually(async () => (await printedNext(cli, id)) || undefined, {
    what: "a command is printed",
  });
  expect(printed).toBe(`millwright ${line}`);
  await runPrinted(cli, printed, typed);
}
const show = (id: string) => ok<Shown>("GET", `/nodes/${id}`);

/** Starts it and waits for the end of the job. */
async function ends(id: string): Promise<{ state: string; job: NonNullable<Shown["job"]>; reason: string | null }> {
  const shown = await eventually(
    async () => {
      const { job } = await show(id);
      return job !== null && !["pending", "running", "compensating"].includes(job.state) && job;
    },
    { what: `the job of ${id} has ended`, seen: async () => JSON.stringify(await show(id)) },
  );
  const { state, facts } = await it.nodeOf(id);
  return { state: state.name, job: shown, reason: facts.quarantineReason };
}
async function decommissioned(id: string, mode: string, more: object = {}) {
  const answer = await decommission(id, mode, more);
  expect(answer.status, answer.text).toBeLessThan(300);
  return ends(id);
}
const path = async (id: string) => {
  const rows = await it.db.query<{ row: string }>(
    `select from_state || ' ' || to_state as row from journal
      where kind = 'fleet_node' and id = $1 and from_state <> to_state order by version`,
    [id],
  );
  return rows.map(({ row }) => row.replace(" ", " -> "));
};

describe("storage_cleanup", () => {
  test("drains, wipes and validates, and gives the node back offline: a heartbeat makes it active", async () => {
    const { id, agent } = await aNode();
    expect(await decommissioned(id, "storage_cleanup")).toMatchObject({
      state: "offline",
      job: { state: "completed" },
    });
    expect(agent.done).toEqual(["node.drain", "node.cleanup_storage", "node.validate_clean"]);
    expect(await path(id)).toEqual(["active -> draining", "draining -> offline"]);
  });

  test("leaves a quarantined node quarantined, for the same reason", async () => {
    const { id } = await aNode();
    await ok("POST", `/nodes/${id}/quarantine`, { comment: "it smells of smoke" });
    const ended = await decommissioned(id, "storage_cleanup");
    expect(ended).toMatchObject({ state: "quarantined", reason: "it smells of smoke", job: { state: "completed" } });
  });

  test.each([
    ["active", "release"],
    ["release_failed", "force-release"],
  ])(
    "does not end what others use: it fails, and leads on once the allocation, which is %s, is released",
    async (state, verb) => {
      const { id } = await aNode();
      await ok("POST", "/allocations", { node: id, tenant: "team-a", request_id: "one" });
      const [{ id: allocation } = { id: "" }] = await it.db.query<{ id: string }>(
        "select id from fleet_allocations where node = $1",
        [id],
      );
      const used = await decommissioned(id, "storage_cleanup");
      expect(used).toMatchObject({
        state: "offline",
        job: { state: "failed_manual_intervention", failure_class: "allocation_in_use", stage: "drain_node" },
      });
      await it.db.execute("update fleet_allocations set state = $2 where id = $1", [allocation, state]);
      const question = `End allocation ${allocation}, and not wait for who uses it? Type yes:`;
      await asPrinted(id, `fleet allocation ${verb} ${allocation}`, { answers: { [question]: "yes" } });
      await asPrinted(id, `fleet action ${id} retry-stage`);
      expect(await ends(id)).toMatchObject({ state: "offline", job: { state: "completed" } });
    },
  );
});

describe("soft_reset", () => {
  test("ends the use of the node, scrubs its GPUs as well, and gives it back", async () => {
    const { id, agent } = await aNode();
    await ok("POST", "/allocations", { node: id, tenant: "team-a", request_id: "one" });
    await eventually(
      async () =>
        (await it.db.query("select 1 from fleet_allocations where node = $1 and state = 'active'", [id])).length === 1,
      { what: "the allocation is active" },
    );
    expect(await decommissioned(id, "soft_reset")).toMatchObject({ state: "offline", job: { state: "completed" } });
    expect(
      await it.db.query("select state, state_data ->> 'force' as force from fleet_allocations where node = $1", [id]),
    ).toEqual([{ state: "released", force: null }]);
    expect(agent.done).toEqual(["node.drain", "node.cleanup_storage", "node.scrub_gpu", "node.validate_clean"]);
    expect((await api("POST", "/allocations", { node: id, tenant: "b", request_id: "two" })).status).toBe(400);
  });

  test("quarantines a node that is not clean, by way of offline", async () => {
    const { id, agent } = await aNode();
    agent.failsNext("node.validate_clean", "2 files of the tenant are left");
    const ended = await decommissioned(id, "soft_reset");
    expect(ended).toMatchObject({
      state: "quarantined",
      reason: expect.stringContaining("2 files of the tenant are left"),
      job: { state: expect.stringMatching(/^failed/), failure_class: "validation_failed" },
    });
    expect(await path(id)).toEqual(["active -> draining", "draining -> offline", "offline -> quarantined"]);
    await asPrinted(id, `fleet action ${id} retry-stage`);
    // It is clean now; that its quarantine ends is for an operator to say.
    expect(await ends(id)).toMatchObject({ job: { state: "completed" } });
  });

  test("that could not drain gives the node back; resumed, it drains it again", async () => {
    const { id, agent } = await aNode();
    agent.failsNext("node.drain", "a job will not end");
    expect(await decommissioned(id, "soft_reset")).toMatchObject({
      state: "offline",
      job: { state: "failed_retryable", failure_class: "drain_failed" },
    });
    await asPrinted(id, `fleet action ${id} resume`);
    expect(await ends(id)).toMatchObject({ state: "offline", job: { state: "completed" } });
    expect(await path(id)).toEqual([
      "active -> draining",
      "draining -> offline",
      "offline -> draining",
      "draining -> offline",
    ]);
  });

  test("that could not drain a quarantined node leaves it quarantined, for the same reason; resumed, it drains it again", async () => {
    const { id, agent } = await aNode();
    await ok("POST", `/nodes/${id}/quarantine`, { comment: "it smells of smoke" });
    agent.failsNext("node.drain", "a job will not end");
    expect(await decommissioned(id, "soft_reset")).toMatchObject({
      ...{ state: "quarantined", reason: "it smells of smoke" },
      job: { state: "failed_retryable", failure_class: "drain_failed" },
    });
    await asPrinted(id, `fleet action ${id} resume`);
    expect(await ends(id)).toMatchObject({
      ...{ state: "quarantined", reason: "it smells of smoke" },
      job: { state: "completed" },
    });
    const way = ["quarantined -> draining", "draining -> offline", "offline -> quarantined"];
    expect(await path(id)).toEqual(["active -> quarantined", ...way, ...way]);
  });

  test("that could not clean keeps the node out of scheduling until it is gone on with", async () => {
    const { id, agent } = await aNode();
    agent.failsNext("node.cleanup_storage", "nvme1n1 is read-only");
    expect(await decommissioned(id, "soft_reset")).toMatchObject({
      state: "draining",
      job: { state: "failed_retryable", failure_class: "cleanup_failed" },
    });
    await asPrinted(id, `fleet action ${id} retry-stage`);
    expect(await ends(id)).toMatchObject({ state: "offline", job: { state: "completed" } });
  });
});

describe("a job that waits for the agent", () => {
  test("is resumed without a second task; one whose lease has expired is followed by another, and the node stays draining", async () => {
    const { id, agent } = await aNode();
    await agent.stop();
    await decommission(id, "storage_cleanup");
    const tasks = () =>
      it.db.query<{ id: string; state: string }>(
        "select id, state from fleet_tasks where node_id = $1 order by created_at",
        [id],
      );
    const isQueued = (atLeast: number) => async () => {
      // It takes no task, and is not silent: on a slow computer its silence would count before the drain is ordered.
      await it.call("POST", `${id}/heartbeat`, { bearer: agent.bearer, body: { health: "healthy" } });
      const all = await tasks();
      return all.length >= atLeast && all.at(-1)?.state === "queued" && all;
    };
    const seen = async () => JSON.stringify(await tasks());
    const expireLease = async (task: string): Promise<void> => {
      await it.db.execute(
        `update fleet_tasks set basis = basis + 1, version = version + 1,
                facts = facts || jsonb_build_object('leaseUntil', to_char(now() - interval '1 s', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'))
          where id = $1`,
        [task],
      );
      await it.db.execute("update work set wake_at = now() where kind = 'fleet_task' and id = $1", [task]);
      await it.db.execute("select pg_notify('millwright', '')");
    };
    // The last call of the agent may be open when the drain comes: then that task is nobody's, and another one follows its lease.
    const ofNobody = new Set<string>();
    const queuedFirst = async () => {
      const [first] = await tasks();
      if (first?.state === "dispatched" && !ofNobody.has(first.id)) {
        ofNobody.add(first.id);
        await expireLease(first.id);
      }
      return isQueued(1)();
    };
    const made = await eventually(queuedFirst, { what: "the drain is queued", seen });
    await action(id, "resume");
    await action(id, "resume");
    expect(await tasks()).toEqual(made);

    const task = await eventually(
      async () => {
        const waited = `${id}/tasks/wait?wait_seconds=1`;
        const { body } = await it.call<{ task: { task_id: string } | null }>("GET", waited, { bearer: agent.bearer });
        return body.task?.task_id;
      },
      { what: "the agent has taken the drain" },
    );
    await action(id, "resume");
    expect(await tasks()).toEqual([...made.slice(0, -1), { id: task, state: "dispatched" }]);

    await expireLease(task);
    await eventually(isQueued(made.length + 1), { what: "another task is queued", seen });
    expect((await it.nodeOf(id)).state.name).toBe("draining");
    agents.push(startScriptedAgent(it, id, agent.bearer));
    expect(await ends(id)).toMatchObject({ state: "offline", job: { state: "completed" } });
  });
});

describe("full_decommission", () => {
  test("removes a node for good: from MAAS, from the fleet, and with its agent", async () => {
    const { id, agent, systemId } = await aDeployedNode();
    expect(await decommissioned(id, "full_decommission")).toMatchObject({
      state: "deleted",
      job: { state: "completed" },
    });
    expect(agent.done.at(-1)).toBe("node.uninstall");
    expect(await path(id)).toEqual([
      "active -> draining",
      "draining -> retired",
      "retired -> removing",
      "removing -> deleted",
    ]);
    expect(await maas.findMachine(target, systemId, aCall())).toBeUndefined();
    expect((await it.call("GET", `${id}/tasks/wait?wait_seconds=0`, { bearer: agent.bearer })).status).toBeGreaterThan(
      400,
    );
    for (const verb of ["reactivate", "recover"])
      expect((await api("POST", `/nodes/${id}/${verb}`, {})).status, verb).toBe(400);
    // The end of the node and the end of its job are one commit.
    const [xids] = await it.db.query<{ count: string }>(
      `select count(distinct xid)::text as count from journal
        where (kind = 'fleet_node' and id = $1 and to_state = 'deleted') or (kind = 'run' and to_state = 'SUCCEEDED' and id in
          (select id from runs where target_id = $1))`,
      [id],
    );
    expect(xids?.count).toBe("1");
    // Its name and its machine are free for a new record.
    await it.db.execute(
      `insert into fleet_nodes (id, site, profile, sku, hostname, mode, machine_id, request_id, fingerprint, created_by, state)
       select 'fn-again', site, profile, sku, hostname, mode, machine_id, 'again', '', 'test', 'enrolling' from fleet_nodes where id = $1`,
      [id],
    );
  });

  test("leaves the machine in MAAS where the site keeps machines", async () => {
    const { id, systemId } = await aDeployedNode();
    await ok("PATCH", "/sites/lab", { retain_in_maas: true });
    try {
      expect(await decommissioned(id, "full_decommission")).toMatchObject({ state: "deleted" });
    } finally {
      await ok("PATCH", "/sites/lab", { retain_in_maas: false });
    }
    expect(await maas.findMachine(target, systemId, aCall())).toMatchObject({ status: 4, power: "off" });
  });

  test("removes a node of a site that is disabled", async () => {
    const { id, systemId } = await aDeployedNode();
    await ok("PATCH", "/sites/lab", { enabled: false });
    try {
      expect(await decommissioned(id, "full_decommission")).toMatchObject({ state: "deleted" });
    } finally {
      await ok("PATCH", "/sites/lab", { enabled: true });
    }
    expect(await maas.findMachine(target, systemId, aCall())).toBeUndefined();
  });

  test("whose uninstall fails leaves the node retired, with its identity; resumed, it removes it", async () => {
    const { id, agent } = await aDeployedNode();
    agent.failsNext("node.uninstall", "a process holds the disk");
    expect(await decommissioned(id, "full_decommission")).toMatchObject({
      state: "retired",
      job: { state: "failed_retryable", failure_class: "uninstall_failed", stage: "remove_gpuaas_node_record" },
    });
    await asPrinted(id, `fleet action ${id} resume`);
    expect(await ends(id)).toMatchObject({ state: "deleted", job: { state: "completed" } });
    expect(await path(id)).toEqual([
      "active -> draining",
      "draining -> retired",
      "retired -> removing",
      "removing -> retired",
      "retired -> removing",
      "removing -> deleted",
    ]);
  });

  test("calls a person where disks cannot be erased; by the policy of the profile it releases without", async () => {
    const { id, host } = await aDeployedNode();
    await site.control("POST", "/faults", { device: host, fault: { type: "erase_fails" }, times: 1 });
    expect(await decommissioned(id, "full_decommission")).toMatchObject({
      state: "retired",
      job: { state: "failed_manual_intervention", failure_class: "erase_failed", stage: "release_maas_node" },
    });
    await asPrinted(id, `fleet action ${id} retry-stage`);
    expect(await ends(id)).toMatchObject({ state: "deleted" });

    await ok("PUT", "/sites/lab/profiles/h100", { policy: { release_fallback_no_erase: true } });
    const other = await aDeployedNode();
    await site.control("POST", "/faults", { device: other.host, fault: { type: "erase_fails" }, times: 1 });
    expect(await decommissioned(other.id, "full_decommission")).toMatchObject({ state: "deleted" });
    await ok("PUT", "/sites/lab/profiles/h100", {});
  });

  test("whose release fails even without erasing is failed_retryable; the recommended command releases the machine", async () => {
    await ok("PUT", "/sites/lab/profiles/h100", { policy: { release_fallback_no_erase: true } });
    const { id, host } = await aDeployedNode();
    for (const type of ["erase_fails", "release_fails"])
      await site.control("POST", "/faults", { device: host, fault: { type }, times: 1 });
    expect(await decommissioned(id, "full_decommission")).toMatchObject({
      state: "retired",
      job: { state: "failed_retryable", failure_class: "release_failed", stage: "release_maas_node" },
    });
    await asPrinted(id, `fleet action ${id} retry-stage`);
    expect(await ends(id)).toMatchObject({ state: "deleted" });
    await ok("PUT", "/sites/lab/profiles/h100", {});
  });

  test("whose machine does not switch off is failed_retryable; once it is off, the recommended command leads on", async () => {
    const { id, host, systemId } = await aDeployedNode();
    await site.control("POST", "/faults", { device: host, fault: { type: "power_off_ignored" } });
    expect((await decommission(id, "full_decommission")).status).toBeLessThan(300);
    // Its deadline is a quarter of an hour, three times.
    await it.db.execute(
      `update runs set plan = jsonb_set(plan, '{steps}', (
         select jsonb_agg(case when step ->> 'name' = 'power_off_maas_node'
                               then step || '{"timeoutSeconds": 1, "maxRetries": 0}' else step end order by place)
           from jsonb_array_elements(plan -> 'steps') with ordinality as each(step, place)))
        where target_id = $1`,
      [id],
    );
    expect(await ends(id)).toMatchObject({
      state: "retired",
      job: { state: "failed_retryable", failure_class: "power_off_failed", stage: "power_off_maas_node" },
    });
    await site.control("DELETE", "/faults");
    await asPrinted(id, `fleet action ${id} retry-stage`);
    expect(await ends(id)).toMatchObject({ state: "deleted", job: { state: "completed" } });
    const calls = await site.control<{ path: string; op: string | null }[]>("GET", "/maas/calls");
    expect(calls.filter(({ path: at, op }) => at.includes(`/${systemId}/`) && op === "power_off")).toHaveLength(2);
  });

  test("takes an agent that fell silent for uninstalled, since MAAS ends its system", async () => {
    const { id, agent } = await aDeployedNode("retired");
    await agent.stop();
    expect(await decommissioned(id, "full_decommission")).toMatchObject({
      state: "deleted",
      job: { state: "completed" },
    });
    expect(agent.done).toEqual([]);
  });
});

describe("reimage", () => {
  /** The token in the user data that MAAS was last given for the machine. */
  const tokenOf = async (systemId: string): Promise<string | undefined> => {
    const machines = await site.control<{ system_id: string; user_data: string | null }[]>("GET", "/maas/machines");
    const data = machines.find(({ system_id }) => system_id === systemId)?.user_data;
    return /"(mwe_[\w-]+)/.exec(Buffer.from(data ?? "", "base64").toString())?.[1];
  };

  /** What the system that MAAS has deployed does. */
  async function enrolsAgain(id: string, given: string): Promise<string> {
    const enrolled = await it.call<{ bearer: string }>("POST", `${id}/enroll`, {
      body: { token: given, nonce: "0123456789abcdef" },
    });
    expect(enrolled.status).toBe(200);
    const { bearer } = enrolled.body;
    await it.call("POST", `${id}/heartbeat`, { bearer, body: { health: "healthy" } });
    return bearer;
  }

  test("deploys the machine again while the node is retired, and brings the same node back with a new agent", async () => {
    const { id, agent, systemId } = await aDeployedNode();
    expect((await decommission(id, "reimage")).status).toBeLessThan(300);
    const given = await eventually(() => tokenOf(systemId), {
      what: "the machine is deployed with a token",
      seen: async () => JSON.stringify([await show(id), await site.control("GET", "/maas/machines")]),
    });
    expect((await it.nodeOf(id)).state.name).toBe("retired");
    await agent.stop();
    await enrolsAgain(id, given);
    const back = await ends(id);
    expect(back).toMatchObject({ job: { state: "completed" } });
    expect((await path(id)).slice(0, 3)).toEqual(["active -> draining", "draining -> retired", "retired -> offline"]);
    expect(await maas.findMachine(target, systemId, aCall())).toMatchObject({ status: 6, power: "on" });
    expect((await it.call("GET", `${id}/tasks/wait?wait_seconds=0`, { bearer: agent.bearer })).status).toBe(403);
  });

  test("of a machine that somebody deleted in MAAS calls a person: the printed command removes the node", async () => {
    const { id, systemId } = await aDeployedNode();
    await site.control("DELETE", `/maas/machines/${systemId}`);
    expect(await decommissioned(id, "reimage")).toMatchObject({
      state: "retired",
      job: {
        ...{ state: "failed_manual_intervention", failure_class: "machine_deleted_in_maas" },
        stage: "release_maas_node",
      },
    });
    const question = `Decommission by full_decommission ${id}? Type yes:`;
    await asPrinted(id, `fleet decommission ${id} --mode full_decommission`, { answers: { [question]: "yes" } });
    expect(await ends(id)).toMatchObject({ state: "deleted", job: { state: "completed" } });
  });

  test("that MAAS deploys without hardware sync begins again from clean, by the printed command", async () => {
    const { id, agent, systemId, host } = await aDeployedNode();
    await agent.stop();
    const { id: fault } = await site.control<{ id: string }>("POST", "/faults", {
      ...{ device: host, fault: { type: "hardware_sync_ignored" } },
    });
    expect(await decommissioned(id, "reimage", { agent_gone: true })).toMatchObject({
      state: "retired",
      job: {
        ...{ state: "failed_manual_intervention", failure_class: "hardware_sync_not_enabled" },
        stage: "ensure_hardware_sync_configured",
      },
    });
    await site.control("DELETE", `/faults/${fault}`);
    await asPrinted(id, `fleet action ${id} restart-clean`);
    await eventually(async () => (await show(id)).job?.stage === "wait_for_agent_enrollment", {
      what: "it waits for its agent",
      seen: async () => JSON.stringify(await show(id)),
    });
    await enrolsAgain(id, (await tokenOf(systemId)) ?? "");
    expect(await ends(id)).toMatchObject({ job: { state: "completed" } });
  });
});

describe("how it is asked for", () => {
  test("a preview says what the job would come through, and starts nothing", async () => {
    const { id } = await aNode("retired");
    const { stages } = await ok<{ stages: { stage: string; skipped: string }[] }>(
      "POST",
      `/nodes/${id}/decommission/preview`,
      { mode: "full_decommission" },
    );
    expect(stages).toHaveLength(13);
    expect(stages.filter(({ skipped }) => skipped === "").map(({ stage }) => stage)).toEqual([
      "load_site_config",
      "remove_gpuaas_node_record",
      "release_maas_node",
      "power_off_maas_node",
      "cleanup_secrets",
      "remove_maas_record",
    ]);
    expect((await show(id)).job).toBeNull();
  });

  test("of a node whose agent is gone asks no agent, where MAAS erases the disks", async () => {
    const { id, agent } = await aDeployedNode("offline");
    await agent.stop();
    expect((await decommission(id, "soft_reset", { agent_gone: true })).status).toBe(422);
    const removed = await decommissioned(id, "full_decommission", { agent_gone: true });
    expect(removed).toMatchObject({ state: "deleted", job: { state: "completed" } });
    expect(agent.done).toEqual([]);
  });

  test("a quarantine ends where somebody asked for it and the node was validated", async () => {
    const { id } = await aNode();
    await ok("POST", `/nodes/${id}/quarantine`, { comment: "it smells of smoke" });
    expect((await decommission(id, "reimage", { lift_quarantine: true })).status).toBe(422);
    const cleaned = await decommissioned(id, "storage_cleanup", { lift_quarantine: true });
    expect(cleaned).toMatchObject({ state: "offline", reason: null, job: { state: "completed" } });
  });

  test("a canceled job that had begun to wipe the node leaves it quarantined", async () => {
    const { id, agent } = await aNode();
    agent.failsNext("node.cleanup_storage", "nvme1n1 is read-only");
    expect(await decommissioned(id, "soft_reset")).toMatchObject({ state: "draining" });
    await action(id, "cancel");
    expect(await ends(id)).toMatchObject({ state: "quarantined", job: { state: "cancelled" } });
  });

  test("the same request starts one job", async () => {
    const { id } = await aNode();
    const body = { mode: "soft_reset", request_id: "the-same-one" };
    const [first, again] = await Promise.all([1, 2].map(() => ok<Shown>("POST", `/nodes/${id}/decommission`, body)));
    expect(again?.job?.run_id).toBe(first?.job?.run_id);
    await ends(id);
  });
});

describe("a retired node", () => {
  test("keeps its identity, and comes back offline, switched on", async () => {
    const { id, systemId } = await aDeployedNode();
    await ok("POST", `/nodes/${id}/retire`, { request_id: "retire-it" });
    expect(await ends(id)).toMatchObject({ state: "retired", job: { state: "completed" } });
    await maas.powerOff(target, systemId, aCall());
    expect(await maas.findMachine(target, systemId, aCall())).toMatchObject({ status: 6, power: "off" });
    await ok("POST", `/nodes/${id}/reactivate`, {});
    expect((await it.nodeOf(id)).state.name).not.toBe("retired");
    expect(await maas.findMachine(target, systemId, aCall())).toMatchObject({ status: 6, power: "on" });
  });

  test("does not come back when its system is gone: a reimage is named", async () => {
    const { id, systemId } = await aDeployedNode("retired");
    await maas.release(target, systemId, { erase: false, comment: "" }, aCall());
    const refused = await api("POST", `/nodes/${id}/reactivate`, {});
    expect(refused.status).toBe(400);
    expect(refused.text).toContain("has no system to come back with");
    expect((await it.nodeOf(id)).state.name).toBe("retired");
  });
});

// The last of all: it goes over what every test before it has left in the journal. The nodes were put on record without their machines.
test("every job ended with its node as the tables say", async () => {
  const faults = await faultsAtRest(it.db);
  expect(faults.filter((fault) => !fault.endsWith("on a machine that is null"))).toEqual([]);
});
