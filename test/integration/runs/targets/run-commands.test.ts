import { expect, test } from "vitest";
import { runCli } from "../../../../src/cli/run-cli.ts";
import { createFakeTerminal } from "../../../support/cli/fake-terminal.ts";
import { eventually } from "../../../support/eventually.ts";
import { addRig, createRigTables } from "../../../support/rigs/rig.ts";
import { type RigEngine, rigStores, startRigEngine, startRigRun } from "../../../support/rigs/rig-engine.ts";
import { type RigSurface, startRigSurface } from "../../../support/rigs/rig-surface.ts";
import { rigSteps } from "../../../support/rigs/steps.ts";
import { afterAll, beforeAll } from "../../../support/second-try.ts";

/** `run watch` and `run cancel` against runs that have started others, carried out on PostgreSQL. */
let surface: RigSurface;
let engine: RigEngine;
beforeAll(async () => {
  surface = await startRigSurface({ stores: rigStores, steps: rigSteps });
  await createRigTables(surface.db);
  engine = await startRigEngine(surface.db);
});
afterAll(async () => {
  await engine.stop();
  await surface.close();
});

function start(...args: readonly string[]) {
  const terminal = createFakeTerminal();
  const ended = runCli(args, { version: "1", terminal, transport: surface.transport });
  return { terminal, ended };
}
const set = (gadgets: readonly string[], change: string) =>
  surface.db.query(`update gadget_world set ${change} where id = any($1)`, [gadgets]);
const begun = async (gadgets: readonly string[]) =>
  (await surface.db.query("select 1 from gadget_world where id = any($1) and pokes > 0", [gadgets])).length;

/** A run on a rig whose gadgets hold on to what is done to them. */
async function heldRun(rig: string, count: number) {
  const gadgets = await addRig(surface.db, rigStores, rig, count);
  await set(gadgets, "held = true");
  const runId = await startRigRun(surface.db, rig, ["poke_all"]);
  await eventually(async () => (await begun(gadgets)) === count, { what: "all are begun" });
  return { runId, gadgets };
}

test("watch shows what is active, each change of it, and children when asked", async () => {
  const { runId, gadgets } = await heldRun("rig-w", 2);
  const { terminal, ended } = start("run", "watch", "--children", "-o", "json");
  await terminal.printed('"target":{"kind":"gadget","id":"rig-w-g2"}');
  await terminal.printed(`"run_id":"${runId}"`);
  const ofParents = start("run", "watch", "--target", "rig/rig-w", "-o", "json");
  await ofParents.terminal.printed(runId);
  await set(gadgets, "held = false");
  await ofParents.terminal.printed('"phase":"SUCCEEDED"');
  for (const each of [terminal, ofParents.terminal]) each.interrupt();
  expect(await Promise.all([ended, ofParents.ended])).toEqual([130, 130]);
  const lines = ofParents.terminal.out().trimEnd().split("\n");
  expect(lines.map((line) => JSON.parse(line).run_id)).toEqual(lines.map(() => runId));
});

test.each([
  ["SUCCEEDED", "held = false", 0],
  ["FAILED", "refuses = true", 1],
])("watch of a run that %s ends with it", async (phase, change, code) => {
  const rig = `rig-${phase.toLowerCase()}`;
  const gadgets = await addRig(surface.db, rigStores, rig, 1);
  await set(gadgets, "held = true");
  if (code === 1) await set(gadgets, change);
  const runId = await startRigRun(surface.db, rig, ["poke_all"]);
  const { terminal, ended } = start("run", "watch", runId);
  await terminal.printed(runId);
  await set(gadgets, change);
  expect(await ended, terminal.err()).toBe(code);
  expect(terminal.out()).toContain(phase);
});

test("cancel of several says what becomes of their children, and of one that has ended why not", async () => {
  const first = await heldRun("rig-c1", 3);
  const second = await heldRun("rig-c2", 1);
  await addRig(surface.db, rigStores, "rig-c3", 1);
  const over = await startRigRun(surface.db, "rig-c3", ["poke_all"]);
  expect(await start("run", "watch", over).ended).toBe(0);
  const { terminal, ended } = start("run", "cancel", first.runId, over, second.runId);
  expect(await ended).toBe(4);
  expect(terminal.err()).toContain(
    `Canceling ${first.runId}: the 3 runs that it has started end first, undoing what was begun.`,
  );
  expect(terminal.err()).toContain(`Canceling ${second.runId}: the run that it has started ends first`);
  expect(terminal.err()).toContain(`error: run ${over} has already ended: it SUCCEEDED`);
  const phases = () =>
    surface.db.query<{ state: string }>(
      "select state from runs where $1 in (id, parent_run_id) or $2 in (id, parent_run_id)",
      [first.runId, second.runId],
    );
  await eventually(async () => (await phases()).every(({ state }) => state === "CANCELED"), {
    what: "all are canceled",
  });
  expect(await phases()).toHaveLength(6);
});
