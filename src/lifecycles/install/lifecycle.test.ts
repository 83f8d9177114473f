import { describe, expect, test } from "vitest";
import { decide, follow, followOrRefuse } from "../../kernel/decide.ts";
import { parseMachineId } from "../../kernel/ids.ts";
import { type JsonObject, type Row, rowsFrom, STAY } from "../../kernel/lifecycle.ts";
import { systemClock } from "../../kernel/time/clock.ts";
import { hours } from "../../kernel/time/duration.ts";
import { installHandlers } from "./handlers.ts";
import {
  INSTALL_STATES,
  type Install,
  type InstallFacts,
  type InstallState,
  MAX_INSTALL_ATTEMPTS,
  MOST_DISKS,
} from "./install.ts";
import { installLifecycle } from "./lifecycle.ts";

/** The specification's transition list, as it is printed there. */
const SPECIFICATION = [
  "discovered → pending",
  "pending → installing",
  "installing → installed",
  "installing → install_failed",
  "install_failed → pending",
  "installed → active",
  "active → reprovision",
  "active → deprovisioning",
  "active → migrating",
  "reprovision → pending",
  "deprovisioning → retired",
  "migrating → active",
  "* → retired",
];
/** Its table of states. */
const STATES =
  "discovered pending installing install_failed installed active reprovision deprovisioning migrating retired".split(
    " ",
  );
/** Ours, each with its reason in the table. */
const ADDED = [
  "discovered → (gone)",
  "installed → pending",
  "installing → active",
  "pending → install_failed",
  "pending → discovered",
];

const rows: readonly Row<Install>[] = installLifecycle.transitions;
const NOW = "2026-01-21T10:30:00.000Z";

const facts = (change: Partial<InstallFacts> = {}): InstallFacts => ({
  installAttempts: 0,
  lastInstallError: null,
  progress: null,
  attemptStartedAt: null,
  attemptFailed: false,
  hostname: null,
  ipAddress: null,
  vendor: null,
  model: null,
  serialNumber: null,
  systemUuid: null,
  lastSeenAt: null,
  orderedBy: null,
  orderId: null,
  tokenShown: false,
  erasedDisks: [],
  steps: [],
  ...change,
});
const install = (state: InstallState, change: Partial<Install> = {}): Install => ({
  id: parseMachineId("m-1", "id"),
  version: 1,
  basis: 1,
  state: { name: state },
  stateSince: new Date(NOW),
  stateVersion: 1,
  outcome: null,
  mac: "02:00:00:00:00:01",
  arch: "x86_64",
  bootMode: "uefi",
  groupId: null,
  workflowId: null,
  tags: [],
  createdAt: new Date(NOW),
  isCompleteInDoubt: false,
  promotesWhenComplete: false,
  promotesOnFirstBoot: false,
  facts: facts(),
  ...change,
});
const reports = (before: Install, name: string, data: JsonObject = {}, message?: string) =>
  follow(installLifecycle, before, { owner: "agent", name, data: { now: NOW, ...data }, message });

describe("the table is that of the specification", () => {
  test("with its edges and those that we added, no more and no fewer", () => {
    const edges = new Set(rows.filter(([, , to]) => to !== STAY).map(([from, , to]) => `${from} → ${to}`));
    expect([...edges].sort()).toEqual([...SPECIFICATION, ...ADDED].sort());
    for (const [from, , to, options] of rows)
      if (ADDED.includes(`${from} → ${to}`)) expect(options?.added).toEqual(expect.any(String));
  });

  test("with its states, in its spelling and order, beginning with discovered", () => {
    expect(Object.keys(installLifecycle.states)).toEqual(STATES);
    expect(INSTALL_STATES).toEqual(STATES);
    expect(installLifecycle.initial).toBe("discovered");
  });

  test("in which a claim on the machine is held exactly while something is done to it", () => {
    const claiming = INSTALL_STATES.filter((state) => "claims" in installLifecycle.states[state]);
    expect(claiming).toEqual(["installing", "deprovisioning", "migrating"]);
  });

  test("in which every state but retired has an operator's way out", () => {
    for (const state of INSTALL_STATES.filter((each) => each !== "retired"))
      expect(rowsFrom(installLifecycle, state).some(([, { owner }]) => owner === "caller")).toBe(true);
  });
});

describe("reports", () => {
  // The specification's table: what is reported, where, what it leads to, and what it sets.
  test.each([
    ["started", "pending", "installing", { installAttempts: 0, progress: 0 }],
    ["progress", "installing", "installing", { progress: 40 }],
    ["complete", "installing", "installed", { installAttempts: 0, lastInstallError: null, progress: 100 }],
  ] as const)("%s in %s leads to %s", (name, state, to, sets) => {
    const move = reports(install(state, { facts: facts({ installAttempts: 2 }) }), name, { progress: 40 });
    expect(move).toMatchObject({ to, facts: sets });
  });

  test.each([
    [0, "installing"],
    [1, "installing"],
    [2, "install_failed"],
  ] as const)("failed after %i failures leads to %s, and counts", (installAttempts, to) => {
    const move = reports(install("installing", { facts: facts({ installAttempts }) }), "failed", {}, "Disk not found");
    const counted = { installAttempts: installAttempts + 1, lastInstallError: "Disk not found", attemptFailed: true };
    expect(move).toMatchObject({ to, facts: counted });
  });

  test("in any other state lead nowhere", () => {
    const known = new Map([
      ["started", ["pending"]],
      ["progress", ["installing"]],
      ["complete", ["installing"]],
      ["failed", ["installing"]],
    ]);
    for (const [name, states] of known) {
      const moving = INSTALL_STATES.filter((state) => reports(install(state), name) !== undefined);
      expect(moving, name).toEqual(states);
    }
  });

  test("of a first boot promote only where the group says so", () => {
    expect(reports(install("installed"), "first_boot")).toBeUndefined();
    expect(reports(install("installed", { promotesOnFirstBoot: true }), "first_boot")).toMatchObject({ to: "active" });
  });
});

test("a node that is to erase its disks is checked again, and says how many were read back", async () => {
  const disk = (name: string, verified: boolean) => ({ disk: name, serial: null, method: "overwrite", verified });
  const erasedDisks = [disk("/dev/sda", true), disk("/dev/sdb", false)];
  const looked = await installHandlers.deprovisioning?.(install("deprovisioning", { facts: facts({ erasedDisks }) }), {
    clock: systemClock,
    installTimeout: hours(1),
  });
  expect(looked).toMatchObject({ type: "waiting", reason: expect.stringContaining("read back so far: 1") });
});

test("only disks that were all read back lead from deprovisioning to retired", () => {
  const disk = (name: string, verified: boolean) => ({ disk: name, serial: null, method: "overwrite", verified });
  const erasing = (...erasedDisks: InstallFacts["erasedDisks"]) =>
    install("deprovisioning", { facts: facts({ erasedDisks }) });
  expect(reports(erasing(), "erased")).toBeUndefined();
  expect(reports(erasing(disk("/dev/sda", true), disk("/dev/sdb", false)), "erased")).toBeUndefined();
  expect(reports(erasing(disk("/dev/sda", true)), "erased")).toMatchObject({ to: "retired" });
  const again = reports(erasing(disk("/dev/sda", false)), "disk_erased", { disk: disk("/dev/sda", true) });
  expect(again).toMatchObject({ to: "deprovisioning", facts: { erasedDisks: [disk("/dev/sda", true)] } });
  const full = Array.from({ length: MOST_DISKS }, (_, index) => disk(`/dev/sd${index}`, true));
  expect(reports(erasing(...full), "disk_erased", { disk: disk("/dev/sda", true) })?.facts).toEqual({});
});

describe("failures", () => {
  test("of which the third is the last, by the clock as by report", () => {
    const timedOut = (installAttempts: number) =>
      follow(installLifecycle, install("installing", { facts: facts({ installAttempts }) }), {
        owner: "handler",
        name: "timed_out",
        message: "not complete within 1h",
      });
    expect([0, 1, 2].map((failures) => timedOut(failures)?.to)).toEqual(["installing", "installing", "install_failed"]);
    expect(MAX_INSTALL_ATTEMPTS).toBe(3);
  });

  test("are forgotten when an operator resets", () => {
    const failed = install("install_failed", {
      facts: facts({ installAttempts: 3, lastInstallError: "Disk not found" }),
    });
    expect(followOrRefuse(installLifecycle, failed, { owner: "caller", name: "reset" })).toMatchObject({
      to: "pending",
      facts: { installAttempts: 0, lastInstallError: null, attemptFailed: false, progress: null },
    });
  });

  test("end with the next attempt when the script is handed out again", () => {
    const failed = install("installing", { facts: facts({ installAttempts: 1, attemptFailed: true }) });
    const move = follow(installLifecycle, failed, { owner: "other", name: "script_handed_out", data: { now: NOW } });
    expect(move).toMatchObject({ to: "installing", facts: { attemptFailed: false, attemptStartedAt: NOW } });
    expect(move?.facts).not.toHaveProperty("installAttempts");
  });
});

test("a workflow that leads to active promotes what it installed, and nothing that it is assigned to later", () => {
  const complete = reports(install("installing", { promotesWhenComplete: true }), "complete");
  expect(complete).toMatchObject({ to: "installed", carried: { promotes: true } });
  expect(
    decide(installLifecycle, install("installed", { state: { name: "installed", ...complete?.carried } })),
  ).toMatchObject({ kind: "move", move: { to: "active" } });
  expect(decide(installLifecycle, install("installed", { promotesWhenComplete: true }))).toEqual({ kind: "handle" });
});

describe("a run that installs through a node", () => {
  const ordered = facts({ orderedBy: "run-1", orderId: "o1", installAttempts: 1 });
  const ends = (state: InstallState, given = ordered) =>
    follow(installLifecycle, install(state, { facts: given }), { owner: "other", name: "run_ended", message: "why" });

  test.each(["pending", "installing"] as const)("takes it out of %s when it ends, and leaves its count", (state) => {
    expect(ends(state)).toMatchObject({
      to: "install_failed",
      facts: { orderedBy: null, lastInstallError: "why", installAttempts: 1 },
    });
  });

  test.each(["install_failed", "installed", "active"] as const)("only lets go of what is %s", (state) => {
    expect(ends(state)).toMatchObject({ to: state, facts: { orderedBy: null } });
  });

  test.each(INSTALL_STATES)("leaves what people have in %s alone", (state) => {
    expect(ends(state, facts())).toBeUndefined();
  });

  test("knows by the token of the boot who said that it is complete", () => {
    const complete = (data?: JsonObject) => reports(install("installing"), "complete", data)?.facts.tokenShown;
    expect([complete({ token_shown: true }), complete({ token_shown: false }), complete()]).toEqual([
      true,
      false,
      false,
    ]);
    const byHand = followOrRefuse(installLifecycle, install("installing"), { owner: "caller", name: "complete" });
    expect(byHand.facts).toMatchObject({ tokenShown: false });
  });
});

describe("a node that migrates", () => {
  const migrating = (state: string | undefined) =>
    install("migrating", {
      state: { name: "migrating", replacement: "m-2" },
      related: { replacement: state === undefined ? null : { kind: "install", id: "m-2", state } },
    });
  const look = (state: string | undefined) =>
    installHandlers.migrating(migrating(state), { clock: systemClock, installTimeout: hours(1) });

  test("is done when its replacement is active", async () => {
    expect(await look("active")).toMatchObject({ type: "happened", event: "replacement_proven" });
  });

  test.each(["pending", "install_failed", "retired", undefined])(
    "waits while that is %s, and says so",
    async (state) => {
      expect(await look(state)).toMatchObject({
        type: "waiting",
        reason: `waiting for m-2 to be active: it is ${state ?? "gone"}`,
      });
    },
  );
});

test("erased disks add up, each once", () => {
  const disk = { disk: "/dev/nvme0n1", serial: "S1", method: "nvme format", verified: true };
  const before = install("deprovisioning", { facts: facts({ erasedDisks: [{ ...disk, verified: false }] }) });
  expect(reports(before, "disk_erased", { disk })).toMatchObject({
    to: "deprovisioning",
    facts: { erasedDisks: [disk] },
  });
});
