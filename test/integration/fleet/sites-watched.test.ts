import { describe, expect, test } from "vitest";
import { aCall } from "../../../src/capabilities/conformance/device-bench.ts";
import type { MaasTarget } from "../../../src/capabilities/fleet/maas.ts";
import { SiteReconciler, type SitesObserver, type WatchedSite } from "../../../src/engine/fleet/site-reconciler.ts";
import { minutes } from "../../../src/kernel/time/duration.ts";
import { createMaas } from "../../../src/providers/maas/maas-provider.ts";
import { machineOf } from "../../../src/providers/maas/machine.ts";
import { createBmcGateway } from "../../../src/providers/transport/bmc-gateway.ts";
import type { ServiceDeps } from "../../../src/services/call/deps.ts";
import { explainFleetNode } from "../../../src/services/explain/fleet-node.ts";
import { viewNode } from "../../../src/services/fleet/nodes.ts";
import { placeOfUrl } from "../../../src/services/fleet/site-target.ts";
import { countDrift, findObservations } from "../../../src/store/fleet/observations.ts";
import { measureWatches } from "../../../src/store/fleet/site-watches.ts";
import { allStores } from "../../../src/wiring/things/all-things.ts";
import { createTestDatabase, type TestDatabase } from "../../support/database.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";
import { RecordingLog } from "../api/api-under-test.ts";
import { startMaasSite } from "./maas-site.ts";

let region: Awaited<ReturnType<typeof startMaasSite>>;
let database: TestDatabase;
let target: MaasTarget;
const maas = createMaas({ gateway: createBmcGateway({ concurrency: 16 }) });
/** Calls of the reconciler, by name. */
let calls: string[] = [];
const counted = (isAdmin = true): WatchedSite["maas"] => ({
  listMachines(...given) {
    calls.push("list");
    return maas.listMachines(...given);
  },
  findMachine(...given) {
    calls.push("read");
    return maas.findMachine(...given);
  },
  async readUser(...given) {
    calls.push("user");
    return { ...(await maas.readUser(...given)), isAdmin };
  },
});

beforeAll(async () => {
  [region, database] = await Promise.all([startMaasSite({ hosts: 6 }), createTestDatabase()]);
  const { url: _, ...place } = placeOfUrl(region.url);
  target = { ...place, apiKey: region.apiKey };
});
afterAll(async () => {
  maas.close();
  await Promise.all([region.stop(), database.drop()]);
});

let count = 0;
async function aSite(): Promise<string> {
  const name = `watched-${++count}`;
  await database.db.execute("insert into fleet_sites (name, url, created_by) values ($1, $2, 'kim')", [
    name,
    region.url,
  ]);
  return name;
}

/** A server as MAAS has it once somebody deployed it. */
async function deployed(): Promise<string> {
  const [host] = region.hosts.slice(count++ % region.hosts.length);
  const power = {
    address: host?.ipmi_address ?? "",
    username: host?.ipmi_username ?? "",
    password: host?.ipmi_password ?? "",
  };
  const { systemId } = await maas.createMachine(target, { hostname: `gpu-${count}`, power }, aCall());
  await maas.commission(target, systemId, aCall());
  await reached(systemId, 4);
  const ready = await maas.findMachine(target, systemId, aCall());
  await maas.linkSubnet(
    target,
    { systemId, interfaceId: ready?.bootInterfaceId ?? 0, subnetId: 1, ipAddress: null },
    aCall(),
  );
  const order = { userData: "", distroSeries: null, hardwareSync: false, comment: "" };
  await maas.deploy(target, systemId, order, aCall());
  await reached(systemId, 6);
  return systemId;
}
const reached = (systemId: string, status: number) =>
  expect
    .poll(async () => (await maas.findMachine(target, systemId, aCall()))?.status, { timeout: 30_000, interval: 20 })
    .toBe(status);

/** A node that was onboarded, so that it is bound to a machine of MAAS. Several on one machine are as an earlier version left them. */
async function aNode(site: string, systemId: string, state = "active"): Promise<string> {
  const id = `fn-${++count}`;
  await database.db.execute("insert into machines (id, provider, state) values ($1, 'maas', 'READY')", [`m-${id}`]);
  await database.db.execute(
    `insert into fleet_nodes (id, site, profile, sku, hostname, mode, machine_id, request_id, fingerprint, created_by, state, facts, shares_system)
     values ($1, $2, 'h100', 'gpu8', $1, 'maas', 'm-' || $1, $1, '', 'kim', $3, jsonb_build_object('systemId', $4::text),
             exists (select 1 from fleet_nodes where site = $2 and facts ->> 'systemId' = $4))`,
    [id, site, state, systemId],
  );
  return id;
}
const stateOf = async (id: string) => {
  const [row] = await database.db.query<{ state: string; reason: string | null }>(
    "select state, facts ->> 'quarantineReason' as reason from fleet_nodes where id = $1",
    [id],
  );
  return row;
};
const seen = async (id: string) => (await findObservations(database.db, [id])).get(id);

/** The outcome of one listing of the site, by a replica of its own. */
async function listOnce(site: string, more: ListOptions = {}) {
  await database.db.execute("update fleet_site_watches set due_at = now() + interval '1 hour'");
  await database.db.execute(
    `insert into fleet_site_watches (site) values ($1) on conflict (site) do update set due_at = now(), lease_owner = null`,
    [site],
  );
  const stop = new AbortController();
  const told = Promise.withResolvers<string>();
  const observer: SitesObserver = { listed: ({ outcome }) => told.resolve(outcome) };
  calls = [];
  const running = replica({ observer, ...more }).run(stop.signal);
  const outcome = await told.promise;
  stop.abort();
  await running;
  return outcome;
}
interface ListOptions {
  readonly isAdmin?: boolean;
  readonly fails?: string;
  readonly maas?: WatchedSite["maas"];
}
const replica = (more: ListOptions & { readonly observer: SitesObserver }) =>
  new SiteReconciler({
    ...{ db: database.db, stores: allStores, log: new RecordingLog(), interval: minutes(30) },
    observer: more.observer,
    adopt: async () => {},
    siteOf: async () => {
      if (more.fails !== undefined) throw new Error(more.fails);
      return { maas: more.maas ?? counted(more.isAdmin), target, retainsMachines: false };
    },
  });

describe("the nodes of a site", () => {
  test("are compared with one listing, however many they are, and what is as it was is not written again", async () => {
    const site = await aSite();
    const systemId = await deployed();
    const id = await aNode(site, systemId);
    await database.db.execute(
      `insert into fleet_nodes (id, site, profile, sku, hostname, mode, machine_id, request_id, fingerprint, created_by, state, facts, shares_system)
       select 'fn-idle-' || i, $1, 'h100', 'gpu8', 'idle-' || i, 'maas', 'm-idle-' || i, 'idle-' || i, '', 'kim', 'active',
              jsonb_build_object('systemId', $2::text), true from generate_series(1, 1000) i`,
      [site, systemId],
    );
    expect(await listOnce(site)).toBe("answered");
    expect(calls).toEqual(["list"]);
    expect(await seen(id)).toMatchObject({ systemId, observed: "Deployed", power: "on", verdict: "fine", drift: null });
    const versions = () =>
      database.db.query("select node_id, xmin::text from fleet_observations where site = $1", [site]);
    const before = await versions();
    expect(before).toHaveLength(1_001);
    const firstSeen = (await seen(id))?.seenAt;
    expect(await listOnce(site)).toBe("answered");
    expect(calls).toEqual(["list"]);
    expect(await versions()).toEqual(before);
    // What was seen again is newer all the same.
    expect((await seen(id))?.seenAt.getTime()).toBeGreaterThan(firstSeen?.getTime() ?? Number.POSITIVE_INFINITY);
  });

  test("are told what MAAS shows whatever it says of another one's machine", async () => {
    const [site, systemId] = [await aSite(), await deployed()];
    const [odd, plain] = [await aNode(site, "odd"), await aNode(site, systemId)];
    const [machine] = await maas.listMachines(target, {}, aCall());
    const told = {
      system_id: "odd",
      status: 6e12,
      status_name: "De\0ployed \ud800",
      hardware_info: { system_serial: "\0" },
    };
    const read = { ...machine, ...machineOf(told) } as NonNullable<typeof machine>;
    const listMachines: typeof maas.listMachines = async (...given) => [...(await maas.listMachines(...given)), read];
    expect(await listOnce(site, { maas: { ...counted(), listMachines } })).toBe("answered");
    expect(await seen(plain)).toMatchObject({ observed: "Deployed", drift: null });
    expect(await seen(odd)).toMatchObject({ observed: "Other", statusName: "De\u{fffd}ployed \u{fffd}" });
  });

  test.each(["active", "offline"])(
    "in %s are quarantined once MAAS has confirmed that their machine is gone, in one pass",
    async (state) => {
      const [site, systemId] = [await aSite(), await deployed()];
      const id = await aNode(site, systemId, state);
      await listOnce(site);
      await region.control("DELETE", `/maas/machines/${systemId}`);
      expect(await listOnce(site)).toBe("answered");
      expect(calls).toEqual(["list", "user", "read"]);
      expect(await stateOf(id)).toEqual({ state: "quarantined", reason: "machine_deleted_in_maas" });
      expect(
        await database.db.query(
          "select actor, reason, data -> 'trigger' as trigger from journal where kind = 'fleet_node' and id = $1",
          [id],
        ),
      ).toEqual([expect.objectContaining({ actor: "fleet reconciler", reason: "MAAS has no such machine any more" })]);
      const explained = await explainFleetNode({ db: database.db, stores: allStores } as ServiceDeps, id);
      expect(explained.headline).toBe(`fleet_node ${id} is quarantined: MAAS has no such machine any more`);
      expect(explained.doing).toMatch(`MAAS had no machine ${systemId} `);
      expect(explained.nextCommands[0]?.command).toBe(`millwright fleet decommission ${id} --mode full_decommission`);
      const shown = await viewNode({ db: database.db, stores: allStores } as ServiceDeps, id);
      expect(shown.maas).toMatchObject({ systemId, observed: "absent", statusName: "" });
      expect(shown.next.command).toBe(`millwright fleet decommission ${id} --mode full_decommission`);
      // It is told once, and asked for no more.
      await listOnce(site);
      expect(calls).toEqual(["list"]);
      expect(await seen(id)).toMatchObject({ observed: "absent", verdict: "fine", drift: null });
    },
  );

  test("that are retired are left where they are; what is wrong is told, and counted", async () => {
    const [site, systemId] = [await aSite(), await deployed()];
    const id = await aNode(site, systemId, "retired");
    await region.control("DELETE", `/maas/machines/${systemId}`);
    await listOnce(site);
    expect((await stateOf(id))?.state).toBe("retired");
    expect(await seen(id)).toMatchObject({ verdict: "report", drift: "machine_deleted_in_maas" });
    expect(await countDrift(database.db)).toContainEqual({ drift: "machine_deleted_in_maas", nodes: 1 });
  });

  test("whose job runs are the job's affair: it is woken, and what it leaves is judged when it has ended", async () => {
    const [site, systemId] = [await aSite(), await deployed()];
    const id = await aNode(site, systemId);
    await database.db.execute(
      `insert into runs (id, target_kind, target_id, request_id, fingerprint, type, plan_id, plan, job_id, initiator, state)
       values ('run-' || $1, 'fleet_node', $1, $1, '', '', 'w', '{}', 'run-' || $1, 'kim', 'RUNNING')`,
      [id],
    );
    await listOnce(site);
    await maas.release(target, systemId, { erase: false, comment: "" }, aCall());
    await reached(systemId, 4);
    await listOnce(site);
    expect((await stateOf(id))?.state).toBe("active");
    expect(await seen(id)).toMatchObject({ observed: "Ready", verdict: "fine" });
    expect(
      await database.db.query("select 1 from work where kind = 'run' and id = 'run-' || $1::text", [id]),
    ).toHaveLength(1);
    await database.db.execute("update runs set state = 'FAILED' where target_id = $1", [id]);
    await listOnce(site);
    expect(await stateOf(id)).toEqual({ state: "quarantined", reason: "released_in_maas" });
  });

  test("stay as they are where a key sees a part of the machines alone", async () => {
    const [site, systemId] = [await aSite(), await deployed()];
    const id = await aNode(site, systemId);
    await region.control("DELETE", `/maas/machines/${systemId}`);
    await listOnce(site, { isAdmin: false });
    expect(calls).toEqual(["list", "user"]);
    expect([(await stateOf(id))?.state, await seen(id)]).toEqual(["active", undefined]);
  });

  test("stay as they are where MAAS does not answer, which is told", async () => {
    const [site, systemId] = [await aSite(), await deployed()];
    const id = await aNode(site, systemId);
    await listOnce(site);
    expect(await listOnce(site, { fails: "nobody answers" })).toBe("failed");
    expect((await stateOf(id))?.state).toBe("active");
    expect(await seen(id)).toMatchObject({ observed: "Deployed", failure: "nobody answers" });
    expect((await measureWatches(database.db)).failing).toBe(1);
    await listOnce(site);
    expect((await measureWatches(database.db)).failing).toBe(0);
  });

  test("are not quarantined where most of them would be at once: MAAS itself is the likelier one to be wrong", async () => {
    const [site, systemId] = [await aSite(), await deployed()];
    const ids: string[] = [];
    for (let made = 0; made < 11; made += 1) ids.push(await aNode(site, systemId));
    await listOnce(site);
    await maas.release(target, systemId, { erase: false, comment: "" }, aCall());
    await reached(systemId, 4);
    expect(await listOnce(site)).toBe("doubted");
    for (const id of ids) expect((await stateOf(id))?.state).toBe("active");
    expect(await seen(ids[0] ?? "")).toMatchObject({ verdict: "report", drift: "released_in_maas" });
  });
});

test("replicas share a site: each listing is made by one of them", async () => {
  const [site, systemId] = [await aSite(), await deployed()];
  await aNode(site, systemId);
  await database.db.execute("update fleet_site_watches set due_at = now() + interval '1 hour'");
  const stop = new AbortController();
  const told = Promise.withResolvers<void>();
  calls = [];
  const two = [1, 2].map(() => replica({ observer: { listed: () => told.resolve() } }));
  const running = two.map((one) => one.run(stop.signal));
  await told.promise;
  // Both have asked for sites again by then.
  await expect
    .poll(
      async () =>
        (await database.db.query("select 1 from fleet_site_watches where site = $1 and lease_owner is null", [site]))
          .length,
    )
    .toBe(1);
  stop.abort();
  await Promise.all(running);
  expect(calls).toEqual(["list"]);
});

test("a site without nodes, and one that is disabled, is not called at all", async () => {
  const [empty, off] = [await aSite(), await aSite()];
  await aNode(off, await deployed());
  await database.db.execute("update fleet_sites set is_enabled = false where name = $1", [off]);
  const site = await aSite();
  await aNode(site, await deployed());
  await listOnce(site);
  expect(
    await database.db.query("select site from fleet_site_watches where site = any($1) and epoch > 0", [[empty, off]]),
  ).toEqual([]);
});
