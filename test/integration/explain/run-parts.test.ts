import { describe, expect, test } from "vitest";
import { type ExplainResponse, ExplainService } from "../../../contract/millwright/v1/explain_pb.js";
import { registerMachine } from "../../../src/services/machine/machines.ts";
import { eventually } from "../../support/eventually.ts";
import { checkCommand } from "../../support/explain-bench.ts";
import { addRig, createRigTables } from "../../support/rigs/rig.ts";
import { type RigEngine, rigStores, startRigEngine, startRigRun } from "../../support/rigs/rig-engine.ts";
import { type RigSurface, startRigSurface } from "../../support/rigs/rig-surface.ts";
import { rigSteps } from "../../support/rigs/steps.ts";
import { tester } from "../../support/run-bench.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";

/** Runs that start others, and what they work on: each is explained by whoever keeps it waiting, or has failed it. */
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

const set = (gadgets: readonly string[], change: string) =>
  surface.db.query(`update gadget_world set ${change} where id = any($1)`, [gadgets]);
const childOn = async (gadget: string) => {
  const [row] = await surface.db.query<{ id: string }>("select id from runs where target_id = $1", [gadget]);
  return row?.id ?? "";
};

/** Explains until it is as expected, and checks every command that is suggested on the way. */
const explained = (kind: string, id: string, isIt: (explanation: ExplainResponse) => boolean) => {
  let last: ExplainResponse | undefined;
  return eventually(
    async () => {
      last = await surface.client(ExplainService).explain({ kind, id });
      for (const { command } of last.nextCommands) await checkCommand(command);
      return isIt(last) && last;
    },
    {
      what: `${kind} ${id} is explained`,
      within: 20_000,
      seen: () => JSON.stringify(last, (_, value) => (typeof value === "bigint" ? Number(value) : value), 1),
    },
  );
};
const commandsOf = ({ nextCommands }: ExplainResponse) => nextCommands.map(({ command }) => command);

describe("a run that waits for runs that it has started", () => {
  test("names them, with the reason of the first; they name it; and so do the things that they work on", async () => {
    const gadgets = await addRig(surface.db, rigStores, "rig-1", 3);
    const [held = ""] = gadgets;
    await set([held], "held = true");
    const runId = await startRigRun(surface.db, "rig-1", ["poke_all"]);
    const isHeld = ({ waitingFor }: ExplainResponse) => waitingFor.some((text) => text.includes("2 of 3 succeeded"));
    const ofParent = await explained("run", runId, isHeld);
    const child = await childOn(held);
    const reason = `run ${child} on gadget ${held} carries out step poke`;
    expect(ofParent.headline).toBe(
      `run ${runId} on rig rig-1 carries out step poke_all, and waits for the run that it has started: ${reason}`,
    );
    expect(ofParent.waitingFor[0]).toBe(reason);
    expect(ofParent.doing).toBe("step 1 of 1, poke_all: waiting for the runs that it has started");
    expect(commandsOf(ofParent)[0]).toBe(`millwright explain run ${child}`);

    const ofChild = await explained("run", child, ({ waitingFor }) => waitingFor.includes("it is held"));
    expect(ofChild.headline).toBe(`run ${child} on gadget ${held} for run ${runId} carries out step poke`);
    expect(commandsOf(ofChild)).toContain(`millwright explain run ${runId}`);

    const ofGadget = await explained("gadget", held, () => true);
    expect(ofGadget.headline).toBe(`gadget ${held} is fitted: ${ofChild.headline}`);
    const ofRig = await explained("rig", "rig-1", () => true);
    expect(ofRig.headline).toBe(`rig rig-1 is working: ${ofParent.headline}`);
    await set([held], "held = false");
    const after = await explained("run", runId, ({ headline }) => headline.includes("SUCCEEDED"));
    expect(after.headline).toBe(`run ${runId} on rig rig-1 SUCCEEDED: every step was proved`);
    expect(commandsOf(await explained("gadget", held, () => true))[0]).toBe(`millwright history gadget ${held}`);
  });

  test("names the first few of many, and where the others are listed", async () => {
    const gadgets = await addRig(surface.db, rigStores, "rig-2", 9);
    await set(gadgets, "held = true");
    const runId = await startRigRun(surface.db, "rig-2", ["poke_together"]);
    const { headline, waitingFor } = await explained("run", runId, (each) => each.waitingFor.length > 5);
    expect(headline).toContain("waits for 9 runs that it has started, such as this one: run run-");
    expect(waitingFor.slice(0, 5).every((text) => /^run run-\S+ on gadget rig-2-g\d/.test(text))).toBe(true);
    expect(waitingFor[5]).toBe(`4 more: millwright run show ${runId} lists all`);
    await set(gadgets, "held = false");
    await explained("run", runId, (each) => each.headline.includes("SUCCEEDED"));
  });
});

test("a run that failed by another leads to that one, whose failure is the one to put right", async () => {
  const gadgets = await addRig(surface.db, rigStores, "rig-3", 3);
  const [, refusing = ""] = gadgets;
  await set([refusing], "refuses = true");
  const runId = await startRigRun(surface.db, "rig-3", ["poke_all"]);
  const explanation = await explained("run", runId, ({ headline }) => headline.includes("FAILED"));
  const child = await childOn(refusing);
  expect(commandsOf(explanation)[0]).toBe(`millwright explain run ${child}`);
  expect(explanation.lastFailure).toMatchObject({ runId: child, step: "poke", message: "poke: it refuses" });
});

test("a machine on which a part of greater work is done is explained by that part", async () => {
  const machineId = await addMachine("m-1");
  const columns =
    "id, target_kind, target_id, parent_run_id, parent_step, parent_round, request_id, fingerprint, type, plan_id, plan, job_id, initiator, state";
  const plan = {
    planId: "rack/flash",
    displayName: "",
    steps: [{ name: "flash", kind: "flash", timeoutSeconds: 60, maxRetries: 0, payload: {} }],
  };
  await surface.db.execute(
    `insert into runs (${columns}) values ('run-part', 'machine', $1, 'run-rack', 'flash_all', 1, 'r', '', '', 'rack/flash', $2, 'j', 'run run-rack', 'PENDING')`,
    [machineId, JSON.stringify(plan)],
  );
  const { headline, nextCommands } = await surface.client(ExplainService).explain({ kind: "machine", id: machineId });
  expect(headline).toMatch(/^machine m-1 is FACTORY_READY: run run-part on machine m-1 for run run-rack is PENDING/);
  expect(nextCommands.map(({ command }) => command)).toContain("millwright explain run run-rack");
});

async function addMachine(id: string): Promise<string> {
  const nothing = {
    provider: "",
    serial: "",
    macAddresses: [],
    rack: "",
    slot: "",
    location: "",
    customerId: "",
    targetClusterRef: "",
    bmcEndpoint: "",
    bmcProtocol: "",
    bmcTlsTrust: "",
    sshEndpoint: "",
    sshHostKey: "",
    jumpHosts: [],
  };
  await registerMachine(surface.deps, tester, { id, labels: {}, spec: nothing });
  return id;
}
