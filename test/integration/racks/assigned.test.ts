import { expect, test } from "vitest";
import { findMachinesInUse, findTraysInUse } from "../../../src/store/rack/assigned.ts";
import { rackStore } from "../../../src/store/rack/racks.ts";
import { createTestDatabase, type TestDatabase } from "../../support/database.ts";
import { insertNode } from "../../support/fleet/fleet-node.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

interface Case {
  readonly phase: string;
  readonly customer?: true;
  readonly inCluster?: boolean | "no answer" | "NodeContradicts" | "SeveralNodes";
  readonly drained?: true;
}

const at = "2026-01-01T00:00:00Z";
const conditionsOf = ({ inCluster, drained }: Case) => [
  ...(inCluster === undefined
    ? []
    : [
        {
          type: "InCustomerCluster",
          status: inCluster === true,
          reason: inCluster === "NodeContradicts" || inCluster === "SeveralNodes" ? inCluster : "R",
          message: "",
          last_transition: at,
          ...(inCluster === "no answer" && { cause: { code: "unreachable" } }),
        },
      ]),
  ...(drained ? [{ type: "Drained", status: true, reason: "R", message: "", last_transition: at }] : []),
];

/** What nobody has checked, or can tell, may be in use. */
// biome-ignore format: a table is read by its columns
const CASES: readonly (readonly [Case, "yes" | "no" | "unknown"])[] = [
  [{ phase: "READY", inCluster: false },                                     "no"],
  [{ phase: "READY", inCluster: true },                                      "yes"],
  [{ phase: "READY" },                                                       "unknown"],
  [{ phase: "FACTORY_READY" },                                               "unknown"],
  [{ phase: "READY", inCluster: "no answer" },                               "unknown"],
  [{ phase: "IN_SERVICE", inCluster: true },                                 "yes"],
  [{ phase: "IN_SERVICE", inCluster: false },                                "no"],
  [{ phase: "PROVISIONING", inCluster: true },                               "yes"],
  [{ phase: "READY", inCluster: "NodeContradicts" },                         "unknown"],
  [{ phase: "READY", inCluster: "SeveralNodes" },                            "unknown"],
  [{ phase: "MAINTENANCE", inCluster: "NodeContradicts" },                   "unknown"],
  [{ phase: "MAINTENANCE", inCluster: "NodeContradicts", drained: true },    "no"],
  [{ phase: "MAINTENANCE", inCluster: true },                                "yes"],
  [{ phase: "MAINTENANCE", inCluster: true, drained: true },                 "no"],
  [{ phase: "MAINTENANCE", inCluster: false },                               "no"],
  [{ phase: "MAINTENANCE", inCluster: "no answer" },                         "unknown"],
  [{ phase: "MAINTENANCE", inCluster: "no answer", drained: true },          "no"],
  [{ phase: "MAINTENANCE" },                                                 "no"],
  [{ phase: "RMA", inCluster: true },                                        "no"],
  [{ phase: "READY", customer: true, inCluster: false },                     "yes"],
  [{ phase: "READY", customer: true, inCluster: false, drained: true },      "yes"],
  [{ phase: "MAINTENANCE", customer: true, inCluster: true },                "yes"],
  [{ phase: "MAINTENANCE", customer: true, inCluster: true, drained: true }, "no"],
];

test("a tray is assigned by its customer and its cluster, and what nobody has checked may be in use", async () => {
  const { db } = database;
  const nameOf = (at: number) => `m-${String(at).padStart(2, "0")}`;
  await db.query("insert into racks (id, state) values ('r1', 'created'), ('r2', 'created')");
  for (const [at, [tray]] of CASES.entries())
    await db.query(
      "insert into machines (id, provider, rack, state, customer_id, conditions) values ($1, 'redfish', 'r1', $2, $3, $4::jsonb)",
      [nameOf(at), tray.phase, tray.customer ? "acme" : null, JSON.stringify(conditionsOf(tray))],
    );
  await db.query("insert into machines (id, provider, rack, state) values ('gone', 'redfish', 'r1', 'RETIRED')");
  const { things, unreadable } = await rackStore.load(db, ["r1", "r2"]);
  expect(unreadable).toEqual([]);
  const trays = things.find(({ id }) => id === "r1")?.trays.map(({ id, assigned }) => [id, assigned]);
  expect(trays).toEqual(CASES.map(([, assigned], at) => [nameOf(at), assigned]));
  const found = await findTraysInUse(db, ["r1", "r2"]);
  expect(found.get("r2")).toBeUndefined();
  expect(found.get("r1")).toEqual(
    CASES.flatMap(([, assigned], at) =>
      assigned === "no" ? [] : [{ id: nameOf(at), isUnknown: assigned === "unknown" }],
    ),
  );
});

test("a machine is assigned while an allocation of its fleet node is open, also one whose release failed", async () => {
  const { db } = database;
  const id = "m-allocated";
  await db.query("insert into machines (id, provider, state, conditions) values ($1, 'maas', 'READY', $2::jsonb)", [
    id,
    JSON.stringify(conditionsOf({ phase: "READY", inCluster: false })),
  ]);
  const node = await insertNode(db, id);
  const isInUse = async () => (await findMachinesInUse(db, [id])).has(id);
  expect(await isInUse()).toBe(false);
  await db.query(
    "insert into fleet_allocations (id, node, tenant, request_id, created_by, state) values ('fa-1', $1, 'a', 'r', 'test', 'requested')",
    [node.id],
  );
  for (const [state, expected] of [
    ["requested", true],
    ["active", true],
    ["release_failed", true],
    ["released", false],
    ["failed", false],
  ] as const) {
    await db.execute("update fleet_allocations set state = $1 where id = 'fa-1'", [state]);
    expect([state, await isInUse()]).toEqual([state, expected]);
  }
  await db.execute("update fleet_allocations set state = 'active' where id = 'fa-1'");
  await db.execute("update fleet_nodes set state = 'deleted' where id = $1", [node.id]);
  expect(await isInUse()).toBe(false);
});
