import { monitorEventLoopDelay } from "node:perf_hooks";
import { setTimeout as pause } from "node:timers/promises";
import type { CallContext } from "../../src/capabilities/call.ts";
import type { Maas, MaasTarget } from "../../src/capabilities/fleet/maas.ts";
import { SiteReconciler } from "../../src/engine/fleet/site-reconciler.ts";
import { type Duration, seconds } from "../../src/kernel/time/duration.ts";
import { createMaas } from "../../src/providers/maas/maas-provider.ts";
import { createBmcGateway } from "../../src/providers/transport/bmc-gateway.ts";
import { placeOfUrl } from "../../src/services/fleet/site-target.ts";
import type { Database } from "../../src/store/postgres/database.ts";
import { allStores } from "../../src/wiring/things/all-things.ts";
import { type BenchServer, benchLog } from "../bench-server.ts";
import { type Measurement, median } from "../measurement.ts";
import { type SimulatedSite, startSimulatedSite } from "../racks/simulated-site.ts";

const FEW = 100;
const STOCK_INTERVAL: Duration = seconds(20);
/** A machine that somebody deletes is classified within this. */
const CLASSIFIED_WITHIN_S = 60;
const CALLERS = 16;

/** What nodes at rest cost their MAAS: the calls of a minute do not grow with their number. */
export async function measureFleetNodes(
  server: BenchServer,
  { quick, seconds: time = quick ? 20 : 60 }: { quick: boolean; seconds?: number | undefined },
): Promise<Measurement[]> {
  const many = quick ? 1_000 : 10_000;
  const site = await startSimulatedSite("racks=1,maas=1", 1);
  const maas = createMaas({ gateway: createBmcGateway({ concurrency: CALLERS, queueLimit: many }) });
  try {
    const target = await targetOf(site);
    const machines = await addMachines(maas, target, many);
    const [few, all] = [
      await atRest(server, { maas, target, machines: machines.slice(0, FEW), time }),
      await atRest(server, { maas, target, machines, time }),
    ];
    const name = many.toLocaleString("en-US");
    return [
      {
        what: `calls to MAAS a minute, ${name} nodes at rest`,
        values: [all.callsAMinute],
        unit: "",
        limit: { what: `${FEW} nodes at rest`, value: few.callsAMinute },
        target: few.callsAMinute,
        better: "lower",
      },
      {
        what: `a listing of ${name} machines, answered`,
        values: [median(all.listings)],
        unit: "ms",
        better: "lower",
      },
      { what: "  the event loop stood still meanwhile", values: [all.longestStop], unit: "ms", better: "lower" },
      {
        what: "a machine deleted in MAAS → its node quarantined",
        values: [all.classifiedAfter],
        unit: "s",
        target: CLASSIFIED_WITHIN_S,
        better: "lower",
      },
    ];
  } finally {
    maas.close();
    await site.stop();
  }
}

async function targetOf({ controlUrl }: SimulatedSite): Promise<MaasTarget> {
  const { url, api_key: apiKey } = (await (await fetch(new URL("/maas", controlUrl))).json()) as Record<string, string>;
  const { url: _, ...place } = placeOfUrl(url ?? "");
  return { ...place, apiKey: apiKey ?? "" };
}

const call: CallContext = {
  signal: new AbortController().signal,
  subject: "bench",
  mayTouchDevice: (wanted) => wanted,
};

/** As MAAS has them before anything was done with them: nodes that are quarantined may have their machines so. */
async function addMachines(maas: Maas, target: MaasTarget, count: number): Promise<string[]> {
  const ids: string[] = [];
  const numbers = Array.from({ length: count }, (_, index) => index + 1).values();
  const power = { address: "127.96.255.255", username: "nobody", password: "nothing" };
  const add = async () => {
    for (const number of numbers)
      ids.push((await maas.createMachine(target, { hostname: `idle-${number}`, power }, call)).systemId);
  };
  await Promise.all(Array.from({ length: CALLERS }, add));
  return ids;
}

interface AtRest {
  readonly callsAMinute: number;
  readonly listings: readonly number[];
  readonly longestStop: number;
  readonly classifiedAfter: number;
}

async function atRest(
  server: BenchServer,
  { maas, target, machines, time }: { maas: Maas; target: MaasTarget; machines: readonly string[]; time: number },
): Promise<AtRest> {
  const database = await server.freshDatabase();
  const { db } = database;
  await addNodes(db, machines);
  let calls = 0;
  const listings: number[] = [];
  const counted = new Proxy(maas, {
    get(all, name: keyof Maas) {
      calls += 1;
      return all[name];
    },
  });
  const stop = new AbortController();
  const reconciler = new SiteReconciler({
    ...{ db, stores: allStores, log: benchLog, interval: STOCK_INTERVAL },
    observer: { listed: ({ took }) => listings.push(took) },
    adopt: async () => {},
    siteOf: async () => ({ maas: counted, target, retainsMachines: false }),
  });
  const loop = monitorEventLoopDelay({ resolution: 5 });
  const running = reconciler.run(stop.signal);
  try {
    while (listings.length === 0) await pause(100); // the first one writes what is seen of every node
    [calls, listings.length] = [0, 0];
    loop.enable();
    await pause(time * 1_000);
    loop.disable();
    const callsAMinute = (calls * 60) / time;
    const seen = [...listings];
    return {
      ...{ callsAMinute, listings: seen, longestStop: loop.max / 1e6 },
      classifiedAfter: await classify(db, { maas, target, machine: machines.at(-1) ?? "" }),
    };
  } finally {
    stop.abort();
    await running;
    await database.drop();
  }
}

async function addNodes(db: Database, machines: readonly string[]): Promise<void> {
  await db.execute("insert into fleet_sites (name, url, created_by) values ('bench', 'http://127.0.0.1', 'bench')");
  await db.execute(
    `insert into fleet_nodes (id, site, profile, sku, hostname, mode, machine_id, request_id, fingerprint, created_by, state, facts)
     select 'fn-' || i, 'bench', 'p', 's', 'idle-' || i, 'maas', 'm-' || i, i::text, '', 'bench', 'quarantined',
            jsonb_build_object('systemId', system_id) from unnest($1::text[]) with ordinality as u (system_id, i)`,
    [machines],
  );
}

/** Of a node that is in use. */
async function classify(
  db: Database,
  { maas, target, machine }: { maas: Maas; target: MaasTarget; machine: string },
): Promise<number> {
  const startedAt = performance.now();
  await maas.deleteMachine(target, machine, call);
  await db.execute("update fleet_nodes set state = 'active' where facts ->> 'systemId' = $1", [machine]);
  const isQuarantined = async () =>
    (await db.query("select 1 from fleet_nodes where facts ->> 'systemId' = $1 and state = 'quarantined'", [machine]))
      .length > 0;
  while (!(await isQuarantined())) await pause(100);
  return (performance.now() - startedAt) / 1_000;
}
