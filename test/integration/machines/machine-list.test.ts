import { Code } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { parseFilter } from "../../../src/kernel/filter/parse-filter.ts";
import { MACHINE_PHASES } from "../../../src/lifecycles/machine/machine.ts";
import { machineListing } from "../../../src/store/machine/machine-list.ts";
import { filterFieldsOf } from "../../../src/store/postgres/list-fields.ts";
import { plansOf } from "../../support/query-plans.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";
import { refusal } from "../api/forge-under-test.ts";
import { type MachinesUnderTest, startMachines } from "./machines-under-test.ts";

let site: MachinesUnderTest;
beforeAll(async () => {
  site = await startMachines();
  for (const [machineId, labels, spec] of [
    ["m-1", { env: "prod", role: "worker" }, { rack: "rack-1", slot: "1", provider: "redfish", serial: "S1" }],
    ["m-2", { env: "prod" }, { rack: "rack-1", slot: "2", provider: "ipmi", customerId: "acme" }],
    ["m-3", { env: "dev" }, { rack: "rack-2", location: "hall 1", targetClusterRef: "cluster-a" }],
    ["m-4", {}, {}],
  ] as const)
    await site.machines.registerMachine({ machine: { machineId, labels, spec } });
  await site.setPhase("m-1", "READY");
  await site.setPhase("m-2", "READY");
  await site.observe("m-2", [{ type: "InCustomerCluster", status: true, reason: "NodeReady", message: "" }]);
  await site.setPhase("m-3", "MAINTENANCE");
  await site.observe("m-3", [{ type: "BMCReachable", status: false, reason: "NoAnswer", message: "" }]);
  await site.addRun({ id: "run-of-m-4", machineId: "m-4" });
});
afterAll(() => site.close());

const SINCE = "2026-01-31T12:00:00.000Z";
const found = async (filter: string) =>
  (await site.machines.listMachines({ filter })).machines.map(({ machineId }) => machineId);

describe("a filter finds", () => {
  test.each([
    ["", ["m-1", "m-2", "m-3", "m-4"]],
    ["phase=READY", ["m-1", "m-2"]],
    ["phase=IN_SERVICE", []],
    ["effective_state=IN_SERVICE", ["m-2"]],
    ["effective_state IN (PROVISIONING, MAINTENANCE)", ["m-3", "m-4"]],
    ["effective_state!=READY", ["m-2", "m-3", "m-4"]],
    ["failing=true", ["m-3"]],
    ["failing=false AND rack=rack-1", ["m-1", "m-2"]],
    ["failing!=true", ["m-1", "m-2", "m-4"]],
    ["rack=rack-1 AND phase=READY", ["m-1", "m-2"]],
    ["rack!=rack-1", ["m-3", "m-4"]],
    ['rack=""', ["m-4"]],
    ["provider=datacenter", ["m-3", "m-4"]],
    ["machine_id IN (m-1, m-4, m-9)", ["m-1", "m-4"]],
    ["labels.env=prod AND labels.role=worker", ["m-1"]],
    ["labels.env!=prod", ["m-3", "m-4"]],
    ["serial=S1", ["m-1"]],
    ["slot=2", ["m-2"]],
    ['location="hall 1"', ["m-3"]],
    ["customer_id=acme", ["m-2"]],
    ["target_cluster_ref=cluster-a", ["m-3"]],
    ["phase=READY OR rack=rack-2", ["m-1", "m-2", "m-3"]],
    ["rack=rack-1 AND NOT (labels.role=worker OR provider=redfish)", ["m-2"]],
    ["location~HALL", ["m-3"]],
    ["labels.env^=PR", ["m-1", "m-2"]],
    ["conditions.BMCReachable=false", ["m-3"]],
    ["created_at>-1h AND created_at>2020-01-01", ["m-1", "m-2", "m-3", "m-4"]],
  ])("by %j what it says", async (filter, ids) => {
    expect(await found(filter)).toEqual(ids);
  });

  test("by effective state exactly the machines that show it", async () => {
    const { machines } = await site.machines.listMachines({});
    for (const state of MACHINE_PHASES) {
      const shown = machines.filter(({ status }) => MACHINE_PHASES[(status?.effectiveState ?? 0) - 1] === state);
      expect(await found(`effective_state=${state}`)).toEqual(shown.map(({ machineId }) => machineId));
    }
  });
});

test.each([
  ["phase=NOWHERE", "position 7"],
  ["failing=maybe", "position 9"],
  ["phase~READY", "position 6"],
  ["phase=READY XOR rack=a", "position 13"],
  ["(phase=READY", "position 13"],
  ["colour=red", "position 1"],
  ["labels=a", "position 1"],
  ["rack IN (a", "position 11"],
  ["rack='a", "position 6"],
])("the filter %j is refused, naming the place", async (filter, place) => {
  const refused = await refusal(site.machines.listMachines({ filter }));
  expect(refused).toMatchObject({ code: Code.InvalidArgument, field: "filter" });
  expect(refused.message).toContain(place);
});

describe("pages", () => {
  const pageAll = async (filter: string, between: (page: number) => Promise<unknown> = async () => {}) => {
    const seen: string[] = [];
    let pageToken = "";
    for (let page = 1; ; page += 1) {
      const { machines, nextPageToken } = await site.machines.listMachines({ filter, pageSize: 2, pageToken });
      expect(machines.length).toBeLessThanOrEqual(2);
      seen.push(...machines.map(({ machineId }) => machineId));
      if (nextPageToken === "") return seen;
      pageToken = nextPageToken;
      await between(page);
    }
  };

  test("show every machine that was there once, whatever is registered meanwhile", async () => {
    const ids = Array.from({ length: 9 }, (_, at) => `m-page-${at}`);
    for (const machineId of ids)
      await site.machines.registerMachine({ machine: { machineId, labels: { paged: "yes" } } });
    const seen = await pageAll("labels.paged=yes", (page) =>
      Promise.all(
        [`m-page-${page}-new`, `m-page-0-late-${page}`].map((machineId) =>
          site.machines.registerMachine({ machine: { machineId, labels: { paged: "yes" } } }),
        ),
      ),
    );
    expect(new Set(seen).size).toBe(seen.length);
    expect(seen.filter((id) => ids.includes(id))).toEqual(ids);
    expect(seen).toEqual(seen.toSorted());
  });

  test("of those that are failing are full of them, however many machines are well", async () => {
    await site.db.execute(
      `insert into machines (id, provider, state, labels, conditions)
       select 'm-well-' || lpad(i::text, 3, '0'), 'fake', 'READY', '{"judged": "yes"}',
              case when i % 50 = 0 then $1::jsonb else '[]' end
         from generate_series(1, 200) as i`,
      [JSON.stringify([{ type: "Degraded", status: true, reason: "Seen", message: "", last_transition: SINCE }])],
    );
    expect(await pageAll("labels.judged=yes AND failing=true")).toEqual(
      [50, 100, 150, 200].map((each) => `m-well-${String(each).padStart(3, "0")}`),
    );
    const { machines, nextPageToken } = await site.machines.listMachines({
      filter: "labels.judged=yes AND failing=true",
      pageSize: 2,
    });
    expect(machines.map(({ status }) => status?.failing)).toEqual([true, true]);
    expect(nextPageToken).not.toBe("");
  });

  test("are 100 machines long unless asked for, and at most 1000", async () => {
    await site.db.execute(
      `insert into machines (id, provider, state, labels) select 'm-many-' || lpad(i::text, 4, '0'), 'fake', 'READY', '{"many": "yes"}' from generate_series(1, 1100) as i`,
    );
    const list = (pageSize: number) => site.machines.listMachines({ filter: "labels.many=yes", pageSize });
    expect((await list(0)).machines).toHaveLength(100);
    expect((await list(1000)).machines).toHaveLength(1000);
    expect(await refusal(list(1001))).toMatchObject({ code: Code.InvalidArgument, field: "page_size" });
    expect(await refusal(list(-1))).toMatchObject({ code: Code.InvalidArgument, field: "page_size" });
  });

  test("of another filter, and tokens of nobody, are refused", async () => {
    const filter = "labels.env=prod";
    const { nextPageToken: pageToken } = await site.machines.listMachines({ filter, pageSize: 1 });
    expect(pageToken).not.toBe("");
    for (const request of [
      { filter: "", pageToken },
      { filter, pageToken: "nonsense" },
    ])
      expect(await refusal(site.machines.listMachines(request))).toMatchObject({
        code: Code.InvalidArgument,
        field: "page_token",
      });
  });
});

test.each([
  ["effective_state=PROVISIONING", "machines_by_effective_state"],
  ["rack=rack-77", "machines_by_rack"],
  ["phase=RMA", "machines_by_state"],
  ["labels.seat=7", "machines_by_label"],
  ["failing=true", "machines_failing"],
])("the filter %j is answered by the index %s", async (filter, index) => {
  await site.db.execute(
    `insert into machines (id, provider, state, rack, labels, active_run_id, conditions)
     select 'm-plan-' || i, 'fake', case when i % 500 = 0 then 'RMA' else 'READY' end, 'rack-' || i % 500,
            jsonb_build_object('seat', (i % 500)::text), case when i % 500 = 1 then 'run' end,
            jsonb_build_array(jsonb_build_object('type', 'Reachable', 'status', i % 500 <> 2))
       from generate_series(1, 20000) as i on conflict do nothing`,
  );
  await site.db.query("analyze machines");
  const query = {
    filter: parseFilter(filter, filterFieldsOf(machineListing.fields)),
    order: machineListing.order,
    limit: 101,
  };
  expect(await plansOf(site.db, (db) => machineListing.collect(db, query, () => null))).toContain(index);
});
