import { type DescField, type DescMessage, type DescMethod, fromJson, type JsonObject } from "@bufbuild/protobuf";
import { describe, expect, onTestFinished, test } from "vitest";
import { servedMethods } from "../../../scripts/generate/served-services.ts";
import { NO_LIMITS, type Scope } from "../../../src/kernel/access/scope.ts";
import { eventsWithin } from "../../../src/services/call/reach.ts";
import type { EventSource } from "../../../src/store/lifecycle/event-source.ts";
import type { JournalRow } from "../../../src/store/lifecycle/journal.ts";
import { findOutside } from "../../../src/store/lifecycle/places.ts";
import type { Queryable } from "../../../src/store/postgres/database.ts";
import { access, allStores } from "../../../src/wiring/things/all-things.ts";
import { placeThings } from "../../support/access/placed-things.ts";
import { type ScopedSurface, startScopedSurface } from "../../support/access/scoped-surface.ts";
import { recordClaim } from "../../support/claims.ts";
import { createTestDatabase } from "../../support/database.ts";
import { eventually } from "../../support/eventually.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";

let surface: ScopedSurface;
beforeAll(async () => {
  surface = await startScopedSurface();
  for (const where of ["inside", "outside"] as const) await placeThings(surface.db, where);
});
afterAll(() => surface.close());

const SCOPE: Scope = { ...NO_LIMITS, racks: ["inside"] };
const methods = new Map<string, DescMethod>(
  servedMethods().map((method) => [`${method.parent.typeName}/${method.name}`, method]),
);
const ruled = access.methods.filter((key) => access.thingsOf(key) !== undefined && !/\S+\/\S+ /.test(key));
const lists = ruled.filter((key) => access.thingsOf(key) === "list");
const naming = ruled.filter((key) => access.thingsOf(key) !== "list");
const isRoute = (key: string) => key.includes(" /");
const isStream = (key: string) => methods.get(key)?.methodKind === "server_streaming";

describe("what is listed", () => {
  // A group of nodes lists what is in the group; the test has none. The others have tests of their own: what is counted names nothing.
  const OWN_TESTS = [
    ...["HistoryService/CountEvents", "HistoryService/ListEvents"],
    ...["OverviewService/GetOverview", "RunActionsService/StartRuns"],
  ];
  const asked = lists.filter(
    (key) => !isStream(key) && !key.includes("/groups/") && !OWN_TESTS.some((one) => key.endsWith(one)),
  );
  const REQUESTS: Readonly<Record<string, JsonObject>> = {
    "millwright.v1.OverviewService/CountThings": { kind: "machine", groupBy: ["rack"] },
    "millwright.v1.SearchService/Search": { query: "m-" },
  };

  test.each(asked)("%s shows what is within the scope, and nothing else, whatever the transport", async (key) => {
    const request = REQUESTS[key] ?? {};
    const all = await surface.answers(key, request, undefined);
    for (const text of all) expect(text).toContain("outside");
    const some = await surface.answers(key, request, SCOPE);
    for (const text of some) {
      expect(text).toContain("inside");
      expect(text).not.toContain("outside");
    }
  });

  test("is counted as it is shown", async () => {
    const [text] = await surface.answers("millwright.v1.MachineService/ListMachines", { withTotal: true }, SCOPE);
    expect(JSON.parse(text ?? "")).toMatchObject({ totalSize: 1 });
  });

  test("goes by what the filter asks besides, and cannot be widened by it", async () => {
    const filter = "rack=outside OR rack=inside";
    const [text] = await surface.answers("millwright.v1.MachineService/ListMachines", { filter }, SCOPE);
    expect(text).toContain("m-inside");
    expect(text).not.toContain("outside");
  });

  test("is found by its other names too, and only there", async () => {
    for (const query of ["acme-", "h-", "10.0", "outside", "inside"]) {
      const [text] = await surface.answers("millwright.v1.SearchService/Search", { query }, SCOPE);
      expect(text).not.toMatch(/"id":\s*"[^"]*outside/);
    }
    const [counted] = await surface.answers("millwright.v1.OverviewService/CountThings", { kind: "run" }, SCOPE);
    expect(JSON.parse(counted ?? "")).toMatchObject({ total: "2" });
    const [nowhere] = await surface.answers("millwright.v1.OverviewService/CountThings", { kind: "plan" }, SCOPE);
    expect(nowhere).toContain("is none of");
  });

  test("is in the overview with its own numbers, and kinds that are nowhere are not", async () => {
    const numbers = async (scope: Scope | undefined) => {
      const [text] = await surface.answers("millwright.v1.OverviewService/GetOverview", {}, scope);
      const { kinds } = JSON.parse(text ?? "") as { kinds: { kind: string; things?: string }[] };
      return new Map(kinds.map(({ kind, things = "0" }) => [kind, Number(things)]));
    };
    const [all, some] = [await numbers(undefined), await numbers(SCOPE)];
    for (const kind of ["machine", "rack", "switch", "power_shelf"])
      expect([kind, some.get(kind)]).toEqual([kind, (all.get(kind) ?? 0) / 2]);
    await surface.db.execute("update power_shelves set state = 'error'");
    onTestFinished(() => surface.db.execute("update power_shelves set state = 'ready'").then(() => undefined));
    const attended = async (scope: Scope | undefined) =>
      (await surface.answers("millwright.v1.OverviewService/GetOverview", {}, scope)).map((text) => {
        const { attention } = JSON.parse(text) as { attention: { ids: string[]; things: number }[] };
        return attention.flatMap(({ ids }) => ids).filter((id) => id.startsWith("ps-"));
      });
    for (const ids of await attended(undefined)) expect(ids.toSorted()).toEqual(["ps-inside", "ps-outside"]);
    for (const ids of await attended(SCOPE)) expect(ids).toEqual(["ps-inside"]);
    expect([...some.keys()].sort()).toEqual(
      [...allStores].flatMap(([kind, { place }]) => (place ? [kind] : [])).sort(),
    );
  });

  test("of the journal is what happened within the scope, told and counted; who names another thing is refused", async () => {
    const since = new Date(Date.now() - 3_600_000).toISOString();
    for (const id of ["m-inside", "m-outside", "m-outside"])
      await surface.db.execute(
        `insert into journal (epoch, kind, id, version, type, actor, data) select epoch, 'machine', $1, 1, 'noted', 'counting', '{}' from journal_epoch`,
        [id],
      );
    const ask = async (request: JsonObject, scope: Scope | undefined = SCOPE) => {
      const texts = await surface.answers("millwright.v1.HistoryService/ListEvents", request, scope);
      return texts.join();
    };
    // An entry is told once no transaction is open that may write one before it, in whatever database of the server.
    const everything = { ...NO_LIMITS, racks: ["inside", "outside"] };
    await eventually(async () => (await ask({ actors: ["counting"] }, everything)).match(/"counting"/g)?.length === 6, {
      what: "the entries are settled",
    });
    expect(await ask({ actors: ["counting"] }, { ...NO_LIMITS, racks: ["outside"] })).not.toContain("m-inside");
    const told = await ask({ actors: ["counting"] });
    expect(told).toContain("m-inside");
    expect(told).not.toContain("outside");
    expect(await ask({ things: [{ kind: "machine", id: "m-inside" }] })).toContain("counting");
    expect(await ask({ things: [{ kind: "machine", id: "m-outside" }] })).toContain("not within the scope");
    const count = async (scope: Scope | undefined) => {
      const request = { since, buckets: 1, kinds: ["machine"], types: ["noted"] };
      const [text] = await surface.answers("millwright.v1.HistoryService/CountEvents", request, scope);
      const { buckets } = JSON.parse(text ?? "") as { buckets: { events?: string }[] };
      return Number(buckets[0]?.events ?? 0);
    };
    expect([await count(SCOPE), await count(undefined)]).toEqual([1, 3]);
    await surface.db.execute("delete from journal where actor = 'counting'");
  });

  test("is nothing where no thing of the kind is within the scope", async () => {
    const [text] = await surface.answers(
      "millwright.v1.RackService/ListRacks",
      {},
      { ...NO_LIMITS, customers: ["acme-inside"] },
    );
    expect(JSON.parse(text ?? "")).toEqual({});
  });
});

/** The kind, and the id of one of it that there is. */
const IDS: Readonly<Record<string, (where: string) => string>> = {
  machine: (where) => `m-${where}`,
  install: (where) => `m-${where}`,
  rack: (where) => where,
  switch: (where) => `sw-${where}`,
  power_shelf: (where) => `ps-${where}`,
  run: (where) => `run-machine-${where}`,
  fleet_node: (where) => `fn-${where}`,
};

/** A request that names things by the first way that the rule has. */
function requestFor(key: string, wheres: readonly string[]): { request: JsonObject; ids: string[]; isMany: boolean } {
  const rule = access.thingsOf(key);
  if (rule === undefined || rule === "list") throw new Error(`${key} names nothing`);
  const [{ kind = "machine", ids: way } = { kind: "", ids: [] }] = rule;
  const ids = wheres.map((where) => IDS[kind]?.(where) ?? "");
  if (isRoute(key)) return { request: { id: ids[0] ?? "" }, ids, isMany: false };
  const method = methods.get(key);
  if (!method) throw new Error(`there is no ${key}`);
  const { json, isMany } = messageWith(method.input, way, ids);
  return { request: { ...(rule[0]?.kind === undefined && { kind }), ...json }, ids, isMany };
}

function messageWith(
  message: DescMessage,
  [name = "", ...rest]: readonly string[],
  ids: readonly string[],
): { json: JsonObject; isMany: boolean } {
  const field = message.fields.find((each) => each.name === name) as DescField | undefined;
  if (!field) throw new Error(`${message.typeName} has no field ${name}`);
  const below = (some: readonly string[]) =>
    rest.length === 0 || !field.message
      ? { json: some[0] ?? "", isMany: false }
      : messageWith(field.message, rest, some);
  if (field.fieldKind === "list") return { json: { [name]: ids.map((id) => below([id]).json) }, isMany: true };
  const inner = below(ids);
  return { json: { [name]: inner.json }, isMany: inner.isMany };
}

describe("what is named", () => {
  const OUT = /not within the scope of 'scoped' \(racks=inside\), or does not exist/;

  test.each(naming)("%s is refused on what is outside, in the words for what does not exist", async (key) => {
    const { request, ids } = requestFor(key, ["outside"]);
    const missing = requestFor(key, ["nowhere"]);
    for (const text of await surface.answers(key, request, SCOPE)) {
      expect(text).toMatch(OUT);
      expect(text).toContain(ids[0]);
    }
    const unlike = (text: string, id: string | undefined) => text.replaceAll(id ?? "", "ID");
    const before = await surface.answers(key, request, SCOPE);
    const after = await surface.answers(key, missing.request, SCOPE);
    expect(after.map((text) => unlike(text, missing.ids[0]))).toEqual(before.map((text) => unlike(text, ids[0])));
  });

  test.each(naming.filter((key) => requestFor(key, ["inside"]).isMany))(
    "%s names the refused ones of many",
    async (key) => {
      const { request, ids } = requestFor(key, ["inside", "outside", "nowhere"]);
      for (const text of await surface.answers(key, request, SCOPE)) {
        expect(text).toMatch(OUT);
        expect(text).toContain(ids[1]);
        expect(text).toContain(ids[2]);
        expect(text).not.toContain(`${ids[0]},`);
      }
      for (const text of await surface.answers(key, {}, SCOPE)) expect(text).toContain("must name the things of");
    },
  );

  // What is read is read; what acts is not called here, since much of it needs devices.
  const reads = naming.filter((key) => /\/(Get|Find|List|Preview|Explain)|^GET/.test(key));
  test.each(reads)("%s is answered on what is inside", async (key) => {
    const { request } = requestFor(key, ["inside"]);
    for (const text of await surface.answers(key, request, SCOPE)) expect(text).not.toMatch(/scope|permission/);
  });
});

test("an explanation says that somebody outside of the scope stands in the way, and not who", async () => {
  const holder = { kind: "run", id: "run-rack-outside" };
  const waiting = { kind: "run", id: "run-machine-inside" };
  const machine = { kind: "machine", id: "m-inside" };
  onTestFinished(async () => {
    await surface.db.execute("delete from claims");
    await surface.db.execute("update runs set state = 'SUCCEEDED', outcome = null");
  });
  for (const claimant of [holder, waiting])
    await recordClaim(surface.db, machine, claimant, "a repave of rack outside");
  await surface.db.execute("update runs set state = 'PENDING' where id = $1", [waiting.id]);
  const outcome = { at: new Date().toISOString(), kind: "wait", reason: "waits for the switches of rack outside" };
  await surface.db.execute("update runs set state = 'RUNNING', outcome = $2 where id = $1", [holder.id, outcome]);
  for (const about of [waiting, machine]) {
    for (const text of await surface.answers("millwright.v1.ExplainService/Explain", about, undefined))
      expect(text).toContain(holder.id);
    for (const text of await surface.answers("millwright.v1.ExplainService/Explain", about, SCOPE)) {
      expect(text).toContain("(outside of your scope)");
      expect(text.replaceAll("(outside of your scope)", "")).not.toContain("outside");
    }
  }
});

describe("runs on many machines", () => {
  const start = async (requestId: string, filter: string, scope: Scope | undefined) => {
    const request = { requestId, filter, type: "REBOOT" };
    const [text] = await surface.answers("millwright.v1.RunActionsService/StartRuns", request, scope);
    return text ?? "";
  };
  const read = async (runId: string, scope: Scope) =>
    (await surface.answers("millwright.v1.RunService/GetRun", { runId }, scope)).join();

  test("are started on those within the scope alone, and belong to who reaches all of them", async () => {
    onTestFinished(async () => {
      await surface.db.execute("delete from runs where target_kind = 'batch'");
      await surface.db.execute("delete from batches");
    });
    const outside: Scope = { ...NO_LIMITS, racks: ["outside"] };
    const started = JSON.parse(await start("scoped", "provider=redfish", SCOPE)) as { run: { run: { runId: string } } };
    const [batch] = await surface.db.query<{ machines: string[] }>(
      "select b.machines from batches b join runs r on r.target_id = b.id where r.id = $1",
      [started.run.run.runId],
    );
    expect(batch?.machines).toEqual(["m-inside"]);
    expect(await read(started.run.run.runId, SCOPE)).toContain(started.run.run.runId);
    expect(await read(started.run.run.runId, outside)).toContain("not within the scope");
    expect(await start("none", "machine_id=m-outside", SCOPE)).toContain("no machine matches");
    // The request of somebody who reached more is not told to who reaches less, under the same name.
    const whole = JSON.parse(await start("whole", "provider=redfish", undefined)) as {
      run: { run: { runId: string } };
    };
    expect(await start("whole", "provider=redfish", SCOPE)).toContain("not within the scope");
    expect(await read(whole.run.run.runId, SCOPE)).toContain("not within the scope");
    expect(await read(whole.run.run.runId, { ...NO_LIMITS, racks: ["inside", "outside"] })).toContain(
      whole.run.run.runId,
    );
  });
});

describe("what is watched", () => {
  const event = (kind: string, id: string) =>
    surface.db.execute(
      `insert into journal (epoch, kind, id, version, type, actor, data) select epoch, $1, $2, 1, 'noted', 'test', '{}' from journal_epoch`,
      [kind, id],
    );

  test("are events of what is within the scope, until it leaves it", async () => {
    const stop = new AbortController();
    onTestFinished(() => stop.abort());
    const items = surface.watch(SCOPE, stop.signal);
    expect((await items.next()).value).toMatchObject({ bookmark: true });
    const next = async () => {
      for (;;) {
        const { value } = await items.next();
        if (value && !value.bookmark) return value.id;
      }
    };
    await event("machine", "m-outside");
    await event("machine", "m-inside");
    surface.nudge();
    expect(await next()).toBe("m-inside");
    await surface.db.execute(
      "insert into machines (id, provider, state, rack) values ('m-moving', 'redfish', 'READY', 'inside')",
    );
    await event("machine", "m-moving");
    surface.nudge();
    expect(await next()).toBe("m-moving");
    await surface.db.execute("update machines set rack = 'outside' where id = 'm-moving'");
    // It may be remembered for a moment where it was.
    await eventually(
      async () => {
        await event("machine", "m-moving");
        await event("run", "run-rack-inside");
        surface.nudge();
        if ((await next()) === "run-rack-inside") return true;
        await next();
        return false;
      },
      { what: "the machine that left is not told of" },
    );
    await surface.db.execute("delete from machines where id = 'm-moving'");
  });

  test("costs one question for many events, over the connections of lists alone", async () => {
    const asked: number[] = [];
    const lists: Queryable = {
      query(text: never, values?: readonly unknown[]) {
        asked.push(Array.isArray(values?.[0]) ? values[0].length : 0);
        return surface.db.query(text, values);
      },
    } as never;
    const rows = Array.from({ length: 120 }, (_, at) => ({
      ...{ kind: "machine", id: ["m-inside", "m-outside", `m-${at}`][at % 3] ?? "", cursor: String(at) },
    }));
    const events: EventSource = {
      async *follow() {
        for (const row of rows) yield { type: "event", row: row as JournalRow };
        yield { type: "bookmark", cursor: "end" };
        throw new Error("the journal ends here");
      },
    };
    const deps = { db: undefined as never, lists, stores: allStores };
    const told: string[] = [];
    const following = async () => {
      const { signal } = new AbortController();
      for await (const item of eventsWithin(deps, events, SCOPE).follow("oldest", { kinds: [] }, signal))
        told.push(item.type === "event" ? item.row.cursor : item.cursor);
    };
    await expect(following()).rejects.toThrow("the journal ends here");
    expect(told).toEqual([...rows.filter(({ id }) => id === "m-inside").map(({ cursor }) => cursor), "end"]);
    expect(asked).toEqual([42]);
  });

  test("are runs of what is within the scope", async () => {
    const phase = async (state: string) => {
      await surface.db.execute("update runs set state = $1 where target_kind = 'rack'", [state]);
    };
    await phase("RUNNING");
    onTestFinished(() => phase("SUCCEEDED"));
    expect(await surface.firstRuns(undefined, 2)).toEqual(["run-rack-inside", "run-rack-outside"]);
    expect(await surface.firstRuns(SCOPE, 1)).toEqual(["run-rack-inside"]);
  });
});

test("a caller may ask what it may do on which things", async () => {
  const ask = async (on: readonly JsonObject[]) => {
    const [text] = await surface.answers(
      "millwright.v1.AccessService/CanI",
      { method: "SetMachinePower", on: [...on] },
      SCOPE,
    );
    return JSON.parse(text ?? "") as { allowed?: boolean; reason?: string };
  };
  expect(await ask([{ kind: "machine", id: "m-inside" }])).toMatchObject({ allowed: true });
  const refused = await ask([
    { kind: "machine", id: "m-inside" },
    { kind: "machine", id: "m-outside" },
  ]);
  expect(refused.allowed ?? false).toBe(false);
  expect(refused.reason).toMatch(/^machine m-outside: not within the scope/);
});

test("who says that a thing is elsewhere does not reach it by its own word", async () => {
  // The only methods that change where things are.
  for (const key of [
    "baremetal.v1.MachineService/UpdateMachine",
    "baremetal.v1.MachineService/RegisterMachine",
    "forge.Forge/UpdateSwitchMetadata",
  ])
    for (const text of await surface.answers(key, {}, SCOPE))
      expect(text).toContain("no token whose scope names things may");
});

describe("where things are", () => {
  const KINDS = [
    "machine",
    "rack",
    "switch",
    "power_shelf",
    "install",
    "run",
    "host_reprovision",
    "expected_power_shelf",
    "fleet_node",
  ];

  test.each([
    ["racks", ["inside"], KINDS],
    ["clusters", ["c-inside"], ["machine", "install", "run", "host_reprovision", "fleet_node"]],
    ["customers", ["acme-inside"], ["machine", "install", "run", "host_reprovision", "fleet_node"]],
    [
      "labels",
      ["env=inside"],
      ["machine", "switch", "power_shelf", "install", "run", "host_reprovision", "fleet_node"],
    ],
  ] as const)("%s hold what is there, and nothing that is nowhere", async (limit, words, kinds) => {
    const ids = {
      ...IDS,
      host_reprovision: (where: string) => `m-${where}`,
      expected_power_shelf: (where: string) => `ep-${where}`,
    };
    const keys = KINDS.flatMap((kind) =>
      ["inside", "outside"].map((where) => ({ kind, id: (ids as typeof IDS)[kind]?.(where) ?? "" })),
    );
    const outside = await findOutside(surface.db, allStores, { ...NO_LIMITS, [limit]: [...words] }, keys);
    const within = keys.filter((key) => !outside.includes(key));
    expect(within.map(({ kind }) => kind)).toEqual(KINDS.filter((kind) => kinds.some((known) => known === kind)));
    expect(within.every(({ id }) => id.includes("inside"))).toBe(true);
  });

  test("several limits must all be kept to, and one of the words of each", async () => {
    const { db, drop } = await createTestDatabase();
    onTestFinished(drop);
    for (const where of ["inside", "outside"] as const) await placeThings(db, where);
    const machines = ["inside", "outside"].map((where) => ({ kind: "machine", id: `m-${where}` }));
    const outside = async (scope: Partial<Scope>) =>
      (await findOutside(db, allStores, { ...NO_LIMITS, ...scope }, machines)).map(({ id }) => id);
    expect(await outside({ racks: ["inside", "outside"] })).toEqual([]);
    expect(await outside({ racks: ["inside", "outside"], customers: ["acme-outside"] })).toEqual(["m-inside"]);
    expect(await outside({ racks: ["inside"], labels: ["env=outside"] })).toEqual(["m-inside", "m-outside"]);
    await db.execute(`update machines set facts = '{"joinedCluster": "c-outside"}'`);
    expect(await outside({ clusters: ["c-inside"] })).toEqual(["m-inside", "m-outside"]);
  });
});

test("every way to an id that the tables name is one of the request", () => {
  for (const key of naming.filter((each) => !isRoute(each))) {
    const method = methods.get(key);
    const { request } = requestFor(key, ["inside"]);
    expect(() => method && fromJson(method.input, request)).not.toThrow();
  }
});
