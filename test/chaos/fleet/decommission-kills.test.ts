// @module-tag race
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, test, vi } from "vitest";
import { aCall } from "../../../src/capabilities/conformance/device-bench.ts";
import type { MaasTarget } from "../../../src/capabilities/fleet/maas.ts";
import { minutes } from "../../../src/kernel/time/duration.ts";
import { createMaas } from "../../../src/providers/maas/maas-provider.ts";
import { parseApiKey } from "../../../src/providers/maas/sign-in.ts";
import { createBmcGateway } from "../../../src/providers/transport/bmc-gateway.ts";
import { previewOf } from "../../../src/runs/workflows/fleet/fleet-decommission.ts";
import { decommissionNode } from "../../../src/services/fleet/decommission.ts";
import { setProfile } from "../../../src/services/fleet/profiles.ts";
import { addSite } from "../../../src/services/fleet/sites.ts";
import { findOpenTasks } from "../../../src/store/fleet/tasks.ts";
import { applyVerb } from "../../../src/store/lifecycle/verbs.ts";
import { allStores } from "../../../src/wiring/things/all-things.ts";
import { startMaasSite } from "../../integration/fleet/maas-site.ts";
import { createTestDatabase, type TestDatabase } from "../../support/database.ts";
import { eventually } from "../../support/eventually.ts";
import { enrolDeployed } from "../../support/fleet/onboarding-bench.ts";
import { PROBED } from "../../support/processes/dying-steps.ts";
import type { FleetVictimOrder } from "../../support/processes/fleet-victim.ts";
import { openProcessBench, type ProcessBench } from "../../support/processes/process-bench.ts";
import { startProgram } from "../../support/processes/programs.ts";
import { openRunReplica, type RunReplica } from "../../support/processes/run-replica.ts";
import { tester } from "../../support/run-bench.ts";

/**
 * Replicas die by kill -9 in every stage of a full decommission and of a reimage: of one, which is started again each time, and of two, of
 * which one is alive. The node is removed, or deployed again, in the end; each task was done by the agent once, and MAAS's own log shows
 * each command once.
 */
const DEATHS = [
  // MAAS and the agent know more than is on record, and then everything is on record and nobody knows it.
  { title: "one replica", replicas: 1, failPoint: "controller:handled" },
  { title: "two replicas", replicas: 2, failPoint: "committer:after" },
  // In the middle of a pass, as soon as a stage has looked: every stage, also those that only read.
  { title: "two replicas in the middle of a stage", replicas: 2, failPoint: PROBED },
] as const;
const MODES = ["full_decommission", "reimage"] as const;
const LANES = MODES.flatMap((mode) => DEATHS.map((death) => ({ mode, ...death })));
type LaneOf = (typeof LANES)[number];

/**
 * Where something is on record of a stage before it is done. `load_site_config` only reads, and `power_off_maas_node` finds off what the release has
 * switched off: both are begun and done by the pass that ends the stage before, with nothing written in between.
 */
const TO_RETIRED = ["disable_node", "force_release_allocations", "drain_node"];
const WHOLE = {
  full_decommission: {
    stages: [
      ...TO_RETIRED,
      ...["cleanup_storage", "scrub_gpu", "validate_clean_node", "retire_gpuaas_node", "remove_gpuaas_node_record"],
      ...["release_maas_node", "cleanup_secrets", "remove_maas_record"],
    ],
    ends: "deleted",
    tasks: ["node.drain", "node.cleanup_storage", "node.scrub_gpu", "node.validate_clean", "node.uninstall"],
    commands: ["POST release", "DELETE"],
  },
  reimage: {
    stages: [
      ...TO_RETIRED,
      ...[
        "retire_gpuaas_node",
        "release_maas_node",
        "deploy_via_maas",
        "render_cloud_init",
        "wait_for_agent_enrollment",
      ],
    ],
    ends: "offline",
    tasks: ["node.drain"],
    commands: ["POST release", "POST deploy"],
  },
} as const satisfies { readonly [mode in LaneOf["mode"]]: object };
const PROOFS = {
  "node.drain": { drained: true },
  "node.cleanup_storage": { devices: [{ name: "nvme0n1", wiped: true }] },
  "node.scrub_gpu": { scrubbed: true },
  "node.validate_clean": { clean: true, findings: [] },
  "node.uninstall": { uninstalled: true },
  "diag.health_probe": { health: "healthy" },
} as const;
/** Who dies after an announcement leaves open whether MAAS heard of the command, and it gets minutes to show it. */
const SETTLES = minutes(6);

let bench: ProcessBench;
vi.setConfig({ maxConcurrency: LANES.length });
beforeAll(() => {
  bench = openProcessBench();
});
afterAll(() => bench.close());

describe("a decommission survives kill -9 in every stage", { concurrent: true, timeout: 300_000 }, () => {
  test.for(LANES)("of $title, in a $mode", async (lane, { expect, onTestFinished }) => {
    const kills = await Kills.open(lane);
    onTestFinished(() => kills.close());
    await kills.untilOver();
    const { stages, ends, tasks, commands } = WHOLE[lane.mode];
    const places = kills.deaths();
    for (const stage of lane.failPoint === PROBED ? previewOf({ mode: lane.mode }).map((each) => each.stage) : stages)
      expect(
        places.some((place) => place.startsWith(`${stage} `)),
        `somebody died in ${stage}; they died at ${places.join(", ")}`,
      ).toBe(true);
    const { db } = kills.database;
    expect(await db.query("select state from fleet_nodes")).toEqual([{ state: ends }]);
    expect(await db.query("select state from runs")).toEqual([{ state: "SUCCEEDED" }]);
    expect(await db.query("select task_type, state from fleet_tasks order by created_at")).toEqual(
      tasks.map((task_type) => ({ task_type, state: "completed" })),
    );
    expect(await db.query("select state from fleet_allocations")).toEqual([{ state: "released" }]);
    expect(await db.query("select * from claims")).toEqual([]);
    expect(await kills.commands()).toEqual(commands);
  });
});

class Kills {
  readonly database: TestDatabase;
  readonly #lane: LaneOf;
  readonly #site: Awaited<ReturnType<typeof startMaasSite>>;
  readonly #directory: string;
  readonly #asking: RunReplica;
  #started = 0;
  #commandsBefore = 0;

  private constructor(
    lane: LaneOf,
    parts: {
      database: TestDatabase;
      site: Awaited<ReturnType<typeof startMaasSite>>;
      directory: string;
      asking: RunReplica;
    },
  ) {
    this.#lane = lane;
    this.database = parts.database;
    this.#site = parts.site;
    this.#directory = parts.directory;
    this.#asking = parts.asking;
  }

  /** A node that MAAS has deployed, with an agent and somebody who uses it, and its decommission asked for. */
  static async open(lane: LaneOf): Promise<Kills> {
    const directory = mkdtempSync(join(bench.directory, "kills-"));
    mkdirSync(join(directory, "deaths"));
    writeFileSync(join(directory, "later"), "0");
    const [database, site] = await Promise.all([createTestDatabase(), startMaasSite({ hosts: 1 })]);
    const { url } = database;
    const asking = openRunReplica({ url, keyFile: join(directory, "secret-key"), instance: "asking" });
    const kills = new Kills(lane, { database, site, directory, asking });
    await kills.#prepare();
    return kills;
  }

  async #prepare(): Promise<void> {
    const { db } = this.database;
    const maas = createMaas({ gateway: createBmcGateway() });
    const deps = { ...this.#asking.deps, maas: { ...maas, checkKey: parseApiKey } };
    const { url, apiKey, hosts } = this.#site;
    const given = { name: "lab", url, apiKey, description: "", retainInMaas: false, allowHttp: true, skipProbe: true };
    await addSite(deps, tester, given);
    // The time that nobody waits for must not outlast the token of a reimage.
    await setProfile(deps, tester, { site: "lab", name: "h100", policy: { enrollment_token_ttl_seconds: 86_400 } });
    const systemId = await deploy(maas, targetOf(url, apiKey), hosts[0]);
    maas.close();
    await db.execute(
      `insert into fleet_nodes (id, site, profile, sku, hostname, mode, machine_id, request_id, fingerprint, created_by, state, facts)
       values ('fn-1', 'lab', 'h100', 'gpu8', 'gpu-1', 'maas', 'm-1', 'r', '', 'test', 'active', jsonb_build_object('systemId', $1::text))`,
      [systemId],
    );
    await db.execute(
      `insert into fleet_allocations (id, node, tenant, request_id, created_by, state) values ('fa-1', 'fn-1', 'team-a', 'r', 'test', 'active')`,
    );
    await db.execute(
      `insert into fleet_agents (node_id, token_id, issue, request_sha) values ('fn-1', 'none', 1, '\\x00')`,
    );
    await this.#heartbeat();
    this.#commandsBefore = (await this.#allCommands()).length;
    await decommissionNode(deps, tester, { node: "fn-1", mode: this.#lane.mode, requestId: "once" });
  }

  /** Keeps replicas alive, each after the one that died, until the job is over; the agent does what it is asked meanwhile. */
  async untilOver(): Promise<void> {
    const over = new AbortController();
    const keepers = Array.from({ length: this.#lane.replicas }, () => this.#keepAlive(over.signal));
    const failed = Promise.all(keepers).then(() => false);
    const { db } = this.database;
    try {
      const isOver = eventually(
        async () => {
          await this.#answerTasks();
          await this.#enrol();
          return (await db.query("select 1 from runs where state in ('SUCCEEDED', 'FAILED', 'CANCELED')")).length > 0;
        },
        {
          what: "the decommission is over",
          within: 240_000,
          seen: async () =>
            JSON.stringify(
              [
                this.deaths(),
                await db.query("select state, facts, outcome from runs"),
                await db.query("select * from work"),
              ],
              null,
              1,
            ),
        },
      );
      await Promise.race([failed, isOver]);
    } finally {
      over.abort();
    }
    await failed;
  }

  deaths = (): readonly string[] => readdirSync(join(this.#directory, "deaths")).map(decodeURIComponent);

  /** What MAAS was commanded since the job began. */
  async commands(): Promise<readonly string[]> {
    return (await this.#allCommands()).slice(this.#commandsBefore);
  }

  async close(): Promise<void> {
    await this.#asking.stop();
    await this.#site.stop();
    await this.database.drop();
    rmSync(this.#directory, { recursive: true, force: true });
  }

  async #allCommands(): Promise<readonly string[]> {
    const calls = await this.#site.control<readonly { method: string; path: string; op: string | null }[]>(
      "GET",
      "/maas/calls",
    );
    return calls
      .filter(({ method }) => method !== "GET")
      .map(({ method, op }) => (op === null || op === undefined || op === "" ? method : `${method} ${op}`));
  }

  async #keepAlive(over: AbortSignal): Promise<void> {
    const ended = new Promise<"over">((resolve) =>
      over.addEventListener("abort", () => resolve("over"), { once: true }),
    );
    while (!over.aborted) {
      const instance = `replica-${++this.#started}`;
      const order: FleetVictimOrder = {
        ...{ url: this.database.url, keyFile: join(this.#directory, "secret-key"), instance },
        ...{ deaths: join(this.#directory, "deaths"), later: join(this.#directory, "later") },
        failPoint: this.#lane.failPoint,
      };
      const replica = await startProgram(bench, { program: "fleet-victim.ts", args: [JSON.stringify(order)] });
      if ((await Promise.race([replica.exited, ended])) === "over") replica.signal("SIGTERM");
      const exit = await replica.exited;
      if (exit.signal !== "SIGKILL" && !over.aborted)
        throw new Error(`a replica ended by itself: ${replica.transcript()}`);
      await this.#endLeases(instance);
    }
  }

  /** As if the time of its leases had passed, and that in which MAAS would have shown what it was told. */
  async #endLeases(owner: string): Promise<void> {
    const { db } = this.database;
    const open = this.deaths().filter((place) => place.endsWith(" announced") || place.endsWith(" begun")).length;
    writeFileSync(join(this.#directory, "later"), String(open * SETTLES));
    await this.#heartbeat();
    await db.execute(
      "update work set lease_until = now() - interval '1 s', wake_at = least(wake_at, now()) where lease_owner = $1",
      [owner],
    );
    await db.execute("select pg_notify('millwright', '')");
  }

  /** The agent calls all the time, also in the time that nobody waited for. */
  async #heartbeat(): Promise<void> {
    await this.database.db.execute(
      `insert into fleet_heartbeats (node_id, seen_at, health) values ('fn-1', now() + interval '1 day', 'healthy')
       on conflict (node_id) do nothing`,
    );
  }

  /** The system that a reimage has installed: its agent enrols as soon as somebody waits for it. */
  async #enrol(): Promise<void> {
    const { db } = this.database;
    const [waiting] = await db.query<{ id: string }>(
      `select id from fleet_nodes where facts -> 'enrollment' ->> 'consumedAt' is null and exists (
         select 1 from runs r, jsonb_array_elements(r.facts -> 'steps') s
          where s ->> 'name' = 'wait_for_agent_enrollment' and s ->> 'state' = 'RUNNING')`,
    );
    if (waiting === undefined) return;
    const [machine] = await this.#site.control<readonly { user_data: string | null }[]>("GET", "/maas/machines");
    await enrolDeployed(this.#asking.deps, waiting.id, machine?.user_data ?? "");
  }

  async #answerTasks(): Promise<void> {
    const { db } = this.database;
    const at = new Date().toISOString();
    for (const { id, taskType, state } of await findOpenTasks(db, "fn-1")) {
      const verb = { kind: "fleet_task", id, owner: "agent" as const, actor: "fn-1" };
      const leaseUntil = new Date(Date.now() + minutes(600)).toISOString();
      if (state.name === "queued")
        await db.transaction((tx) =>
          applyVerb(tx, allStores, { ...verb, name: "claimed", data: { at, leaseUntil, claim: null } }),
        );
      await db.transaction((tx) =>
        applyVerb(tx, allStores, { ...verb, name: "completed", data: { at, result: PROOFS[taskType] } }),
      );
    }
  }
}

function targetOf(url: string, apiKey: string): MaasTarget {
  const { hostname, port, pathname } = new URL(url);
  return { address: hostname, port: Number(port), scheme: "http", trust: { mode: "off" }, path: pathname, apiKey };
}

async function deploy(
  maas: ReturnType<typeof createMaas>,
  target: MaasTarget,
  host: Awaited<ReturnType<typeof startMaasSite>>["hosts"][number] | undefined,
): Promise<string> {
  if (!host) throw new Error("the site has no server");
  const power = { address: host.ipmi_address, username: host.ipmi_username, password: host.ipmi_password };
  const { systemId } = await maas.createMachine(target, { hostname: "gpu-1", power }, aCall());
  const becomes = (status: number) =>
    eventually(async () => (await maas.findMachine(target, systemId, aCall()))?.status === status, {
      what: `the machine has status ${status}`,
    });
  await maas.commission(target, systemId, aCall());
  await becomes(4);
  await maas.linkSubnet(target, { systemId, interfaceId: 1, subnetId: 1, ipAddress: null }, aCall());
  await maas.deploy(target, systemId, { userData: "", distroSeries: null, hardwareSync: true, comment: "" }, aCall());
  await becomes(6);
  return systemId;
}
