import { timestampDate, timestampFromDate } from "@bufbuild/protobuf/wkt";
import { Code } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { PowerShelfMaintenanceOperation as Operation } from "../../../contract/forge/forge_pb.js";
import { HealthReportApplyMode } from "../../../contract/forge/shared_pb.js";
import { TransitionOwner } from "../../../contract/millwright/v1/lifecycle_pb.js";
import { DeletedShelves, TlsTrustMode } from "../../../contract/millwright/v1/power_shelf_pb.js";
import type { WatchRequestSchema, WatchResponse } from "../../../contract/millwright/v1/watch_pb.js";
import { forgetOld } from "../../../src/engine/retention.ts";
import { silentLog } from "../../../src/kernel/log.ts";
import { hours } from "../../../src/kernel/time/duration.ts";
import { pageTokenOf } from "../../../src/services/call/paging.ts";
import { ROLES } from "../../../src/services/call/roles.ts";
import { createBoundToken, tokenFrom, verifyToken } from "../../../src/store/access/tokens.ts";
import { acquire } from "../../../src/store/lifecycle/claims/claims.ts";
import { currentCursor } from "../../../src/store/lifecycle/journal.ts";
import { allStores } from "../../../src/wiring/things/all-things.ts";
import { wishFor } from "../../support/claims.ts";
import { testSealKey } from "../../support/journal/sealed-journal.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";
import { as, dumpTables, type ForgeUnderTest, type Parts, refusal, startForge } from "./forge-under-test.ts";

let it: ForgeUnderTest;
beforeAll(async () => {
  it = await startForge();
});
afterAll(() => it.close());

describe("lifecycles", () => {
  test("are the tables that the server decides by", async () => {
    const { lifecycles } = await it.lifecycles.listLifecycles({});
    expect(lifecycles.map(({ kind }) => kind)).toEqual([...allStores.keys()].sort());
    const { lifecycle } = await it.lifecycles.getLifecycle({ kind: "power_shelf" });
    expect(lifecycle).toMatchObject({ kind: "power_shelf", initial: "initializing" });
    const state = (name: string) => lifecycle?.states.find((one) => one.name === name);
    expect(state("ready")).toMatchObject({ resting: true, terminal: false, holdsClaim: false });
    expect(state("ready")?.trouble).toBe(false);
    expect(state("error")).toMatchObject({ resting: true, trouble: true });
    expect(state("ready")?.sla).toBeUndefined();
    expect(state("ready")?.deadline).toBeUndefined();
    expect(state("maintenance")).toMatchObject({
      resting: false,
      holdsClaim: true,
      sla: { seconds: 300n },
      deadline: { seconds: 240n },
    });
    const edge = (from: string, trigger: string) =>
      lifecycle?.transitions.find((one) => one.from === from && one.trigger === trigger);
    expect(edge("ready", "maintenance_requested")).toMatchObject({
      to: "maintenance",
      owner: TransitionOwner.CONTROLLER,
      failure: false,
      doc: "",
      provided: "",
      clears: [],
      carries: "request",
      sets: "",
    });
    expect(edge("maintenance", "operation_failed")).toMatchObject({
      to: "error",
      owner: TransitionOwner.HANDLER,
      failure: true,
      clears: ["maintenance_request"],
      carries: "cause",
    });
    const forced = edge("*", "force_delete");
    expect(forced).toMatchObject({ to: "", owner: TransitionOwner.CALLER, deletes: true, stays: false });
    expect(forced?.doc).not.toBe("");
  });

  test("an unknown kind is not found, and the answer says which there are", async () => {
    expect(await refusal(it.lifecycles.getLifecycle({ kind: "toaster" }))).toMatchObject({
      code: Code.NotFound,
      field: "kind",
      message: expect.stringContaining("power_shelf"),
    });
    expect((await refusal(it.lifecycles.getLifecycle({}))).code).toBe(Code.InvalidArgument);
  });
});

describe("power shelves", () => {
  const wanted = {
    id: "made",
    name: "made by hand",
    rackId: "rack-7",
    bmcEndpoint: "192.0.2.9:8443",
    bmcMac: "02-AA-00-00-00-01",
    bmcUsername: "root",
    bmcPassword: "p",
    requestId: "request-1",
  };

  test("are made once for one request_id, however often it is sent", async () => {
    const answers = await Promise.all([1, 2, 3].map(() => it.shelves.createPowerShelf(wanted, as("ann"))));
    for (const { powerShelf } of answers) {
      expect(powerShelf).toMatchObject({
        id: "made",
        name: "made by hand",
        rackId: "rack-7",
        state: "initializing",
        powerState: "unknown",
        healthStatus: "unknown",
        sla: { seconds: 300n },
        bmc: { address: "192.0.2.9", port: 8443, mac: "02:aa:00:00:00:01", tlsTrust: TlsTrustMode.PIN },
        stateVersion: 1n,
      });
    }
    const { events } = await it.history.listHistory({ kind: "power_shelf", id: "made" });
    expect(events.map(({ type, actor }) => [type, actor])).toEqual([["created", "ann"]]);
    expect(await refusal(it.shelves.createPowerShelf({ ...wanted, name: "another" }, as("ann")))).toMatchObject({
      code: Code.InvalidArgument,
      field: "request_id",
    });
  });

  test("a request_id is its caller's own: another's call is another call", async () => {
    const theirs = { ...wanted, id: "of-bob", bmcMac: "02:aa:00:00:00:0b", name: "of bob" };
    const { powerShelf } = await it.shelves.createPowerShelf(theirs, as("bob"));
    expect(powerShelf?.id).toBe("of-bob");
    expect(await refusal(it.shelves.createPowerShelf(wanted, as("bob")))).toMatchObject({ field: "request_id" });
  });

  test("a request_id is forgotten after a week", async () => {
    const again = { ...wanted, id: "again", bmcMac: "02:aa:00:00:00:0c", requestId: "weekly" };
    await it.shelves.createPowerShelf(again, as("ann"));
    await it.db.execute("update idempotency_keys set created_at = now() - interval '6 days' where key = 'weekly'");
    await forgetOld(
      { db: it.db, log: silentLog, retention: hours(1), refusalsKept: hours(1), sealKey: testSealKey },
      new AbortController().signal,
    );
    expect((await it.shelves.createPowerShelf(again, as("ann"))).powerShelf?.id).toBe("again");
    await it.db.execute("update idempotency_keys set created_at = now() - interval '8 days' where key = 'weekly'");
    await forgetOld(
      { db: it.db, log: silentLog, retention: hours(1), refusalsKept: hours(1), sealKey: testSealKey },
      new AbortController().signal,
    );
    expect((await refusal(it.shelves.createPowerShelf(again, as("ann")))).code).toBe(Code.AlreadyExists);
  });

  test.each([
    ["an id that is taken", { bmcMac: "02:aa:00:00:00:02", requestId: "" }, Code.AlreadyExists, ""],
    ["a MAC address that is taken", { id: "other", requestId: "" }, Code.AlreadyExists, ""],
    ["a malformed id", { id: "-x" }, Code.InvalidArgument, "id"],
    ["a MAC address that is none", { bmcMac: "x" }, Code.InvalidArgument, "bmc_mac"],
    ["no endpoint", { bmcEndpoint: "" }, Code.InvalidArgument, "bmc_endpoint"],
    ["no user name", { bmcUsername: "" }, Code.InvalidArgument, "bmc_username"],
    ["no password", { bmcPassword: "" }, Code.InvalidArgument, "bmc_password"],
    ["a user name of book length", { bmcUsername: "x".repeat(257) }, Code.InvalidArgument, "bmc_username"],
    ["a password of book length", { bmcPassword: "x".repeat(257) }, Code.InvalidArgument, "bmc_password"],
    ["a request_id of book length", { requestId: "x".repeat(129) }, Code.InvalidArgument, "request_id"],
    ["a request_id that cannot be shown", { requestId: "a\u202eb" }, Code.InvalidArgument, "request_id"],
    ["a scheme that is none", { bmcScheme: "ftp" }, Code.InvalidArgument, "bmc_scheme"],
    ["a trust that is none", { tlsTrust: 8 as TlsTrustMode }, Code.InvalidArgument, "tls_trust"],
    ["a name of one character", { name: "x" }, Code.InvalidArgument, "name"],
    ["a rack id that is too long", { rackId: "r".repeat(65) }, Code.InvalidArgument, "rack_id"],
  ])("are not made with %s, and nothing changes", async (_what, parts, code, field) => {
    await it.shelves.createPowerShelf(wanted, as("ann")); // once, for all of them
    const before = await dumpTables(it.db);
    expect(await refusal(it.shelves.createPowerShelf({ ...wanted, ...parts }))).toMatchObject({ code, field });
    expect(await dumpTables(it.db)).toEqual(before);
  });

  test("get an id from the MAC address where none is given", async () => {
    const { powerShelf } = await it.shelves.createPowerShelf({
      ...wanted,
      id: "",
      name: "",
      requestId: "",
      bmcMac: "02:aa:00:00:00:03",
      tlsTrust: TlsTrustMode.OFF,
    });
    expect(powerShelf).toMatchObject({ id: "ps-02aa00000003", name: "ps-02aa00000003" });
    expect(powerShelf?.bmc?.tlsTrust).toBe(TlsTrustMode.OFF);
  });

  test("say who works on them and who waits", async () => {
    const id = await it.addShelf("claimed");
    await it.db.transaction(async (tx) => {
      for (const holder of ["run-1", "run-2", "run-3"])
        await acquire(tx, [wishFor({ kind: "power_shelf", id }, { kind: "run", id: holder }, "test")]);
    });
    const { powerShelf } = await it.shelves.getPowerShelf({ id });
    expect(powerShelf?.claim).toMatchObject({ holderKind: "run", holderId: "run-1", since: expect.anything() });
    expect(powerShelf?.waitingClaims.map(({ holderId }) => holderId)).toEqual(["run-2", "run-3"]);
  });

  test("that wait for a person are stuck, also where shelves rest", async () => {
    const id = await it.addShelf("needs-help");
    const outcome = { type: "needs_intervention", reason: "open the rack" };
    await it.db.execute("update power_shelves set outcome = $2 where id = $1", [id, outcome]);
    expect((await it.shelves.getPowerShelf({ id })).powerShelf).toMatchObject({
      stuck: true,
      stateReason: "open the rack",
    });
    const { powerShelves } = await it.shelves.listPowerShelves({ stuckOnly: true });
    expect(powerShelves.map((shelf) => shelf.id)).toEqual([id]);
  });

  test.each([
    ["in error", "state = 'error'", true],
    [
      "failing for longer than a minute",
      `outcome = '{"type":"failing","reason":"no route","since":"2020-01-01T00:00:00Z"}'`,
      true,
    ],
    [
      "failing since a moment ago",
      `outcome = jsonb_build_object('type', 'failing', 'reason', 'no route', 'since', now())`,
      false,
    ],
    ["waiting for long", `outcome = '{"type":"waiting","reason":"slow","since":"2020-01-01T00:00:00Z"}'`, false],
    ["in fetching_data above its SLA", "state = 'fetching_data', state_since = now() - interval '1 hour'", true],
  ])("%s: whether somebody should look is said in the list as in the shelf itself", async (what, set, stuck) => {
    const id = await it.addShelf(`look-${what.replace(/\W+/g, "-").replaceAll("_", "-").toLowerCase()}`);
    await it.db.execute(`update power_shelves set ${set} where id = $1`, [id]);
    expect((await it.shelves.getPowerShelf({ id })).powerShelf?.stuck).toBe(stuck);
    const { powerShelves } = await it.shelves.listPowerShelves({ stuckOnly: true });
    expect(powerShelves.some((shelf) => shelf.id === id)).toBe(stuck);
    await it.db.execute("delete from power_shelves where id = $1", [id]);
  });

  test("at which the last pass failed say so, since when, and are listed by it", async () => {
    const failing = await it.addShelf("out-of-reach");
    const unwritten = await it.addShelf("unwritten");
    const waiting = await it.addShelf("only-waiting");
    const since = "2024-01-02T03:04:05.000Z";
    const set = (id: string, outcome: object) =>
      it.db.execute("update power_shelves set outcome = $2 where id = $1", [id, outcome]);
    await set(failing, { type: "failing", reason: "no route", since });
    await set(waiting, { type: "waiting", reason: "slow", since });
    await it.db.execute("update work set last_error = 'its outcome cannot be written' where id = $1", [unwritten]);
    const shelf = async (id: string) => (await it.shelves.getPowerShelf({ id })).powerShelf;
    expect(await shelf(failing)).toMatchObject({ failing: true, condition: "failing", stateReason: "no route" });
    expect((await shelf(failing))?.failingSince).toMatchObject({ seconds: BigInt(Date.parse(since) / 1000) });
    expect(await shelf(unwritten)).toMatchObject({ failing: true, condition: "failing" });
    expect(await shelf(waiting)).toMatchObject({ failing: false, condition: "waiting" });
    expect((await shelf(waiting))?.failingSince).toBeUndefined();
    const listed = (await it.shelves.listPowerShelves({ failingOnly: true })).powerShelves.map(({ id }) => id);
    expect(listed).toEqual(expect.arrayContaining([failing, unwritten]));
    expect(listed).not.toContain(waiting);
    for (const id of [failing, unwritten, waiting])
      await it.db.execute("delete from power_shelves where id = $1", [id]);
  });

  test("have the health that BMC and reports say together, with who says what", async () => {
    const id = await it.addShelf("reported-on");
    await it.db.execute(`update power_shelves set facts = facts || '{"health":"ok"}' where id = $1`, [id]);
    const report = { source: "kim", alerts: [{ id: "Fan", target: "PSU 1", message: "slow" }] };
    const put = (mode: HealthReportApplyMode, alerts = report.alerts) =>
      it.forge.insertPowerShelfHealthReport({
        powerShelfId: { id },
        healthReportEntry: { report: { ...report, alerts }, mode },
      });
    await put(HealthReportApplyMode.Merge);
    const shown = async () => (await it.shelves.getPowerShelf({ id })).powerShelf;
    expect(await shown()).toMatchObject({
      health: "warning",
      healthStatus: "ok",
      healthSources: [
        { source: "bmc", mode: "merge", counts: true, alerts: [] },
        { source: "kim", mode: "merge", counts: true, alerts: [{ id: "Fan", target: "PSU 1", message: "slow" }] },
      ],
    });
    await put(HealthReportApplyMode.Replace, []);
    expect(await shown()).toMatchObject({
      health: "ok",
      healthSources: [
        { source: "bmc", counts: false },
        { source: "kim", mode: "replace", counts: true },
      ],
    });
  });

  test("get new credentials for their BMCs, and are checked with them", async () => {
    const id = await it.addShelf("signed-in-anew");
    await it.db.execute("update work set wake_at = 'infinity' where id = $1", [id]);
    const wanted = { id, bmcUsername: "admin", bmcPassword: "c4nary-secret" };
    await it.shelves.setPowerShelfCredentials(wanted, as("ann"));
    expect((await it.shelves.getPowerShelf({ id })).powerShelf?.nextCheckAt).toBeDefined();
    const { events } = await it.history.listHistory({ kind: "power_shelf", id, types: ["credentials_changed"] });
    expect(events.map(({ actor }) => actor)).toEqual(["ann"]);
    expect(JSON.stringify(await dumpTables(it.db))).not.toContain("c4nary-secret");
    for (const [parts, code, field] of [
      [{ id: "nobody" }, Code.NotFound, ""],
      [{ id: "" }, Code.InvalidArgument, "id"],
      [{ bmcUsername: "" }, Code.InvalidArgument, "bmc_username"],
      [{ bmcPassword: "" }, Code.InvalidArgument, "bmc_password"],
      [{ bmcPassword: "p".repeat(257) }, Code.InvalidArgument, "bmc_password"],
    ] as const)
      expect(await refusal(it.shelves.setPowerShelfCredentials({ ...wanted, ...parts }))).toMatchObject({
        code,
        field,
      });
  });

  test("show the log that the device keeps, where one was read", async () => {
    const id = await it.addShelf("with-a-log");
    expect((await it.shelves.getPowerShelf({ id })).logEntries).toEqual([]);
    const entry = { id: "7", at: "2024-01-02T03:04:05.000Z", severity: "critical", message: "fan stopped" };
    const deviceLog = [entry, { ...entry, id: "6", at: null }];
    await it.db.execute("update power_shelves set facts = $2 where id = $1", [id, { deviceLog }]);
    const { logEntries } = await it.shelves.getPowerShelf({ id });
    expect(logEntries).toMatchObject([
      { id: "7", at: timestampFromDate(new Date(entry.at)), severity: "critical", message: "fan stopped" },
      { id: "6" },
    ]);
    expect(logEntries[1]?.at).toBeUndefined();
  });

  test("are checked on request", async () => {
    const id = await it.addShelf("refreshed");
    await it.db.execute("update work set wake_at = 'infinity' where id = $1", [id]);
    expect((await it.shelves.getPowerShelf({ id })).powerShelf?.nextCheckAt).toBeUndefined();
    await it.shelves.refreshPowerShelf({ id });
    const { powerShelf } = await it.shelves.getPowerShelf({ id });
    if (!powerShelf?.nextCheckAt) throw new Error("no look is planned");
    expect(timestampDate(powerShelf.nextCheckAt).getTime()).toBeLessThanOrEqual(Date.now() + 1_000);
    expect((await refusal(it.shelves.refreshPowerShelf({ id: "nobody" }))).code).toBe(Code.NotFound);
    expect((await refusal(it.shelves.getPowerShelf({ id: "nobody" }))).code).toBe(Code.NotFound);
    expect(await refusal(it.shelves.getPowerShelf({ id: "" }))).toMatchObject({
      code: Code.InvalidArgument,
      field: "id",
    });
  });

  test("are listed page by page, each once, in the order of their ids, and filtered", async () => {
    const ids = await Promise.all([5, 3, 1, 4, 2].map((number) => it.addShelf(`page-${number}`)));
    await it.db.execute("update power_shelves set rack_id = 'rack-p' where id = any($1)", [ids]);
    await it.db.execute("update power_shelves set facts = jsonb_build_object('powerState', 'on') where id = 'page-2'");
    await it.db.execute("update power_shelves set state = 'error' where id = 'page-3'");
    await it.forge.deletePowerShelf({ id: { id: "page-5" } });
    const seen: string[] = [];
    let pageToken = "";
    do {
      const page = await it.shelves.listPowerShelves({
        rackId: "rack-p",
        pageSize: 3,
        deleted: DeletedShelves.INCLUDE,
        pageToken,
      });
      seen.push(...page.powerShelves.map(({ id }) => id));
      pageToken = page.nextPageToken;
    } while (pageToken !== "");
    expect(seen).toEqual(["page-1", "page-2", "page-3", "page-4", "page-5"]);
    const list = async (query: Parameters<typeof it.shelves.listPowerShelves>[0]) =>
      (await it.shelves.listPowerShelves({ rackId: "rack-p", ...query })).powerShelves.map(({ id }) => id);
    expect(await list({})).toEqual(["page-1", "page-2", "page-3", "page-4"]);
    expect(await list({ state: "error" })).toEqual(["page-3"]);
    expect(await list({ powerState: "on" })).toEqual(["page-2"]);
    expect(await list({ powerState: "unknown" })).toEqual(["page-1", "page-3", "page-4"]);
    for (const [query, field] of [
      [{ state: "redy" }, "state"] as const,
      [{ powerState: "maybe" }, "power_state"] as const,
      [{ pageSize: -1 }, "page_size"] as const,
      [{ pageSize: 1_001 }, "page_size"] as const,
      [{ pageToken: "rubbish" }, "page_token"] as const,
    ]) {
      expect(await refusal(list(query))).toMatchObject({ code: Code.InvalidArgument, field });
    }
  });
});

describe("history", () => {
  test("comes page by page in both directions, filtered by type", async () => {
    const id = await it.addShelf("storied");
    for (let round = 0; round < 5; round += 1) {
      await it.forge.updatePowerShelfMetadata({ powerShelfId: { id }, metadata: { name: `name ${round}` } });
    }
    const read = async (newestFirst: boolean, types: string[] = []) => {
      const names: unknown[] = [];
      let pageToken = "";
      do {
        const query = { kind: "power_shelf", id, pageSize: 2, pageToken, newestFirst, types };
        const page = await it.history.listHistory(query);
        expect(page.events.length).toBeLessThanOrEqual(2);
        names.push(...page.events.map(({ data, type }) => data?.name ?? type));
        pageToken = page.nextPageToken;
      } while (pageToken !== "");
      return names;
    };
    const all = ["created", "name 0", "name 1", "name 2", "name 3", "name 4"];
    expect(await read(false)).toEqual(all);
    expect(await read(true)).toEqual([...all].reverse());
    expect(await read(false, ["created"])).toEqual(["created"]);
  });

  test("wrong questions are refused by name", async () => {
    const id = await it.addShelf("asked-of");
    const kind = "power_shelf";
    const other = await it.addShelf("not-asked-of");
    await it.forge.updatePowerShelfMetadata({ powerShelfId: { id: other }, metadata: { name: "told of" } });
    const { nextPageToken } = await it.history.listHistory({ kind, id: other, pageSize: 1 });
    expect(nextPageToken).not.toBe("");
    const forged = (cursor: string) =>
      pageTokenOf(it.deps.secrets, { kind, id, types: [], newestFirst: false }, [cursor]);
    for (const [query, field] of [
      [{ kind: "toaster", id }, "kind"] as const,
      [{ kind }, "id"] as const,
      [{ kind, id, pageSize: 1_001 }, "page_size"] as const,
      [{ kind, id, pageToken: "rubbish" }, "page_token"] as const,
      [{ kind, id, pageToken: forged("no cursor") }, "page_token"] as const,
      [{ kind, id, pageToken: forged("1.2.99999999999999999999") }, "page_token"] as const,
      [{ kind, id, pageSize: 1, pageToken: nextPageToken }, "page_token"] as const,
    ]) {
      expect(await refusal(it.history.listHistory(query))).toMatchObject({ code: Code.InvalidArgument, field });
    }
    expect((await it.history.listHistory({ kind, id: "never-was" })).events).toEqual([]);
  });
});

describe("watching", () => {
  /** Reads until the condition holds, then lets go. */
  async function readUntil(
    request: Parameters<typeof it.watch.watch>[0],
    enough: (messages: WatchResponse[]) => boolean | Promise<boolean>,
  ): Promise<WatchResponse[]> {
    const stop = new AbortController();
    const messages: WatchResponse[] = [];
    try {
      for await (const message of it.watch.watch(request, { signal: stop.signal })) {
        messages.push(message);
        if (await enough(messages)) break;
      }
    } finally {
      stop.abort();
    }
    return messages;
  }

  test("from now begins with a bookmark, and whatever happens after it comes", async () => {
    const id = await it.addShelf("watched");
    // Of what was going on at that moment, such as the shelf's creation, the end may come after it: not asked for here.
    const messages = await readUntil({ fromNow: true, ids: [id], types: ["requested"] }, async (seen) => {
      if (seen.length === 1)
        await it.forge.setPowerShelfMaintenance({ powerShelfIds: [{ id }], operation: Operation.POWER_ON }, as("ann"));
      return seen.length === 2;
    });
    expect(messages.map(({ message }) => message.case)).toEqual(["bookmark", "event"]);
    expect(messages[1]?.message.value).toMatchObject({ id, kind: "power_shelf", type: "requested", actor: "ann" });
  });

  test("goes on after a cursor, each event once, and from the oldest without one", async () => {
    const id = await it.addShelf("resumed");
    for (const name of ["one", "two", "three"])
      await it.forge.updatePowerShelfMetadata({ powerShelfId: { id }, metadata: { name } });
    const eventsIn = (messages: WatchResponse[]) =>
      messages.flatMap(({ message }) => (message.case === "event" ? [message.value] : []));
    const all = eventsIn(await readUntil({ ids: [id] }, (seen) => eventsIn(seen).length === 4));
    expect(all.map(({ type }) => type)).toEqual(["created", ...Array(3).fill("metadata_changed")]);
    const fromCursor = all[1]?.cursor ?? "";
    const rest = eventsIn(
      await readUntil({ kinds: ["power_shelf"], ids: [id], fromCursor }, (seen) => eventsIn(seen).length === 2),
    );
    expect(rest.map(({ data }) => data?.name)).toEqual(["two", "three"]);
  });

  test("wrong questions are refused at once", async () => {
    const fromCursor = await currentCursor(it.db);
    const refused: [Parts<typeof WatchRequestSchema>, string][] = [
      [{ kinds: ["toaster"] }, "kinds"],
      [{ ids: Array.from({ length: 1_001 }, (_, index) => `ps-${index}`) }, "ids"],
      [{ fromCursor: "rubbish" }, "from_cursor"],
      [{ fromCursor, fromNow: true }, "from_now"],
      [{ ids: ["a\0b"] }, "ids[0]"],
    ];
    for (const [request, field] of refused) {
      expect(await refusal(readUntil(request, () => true))).toMatchObject({ code: Code.InvalidArgument, field });
    }
  });
});

describe("tokens", () => {
  test("are made, listed without themselves, and revoked, each audited", async () => {
    const expiresAt = timestampFromDate(new Date(Date.now() + 3_600_000));
    const made = await it.tokens.createToken({ name: " robot ", roles: ["viewer", "viewer"], expiresAt }, as("ann"));
    expect(await verifyToken(it.db, made.token, new Date())).toMatchObject({ status: "valid", name: "robot" });
    const listed = await it.tokens.listTokens({});
    expect(listed.tokens).toMatchObject([{ id: made.id, name: "robot", roles: ["viewer"], expiresAt }]);
    expect(JSON.stringify(await dumpTables(it.db))).not.toContain(made.token);

    await it.tokens.revokeToken({ id: made.id }, as("bob"));
    await it.tokens.revokeToken({ id: made.id }, as("bob"));
    expect(it.revoked).toEqual([made.id, made.id]);
    expect(await verifyToken(it.db, made.token, new Date())).toMatchObject({ status: "revoked" });
    expect((await it.tokens.listTokens({})).tokens[0]?.revokedAt).toBeDefined();
    const { events } = await it.history.listHistory({ kind: "token", id: made.id });
    expect(events).toMatchObject([
      { type: "created", actor: "ann", version: 1n, data: { name: "robot", roles: ["viewer"] } },
      { type: "revoked", actor: "bob", version: 2n },
    ]);
  });

  test("are found by a filter, in an order, and counted", async () => {
    const sorted: string[] = [];
    for (const name of ["find-b", "find-a", "lost"])
      sorted.push((await it.tokens.createToken({ name, roles: [name === "lost" ? "admin" : "viewer"] })).id);
    await it.tokens.revokeToken({ id: sorted[0] ?? "" });
    const ofAgent = { name: "find-agent", roles: ["viewer"], createdBy: "ann", boundTo: "n-1" };
    await it.db.transaction((tx) => createBoundToken(tx, tokenFrom(Buffer.alloc(40, 7)), ofAgent));
    const list = (filter: string) =>
      it.tokens.listTokens({ filter, orderBy: "name desc", withTotal: true, pageSize: 1 });
    const found = await list("name^=find- AND role=viewer");
    expect(found).toMatchObject({ totalSize: 2, tokens: [{ name: "find-b" }] });
    expect((await list("name^=find- AND status=valid")).tokens).toMatchObject([{ name: "find-a" }]);
    expect((await list('name^=find- AND revoked_at!=""')).tokens).toMatchObject([{ name: "find-b" }]);
    await expect(list("secret=x")).rejects.toMatchObject({ code: Code.InvalidArgument });
  });

  test("have a name that no other token which works has", async () => {
    const first = await it.tokens.createToken({ name: "ci", roles: ["viewer"] });
    expect(first.validUntil).toBeUndefined();
    const again = () => it.tokens.createToken({ name: " ci ", roles: ["viewer"] });
    const before = await dumpTables(it.db);
    expect(await refusal(again())).toMatchObject({ code: Code.AlreadyExists, field: "name" });
    expect(await dumpTables(it.db)).toEqual(before);
    await it.db.execute("update tokens set expires_at = now() where id = $1", [first.id]);
    const second = await again(); // one that has ended does not keep its name
    await it.tokens.revokeToken({ id: second.id });
    await again();
  });

  test("page by name and id", async () => {
    const wanted = new Set<string>();
    for (const name of ["zed", "amy", "zoe"]) wanted.add((await it.tokens.createToken({ name, roles: ["viewer"] })).id);
    const names: string[] = [];
    let pageToken = "";
    do {
      const page = await it.tokens.listTokens({ pageSize: 1, pageToken });
      expect(page.tokens).toHaveLength(1);
      names.push(...page.tokens.filter(({ id }) => wanted.has(id)).map(({ name }) => name));
      pageToken = page.nextPageToken;
    } while (pageToken !== "");
    expect(names).toEqual(["amy", "zed", "zoe"]);
  });

  test.each([
    ["no name", { roles: ["viewer"] }, "name", ""],
    ["a name that is too long", { name: "n".repeat(257), roles: ["viewer"] }, "name", "256"],
    ["a name that could forge lines", { name: "a\nb", roles: ["viewer"] }, "name", "printable"],
    ["no roles", { name: "x" }, "roles", "at least one"],
    ["a role that is none", { name: "x", roles: ["viewer", "king"] }, "roles", ROLES.join(", ")],
    [
      "an end in the past",
      { name: "x", roles: ["viewer"], expiresAt: timestampFromDate(new Date(0)) },
      "expires_at",
      "not in the future",
    ],
    [
      "an end beyond all time",
      { name: "x", roles: ["viewer"], expiresAt: { ...timestampFromDate(new Date(0)), seconds: 1n << 60n } },
      "expires_at",
      "9999",
    ],
  ])("are not made with %s", async (_what, request, field, says) => {
    const before = await dumpTables(it.db);
    expect(await refusal(it.tokens.createToken(request))).toMatchObject({
      code: Code.InvalidArgument,
      field,
      message: expect.stringContaining(says),
    });
    expect(await dumpTables(it.db)).toEqual(before);
  });

  test("that never were are not found, and nobody is told to forget them", async () => {
    const told = it.revoked.length;
    expect((await refusal(it.tokens.revokeToken({ id: "0123456789abcdef" }))).code).toBe(Code.NotFound);
    expect((await refusal(it.tokens.revokeToken({}))).code).toBe(Code.InvalidArgument);
    expect(it.revoked).toHaveLength(told);
  });
});

test("the server says which one answered, and who it takes the caller for", async () => {
  expect(await it.system.getSystem({}, as("ann"))).toMatchObject({
    version: "1.2.3",
    replicaId: "replica-1",
    databaseVersion: expect.stringMatching(/^\d+/),
    startedAt: timestampFromDate(new Date("2024-01-02T03:04:05Z")),
    caller: { name: "ann", roles: ["admin"] },
  });
  expect((await it.system.getSystem({})).caller?.name).toBe("");
});

test("the server tells how far its host's clock is off, once it knows, and that this is trouble where it is much", async () => {
  const unknown = await it.system.getSystem({});
  expect(unknown).toMatchObject({ clockTrouble: "" });
  expect(unknown.clockAheadSeconds).toBeUndefined();
  const databaseShows = (shown: number) => it.clock.heard({ askedAt: it.clock.monotonic(), shown });
  databaseShows(Date.now() + 90_000);
  const behind = await it.system.getSystem({});
  expect(Math.round(behind.clockAheadSeconds ?? 0)).toBe(-90);
  expect(behind.clockTrouble).toBe("this host's clock is 1m 30s behind the database's");
  databaseShows(Date.now());
  const right = await it.system.getSystem({});
  expect(Math.abs(right.clockAheadSeconds ?? Number.NaN)).toBeLessThan(1);
  expect(right.clockTrouble).toBe("");
});
