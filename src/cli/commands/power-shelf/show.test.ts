import { create } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { HistoryService } from "../../../../contract/millwright/v1/history_pb.js";
import { PowerShelfSchema } from "../../../../contract/millwright/v1/power_shelf_pb.js";
import { createFakeShelves } from "../../../../test/support/cli/fake-shelves.ts";
import { createFakeTerminal, runAgainst } from "../../../../test/support/cli/fake-terminal.ts";

const now = new Date("2026-03-01T12:00:00Z");
const at = (text: string) => ({ seconds: BigInt(Date.parse(text) / 1000), nanos: 0 });

const stuck = create(PowerShelfSchema, {
  id: "ps-2",
  name: "Shelf, two",
  rackId: "rack-1",
  state: "maintenance",
  stateDetail: { operation: "power_off" },
  stateReason: "shelf reports power on, wanted off",
  stateSince: at("2026-03-01T11:50:00Z"),
  sla: { seconds: 300n },
  stuck: true,
  condition: "waiting",
  pendingRequest: {
    id: "r1",
    operation: "power_off",
    initiator: "kim (https://tracker/1)",
    requestedAt: at("2026-03-01T11:49:00Z"),
  },
  lastRequest: {
    id: "r0",
    operation: "power_on",
    initiator: "lee",
    outcome: "failed",
    message: "no answer",
    endedAt: at("2026-03-01T10:00:00Z"),
  },
  powerState: "on",
  powerStateObservedAt: at("2026-03-01T11:59:50Z"),
  healthStatus: "ok",
  health: "warning",
  healthSources: [
    { source: "bmc", mode: "merge", counts: true },
    { source: "kim", mode: "merge", counts: true, alerts: [{ id: "Fan", target: "PSU 1", message: "slow" }] },
  ],
  bmc: { address: "10.0.0.7", port: 443, mac: "02:00:5e:10:00:02", tlsTrust: 2 },
  powerSupplies: [{ name: "PSU 1", on: true, health: "ok" }],
  sensors: [{ name: "input", value: 1200, unit: "W" }],
  claim: { holderKind: "power_shelf", holderId: "ps-2" },
  version: 12n,
});

function fleet() {
  const fake = createFakeShelves();
  fake.put({
    id: "ps-1",
    name: "One",
    rackId: "rack-1",
    state: "ready",
    powerState: "on",
    health: "ok",
    stateSince: at("2026-03-01T11:00:00Z"),
  });
  fake.shelves.set("ps-2", stuck);
  fake.put({ id: "ps-3", name: "Three", rackId: "rack-2", state: "deleting", deletedAt: at("2026-03-01T11:59:00Z") });
  return fake;
}
const run = (line: string | string[]) => runAgainst(fleet().routes, line, { now });

test("the list turns pages by itself, marks what is stuck, and says why", async () => {
  expect((await run("ps list --deleted include")).out).toBe(
    [
      "ID    NAME        RACK    STATE                           POWER  HEALTH   SINCE  REASON",
      "ps-1  One         rack-1  ready                           on     ok       1h     -",
      "ps-2  Shelf, two  rack-1  maintenance (power_off, stuck)  on     warning  10m    shelf reports power on, wanted off",
      "ps-3  Three       rack-2  deleting (deleted)              -      -        -      -",
      "",
    ].join("\n"),
  );
});

test("csv has the bare words and times for programs", async () => {
  expect((await run("power-shelf list --stuck -o csv")).out).toBe(
    'id,name,rack,state,power,health,since,reason,stuck,condition,failing_since,deleted\nps-2,"Shelf, two",rack-1,maintenance,on,warning,2026-03-01T11:50:00.000Z,"shelf reports power on, wanted off",true,waiting,,\n',
  );
});

test.each([
  ["--deleted only", ["ps-3"]],
  ["", ["ps-1", "ps-2"]],
  ["--rack rack-1 --state ready", ["ps-1"]],
  ["--controller-state maintenance", ["ps-2"]],
  ["--power-state off", []],
  ["--bmc-mac 02:00:5e:10:00:02", ["ps-2"]],
  ["--bmc-mac 02:00:5e:10:00:02 --state ready", []],
])("list %s has %j", async (filter, ids) => {
  const { out } = await run(`ps list ${filter} -o json`);
  expect((JSON.parse(out) as { id: string }[]).map(({ id }) => id)).toEqual(ids);
});

test("JSON names fields as the contract does, always all of them, and enums by their words", async () => {
  const shelf = JSON.parse((await run("ps show ps-2 -o json")).out) as Record<string, unknown>;
  expect(Object.keys(shelf)).toEqual(PowerShelfSchema.fields.map(({ name }) => name));
  expect(shelf).toMatchObject({
    state: "maintenance",
    rack_id: "rack-1",
    sla: "300s",
    version: "12",
    deleted_at: null,
    capacity_watts: null,
  });
  expect(shelf.bmc).toMatchObject({ tls_trust: "pin", port: 443 });
});

test("yaml holds the same as JSON", async () => {
  const { parse } = await import("yaml");
  expect(parse((await run("ps show ps-2 -o yaml")).out)).toEqual(JSON.parse((await run("ps show ps-2 -o json")).out));
});

test("show tells state, why, since when, requests and parts", async () => {
  const { out, code } = await run("ps show ps-2");
  expect(code).toBe(0);
  for (const part of [
    /State: +maintenance \(power_off, stuck\)/,
    /Since: .*10m ago/,
    /Reason: +shelf reports power on, wanted off/,
    /SLA: +5m, exceeded by 5m/,
    /Pending request: +power_off by kim \(https:\/\/tracker\/1\)/,
    /Last request: +power_on by lee .*failed, 2h ago – no answer/,
    /Power: +on \(seen .*10s ago\)/,
    /BMC: +10.0.0.7:443, 02:00:5e:10:00:02, TLS pin/,
    /Condition: +waiting/,
    /Health: +warning/,
    /kim +merge +- +Fan\[PSU 1\]: slow/,
    /Claimed by: +its own maintenance/,
    /PSU 1 +on +ok/,
    /input +1200 W/,
  ]) {
    expect(out).toMatch(part);
  }
});

describe("a shelf at which passes fail", () => {
  const reason = `the BMC at 10.0.0.9 does not answer: ${"connect ETIMEDOUT ".repeat(8)}`.trim();
  const failing = create(PowerShelfSchema, {
    id: "ps-9",
    name: "Nine",
    state: "ready",
    stateReason: reason,
    condition: "failing",
    failing: true,
    failingSince: at("2026-03-01T11:58:00Z"),
    stuck: true,
    powerState: "on",
    health: "ok",
  });
  const shelves = () => {
    const fake = fleet();
    fake.shelves.set("ps-9", failing);
    return fake;
  };

  test("does not look healthy: what was read before is in doubt", async () => {
    const { out } = await runAgainst(shelves().routes, "ps list --failing", { now });
    expect(out.split("\n")).toHaveLength(3);
    expect(out).toMatch(/ready \(failing\) +on\? +unknown \(was ok\)/);
  });

  test("is shown with its whole reason, and for how long", async () => {
    const { out } = await runAgainst(shelves().routes, "ps show ps-9", { now });
    expect(out).toMatch(/Condition: +failing for 2m/);
    expect(out).toContain(`Reason:          ${reason}\n`);
    expect(out).toMatch(/Power: +on\? /);
  });

  test("has its whole reason, within the edge of the terminal", async () => {
    const piped = await runAgainst(shelves().routes, "ps list --failing", { now });
    expect(piped.out).toContain(reason);
    const narrow = { now, isTTY: true, columns: 100 };
    const { out } = await runAgainst(shelves().routes, "ps list --failing --no-color", narrow);
    for (const line of out.trim().split("\n")) expect(line.length).toBeLessThanOrEqual(100);
    expect(out.match(/ETIMEDOUT/g)).toHaveLength(8);
  });

  test("that waits for a person says so", async () => {
    const fake = shelves();
    fake.put({ ...failing, condition: "needs_intervention" });
    expect((await runAgainst(fake.routes, "ps list --failing", { now })).out).toContain("ready (needs intervention)");
  });

  test("has its words for programs as they are", async () => {
    const { out } = await runAgainst(shelves().routes, "ps list --failing -o csv", { now });
    expect(out).toContain(",ready,on,ok,");
    expect(out).toContain(",true,failing,2026-03-01T11:58:00.000Z,");
  });
});

test("the request that is carried out is shown beside one that waits", async () => {
  const fake = fleet();
  const running = { id: "r7", operation: "power_on", initiator: "lee", requested_at: "2026-03-01T11:55:00.000Z" };
  const show = async (pending: string) => {
    fake.put({
      id: "ps-2",
      state: "maintenance",
      stateDetail: { operation: "power_on", request: running },
      pendingRequest: { id: pending, operation: "power_off", initiator: "kim" },
    });
    return (await runAgainst(fake.routes, "ps show ps-2", { now })).out;
  };
  const both = await show("r8");
  expect(both).toMatch(/Running request: +power_on by lee \(asked .*5m ago\)/);
  expect(both).toMatch(/Pending request: +power_off by kim/);
  expect(await show("r7")).toMatch(/Pending request: +none/);
});

test("show of a shelf that was deleted points to its history", async () => {
  const { code, err } = await runAgainst((router) => {
    fleet().routes(router);
    router.service(HistoryService, {
      listHistory: ({ kind, id }) => ({
        events: kind === "power_shelf" && id === "ps-0" ? [{ type: "deleted", actor: "kim" }] : [],
      }),
    });
  }, "ps show ps-0");
  expect(code).toBe(3);
  expect(err).toContain("does not exist any more: it was deleted");
  expect(err).toContain("hint: `millwright power-shelf history ps-0`");
});

test("show takes a name, tries the id first, and shows all without either", async () => {
  expect((await run(["ps", "show", "Shelf, two"])).out).toMatch(/Power shelf: +ps-2/);
  expect((await run("ps show")).out.split("\n")).toHaveLength(5);
});

test("show of what does not exist ends with 3", async () => {
  expect(await run("ps show nothing")).toEqual({
    code: 3,
    out: "",
    err: "error: power shelf nothing does not exist\n",
  });
});

test("a name that several shelves have is not guessed at", async () => {
  const fake = fleet();
  fake.put({ id: "ps-4", name: "One" });
  const { code, err } = await runAgainst(fake.routes, "ps show One");
  expect(code).toBe(2);
  expect(err).toContain("give the id: ps-1, ps-4");
});

test("an empty list is empty for programs, and said beside the output for people", async () => {
  const fake = createFakeShelves();
  expect(await runAgainst(fake.routes, "ps list")).toEqual({ code: 0, out: "", err: "No power shelves.\n" });
  expect((await runAgainst(fake.routes, "ps list -o json")).out).toBe("[]\n");
});

test("colours are for terminals only, and can be turned off", async () => {
  const tty = { isTTY: true, columns: 120, rows: 40 };
  const list = (line: string, env = {}) => runAgainst(fleet().routes, line, { ...tty, env, now });
  expect((await list("ps list")).out).toContain("\u001b[31mmaintenance");
  expect((await list("ps list --no-color")).out).not.toContain("\u001b");
  expect((await list("ps list", { NO_COLOR: "1" })).out).not.toContain("\u001b");
});

test("--watch prints a line for each change where there is no terminal", async () => {
  const fake = fleet();
  const terminal = createFakeTerminal({ now });
  const running = runAgainst(fake.routes, "ps list --watch -o json", { terminal });
  await terminal.printed('"ps-2"');
  fake.put({ id: "ps-1", state: "error" });
  fake.emit({ kind: "power_shelf", id: "ps-1", type: "transition" });
  await terminal.printed('"error"');
  fake.shelves.delete("ps-2");
  fake.emit({ kind: "power_shelf", id: "ps-2", type: "deleted" });
  await terminal.printed('"gone":true');
  terminal.interrupt();
  const { code, out } = await running;
  expect(code).toBe(130);
  const lines = out
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as { id: string });
  expect(lines.map(({ id }) => id)).toEqual(["ps-1", "ps-2", "ps-1", "ps-2"]);
});

test("--watch redraws in place on a terminal, without wrapping", async () => {
  const fake = fleet();
  const terminal = createFakeTerminal({ isTTY: true, columns: 100, rows: 20, now });
  const running = runAgainst(fake.routes, "ps list --watch", { terminal });
  await terminal.printed("ps-2");
  fake.put({ id: "ps-1", state: "configuring" });
  fake.emit({ kind: "power_shelf", id: "ps-1", type: "transition" });
  await terminal.printed("configuring");
  terminal.interrupt();
  const { code, out } = await running;
  expect(code).toBe(130);
  expect(out).toContain("\u001b[5A\r\u001b[0J");
  expect(out.endsWith("\u001b[?7h")).toBe(true);
});

test("--watch of one shelf ends when it is gone", async () => {
  const fake = fleet();
  const terminal = createFakeTerminal({ now });
  const running = runAgainst(fake.routes, "ps show ps-2 --watch", { terminal });
  await terminal.printed("Power shelf:");
  fake.shelves.delete("ps-2");
  fake.emit({ kind: "power_shelf", id: "ps-2", type: "deleted" });
  expect((await running).code).toBe(3);
});

test("show says when the next pass is, and when none is planned", async () => {
  const fake = fleet();
  fake.put({ id: "ps-4", state: "ready", nextCheckAt: at("2026-03-01T12:00:30Z") });
  fake.put({ id: "ps-5", state: "ready", nextCheckAt: at("2026-03-01T11:59:30Z") });
  const check = async (id: string) => (await runAgainst(fake.routes, `ps show ${id}`, { now })).out;
  expect(await check("ps-1")).toMatch(/Next check: +none planned/);
  expect(await check("ps-4")).toMatch(/Next check: +in 30/);
  expect(await check("ps-5")).toMatch(/Next check: +due/);
});
