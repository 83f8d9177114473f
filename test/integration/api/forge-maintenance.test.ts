import type { MessageInitShape } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import { beforeEach, describe, expect, test } from "vitest";
import {
  PowerShelfMaintenanceOperation as Operation,
  type PowerShelfMaintenanceRequestSchema,
} from "../../../contract/forge/forge_pb.js";
import { afterAll, beforeAll } from "../../support/second-try.ts";
import { as, dumpTables, type ForgeUnderTest, refusal, startForge } from "./forge-under-test.ts";

type Request = MessageInitShape<typeof PowerShelfMaintenanceRequestSchema>;

const MOST = 5;
const { POWER_ON, POWER_OFF } = Operation;
const wire = (...ids: string[]) => ids.map((id) => ({ id }));

let it: ForgeUnderTest;
beforeAll(async () => {
  it = await startForge({ maxFindByIds: MOST });
});
afterAll(() => it.close());

/** Shelves of this test alone. */
let a: string;
let b: string;
let c: string;
let count = 0;
beforeEach(async () => {
  count += 1;
  [a, b, c] = [`a-${count}`, `b-${count}`, `c-${count}`];
  for (const id of [a, b, c]) await it.addShelf(id);
});

const shelf = async (id: string) => {
  const { powerShelf } = await it.shelves.getPowerShelf({ id });
  if (!powerShelf) throw new Error("no shelf in the answer");
  return powerShelf;
};
const eventsOf = async (id: string) => (await it.history.listHistory({ kind: "power_shelf", id })).events;

describe("a request that is wrong is refused as a whole, and changes nothing", () => {
  const cases: [
    string,
    () => Request | Promise<Request>,
    { code: Code; field: string; kind?: string; says?: string },
  ][] = [
    ["no ids", () => ({ operation: POWER_ON }), { code: Code.InvalidArgument, field: "power_shelf_ids" }],
    [
      "more ids than allowed",
      () => ({ operation: POWER_ON, powerShelfIds: wire(a, b, c, "d", "e", "f") }),
      { code: Code.InvalidArgument, field: "power_shelf_ids", says: `at most ${MOST}` },
    ],
    [
      "an UNSPECIFIED operation",
      () => ({ powerShelfIds: wire(a, b) }),
      { code: Code.InvalidArgument, field: "operation" },
    ],
    [
      "an operation number that the contract does not know",
      () => ({ powerShelfIds: wire(a, b), operation: 99 as Operation }),
      { code: Code.InvalidArgument, field: "operation" },
    ],
    [
      "a malformed id",
      () => ({ powerShelfIds: wire(a, "Not An Id"), operation: POWER_ON }),
      { code: Code.InvalidArgument, field: "power_shelf_ids", says: '"Not An Id"' },
    ],
    [
      "an empty id",
      () => ({ powerShelfIds: [{ id: a }, {}], operation: POWER_ON }),
      { code: Code.InvalidArgument, field: "power_shelf_ids" },
    ],
    [
      "one unknown shelf among many",
      () => ({ powerShelfIds: wire(a, b, "unknown", c), operation: POWER_ON }),
      { code: Code.NotFound, field: "", says: "unknown does not exist" },
    ],
    [
      "one shelf that is marked for deletion among many",
      async () => {
        await it.forge.deletePowerShelf({ id: { id: b } });
        return { powerShelfIds: wire(a, b, c), operation: POWER_ON };
      },
      // The code is the contract's; the kind tells that the moment is wrong and not the request.
      {
        code: Code.InvalidArgument,
        kind: "failed_precondition",
        field: "power_shelf_ids",
        says: "marked for deletion",
      },
    ],
    [
      "a reference that is too long",
      () => ({ powerShelfIds: wire(a), operation: POWER_ON, reference: "x".repeat(1_025) }),
      { code: Code.InvalidArgument, field: "reference" },
    ],
    [
      "a reference that could forge lines",
      () => ({ powerShelfIds: wire(a), operation: POWER_ON, reference: "x\ny" }),
      { code: Code.InvalidArgument, field: "reference" },
    ],
    [
      "text that the database cannot keep",
      () => ({ powerShelfIds: wire(a), operation: POWER_ON, reference: "x\0y" }),
      { code: Code.InvalidArgument, field: "reference", says: "NUL" },
    ],
  ];

  test.each(cases)("%s", async (_what, request, { code, kind, field, says }) => {
    const message = await request();
    const before = await dumpTables(it.db);
    expect(await refusal(it.forge.setPowerShelfMaintenance(message, as("ann")))).toMatchObject({
      code,
      ...(kind !== undefined && { kind }),
      field,
      message: expect.stringContaining(says ?? ""),
    });
    expect(await dumpTables(it.db)).toEqual(before);
  });

  test("the list is judged before its size, its size before the operation, the operation before any shelf", async () => {
    const unknown = ["u1", "u2", "u3", "u4", "u5", "u6"];
    expect((await refusal(it.forge.setPowerShelfMaintenance({}))).field).toBe("power_shelf_ids");
    const tooMany = await refusal(it.forge.setPowerShelfMaintenance({ powerShelfIds: wire(...unknown) }));
    expect(tooMany.message).toContain("at most");
    expect((await refusal(it.forge.setPowerShelfMaintenance({ powerShelfIds: wire("u1") }))).field).toBe("operation");
  });
});

describe("a request that is right", () => {
  test("is recorded on every listed shelf, once for each, and wakes the controller", async () => {
    await it.db.execute("update work set wake_at = 'infinity'");
    await it.forge.setPowerShelfMaintenance({ powerShelfIds: wire(a, b, a), operation: POWER_OFF }, as("ann"));
    for (const id of [a, b]) {
      expect((await shelf(id)).pendingRequest).toMatchObject({
        operation: "power_off",
        initiator: "ann",
        outcome: "",
        requestedAt: expect.anything(),
      });
      expect((await eventsOf(id)).filter(({ type }) => type === "requested")).toHaveLength(1);
    }
    expect((await shelf(c)).pendingRequest).toBeUndefined();
    const due = await it.db.query<{ id: string }>("select id from work where wake_at <= now() order by id");
    expect(due.map(({ id }) => id)).toEqual([a, b]);
  });

  test("is kept as JSON in a column that is null without one", async () => {
    const column = "power_shelf_maintenance_requested";
    const [declared] = await it.db.query(
      "select data_type, is_nullable from information_schema.columns where table_name = 'power_shelves' and column_name = $1",
      [column],
    );
    expect(declared).toEqual({ data_type: "jsonb", is_nullable: "YES" });
    const kept = async () => (await it.db.query(`select ${column} as kept from power_shelves where id = $1`, [a]))[0];
    expect(await kept()).toEqual({ kept: null });
    const request = { powerShelfIds: wire(a), operation: POWER_OFF, reference: "https://tracker/1" };
    await it.forge.setPowerShelfMaintenance(request, as("ann"));
    expect(await kept()).toEqual({
      kept: {
        id: expect.any(String),
        operation: "power_off",
        initiator: "ann (https://tracker/1)",
        requested_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+(Z|\+00:00)$/),
      },
    });
  });

  test("is seen on every listed shelf at once", async () => {
    const ids = [a, b, c];
    const asked = Promise.all(
      Array.from({ length: 20 }, (_, round) =>
        it.forge.setPowerShelfMaintenance({ powerShelfIds: wire(...ids), operation: POWER_ON }, as(`round-${round}`)),
      ),
    ).then(() => "all were asked");
    const seen = async () =>
      it.db.query<{ initiator: string | null }>(
        "select distinct power_shelf_maintenance_requested ->> 'initiator' as initiator from power_shelves where id = any($1)",
        [ids],
      );
    while ((await Promise.race([asked, seen()])) !== "all were asked") expect(await seen()).toHaveLength(1);
    expect(await seen()).toHaveLength(1);
  });

  test("is accepted at the most ids that are allowed", async () => {
    const ids = [a, b, c, await it.addShelf(`d-${count}`), await it.addShelf(`e-${count}`)];
    await it.forge.setPowerShelfMaintenance({ powerShelfIds: wire(...ids), operation: POWER_ON });
    for (const id of ids) expect((await shelf(id)).pendingRequest?.operation).toBe("power_on");
  });

  test.each(["initializing", "fetching_data", "configuring", "ready", "error", "deleting"])(
    "is accepted while the shelf is %s",
    async (state) => {
      const id = await it.addShelf(`in-${state.replace("_", "-")}`, state);
      await it.forge.setPowerShelfMaintenance({ powerShelfIds: wire(id), operation: POWER_ON });
      expect((await shelf(id)).pendingRequest?.operation).toBe("power_on");
    },
  );

  test.each([
    ["a user and a reference", "ann", "https://tracker/1", "ann (https://tracker/1)"],
    ["a user alone", "ann", undefined, "ann"],
    ["a reference alone", undefined, "https://tracker/1", "https://tracker/1"],
    ["neither", undefined, undefined, "admin-cli"],
    ["a user and an empty reference, which counts as none", "ann", "", "ann"],
    ["an empty reference alone", undefined, "", "admin-cli"],
  ])("names as its initiator: %s", async (_what, user, reference, initiator) => {
    const request = { powerShelfIds: wire(a), operation: POWER_ON, ...(reference !== undefined && { reference }) };
    await it.forge.setPowerShelfMaintenance(request, user === undefined ? {} : as(user));
    expect((await shelf(a)).pendingRequest?.initiator).toBe(initiator);
    const [requested] = (await eventsOf(a)).filter(({ type }) => type === "requested");
    expect(requested).toMatchObject({ actor: initiator, data: { operation: "power_on" } });
  });
});

describe("a later request", () => {
  test("takes the place of one that has not begun, which ends as superseded, visibly", async () => {
    await it.forge.setPowerShelfMaintenance({ powerShelfIds: wire(a), operation: POWER_OFF }, as("ann"));
    await it.forge.setPowerShelfMaintenance({ powerShelfIds: wire(a), operation: POWER_ON }, as("bob"));
    const { pendingRequest, lastRequest } = await shelf(a);
    expect(pendingRequest).toMatchObject({ operation: "power_on", initiator: "bob" });
    expect(lastRequest).toMatchObject({
      operation: "power_off",
      initiator: "ann",
      outcome: "superseded",
      endedAt: expect.anything(),
      message: expect.stringContaining("bob"),
    });
    const events = await eventsOf(a);
    expect(events.slice(-3).map(({ type }) => type)).toEqual(["requested", "request_ended", "requested"]);
    const versions = events.map(({ version }) => version);
    expect(versions).toEqual([...versions].sort((left, right) => Number(left - right)));
    expect(new Set(versions).size).toBe(versions.length);
  });

  test("on overlapping shelves at the same moment: both are accepted, the last wins on each, the other is superseded", {
    tags: "race",
  }, async () => {
    const rounds = 30;
    await Promise.all(
      Array.from({ length: rounds }, (_, round) =>
        Promise.all([
          it.forge.setPowerShelfMaintenance({ powerShelfIds: wire(a, b), operation: POWER_ON }, as(`on-${round}`)),
          it.forge.setPowerShelfMaintenance({ powerShelfIds: wire(c, b, a), operation: POWER_OFF }, as(`off-${round}`)),
        ]),
      ),
    );
    for (const [id, requests] of [[a, 2 * rounds] as const, [b, 2 * rounds] as const, [c, rounds] as const]) {
      const events = (await it.history.listHistory({ kind: "power_shelf", id, pageSize: 1_000 })).events;
      const requested = events.filter(({ type }) => type === "requested");
      const superseded = events.filter(({ type }) => type === "request_ended");
      expect(requested).toHaveLength(requests);
      expect(superseded).toHaveLength(requests - 1);
      const { pendingRequest, lastRequest } = await shelf(id);
      expect(pendingRequest?.initiator).toBe(requested.at(-1)?.actor);
      expect(lastRequest).toMatchObject({ outcome: "superseded", initiator: requested.at(-2)?.actor });
    }
    // Transactions are whole: the two shelves that every request names saw them in the same order.
    const actors = async (id: string) =>
      (await it.history.listHistory({ kind: "power_shelf", id, types: ["requested"] })).events.map(
        ({ actor }) => actor,
      );
    expect(await actors(a)).toEqual(await actors(b));
  });
});
