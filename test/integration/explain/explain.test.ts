import { Code } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { ExplainService } from "../../../contract/millwright/v1/explain_pb.js";
import { CAUSES, type Cause, type CauseCode, PEERS, type Peer } from "../../../src/kernel/causes.ts";
import { causeDetails } from "../../../src/kernel/stored-cause.ts";
import { addExpectedPowerShelf } from "../../../src/services/expected-power-shelf/expected-power-shelves.ts";
import { machineRemedies } from "../../../src/services/explain/machine-remedies.ts";
import { createPowerShelf, setPowerShelfMaintenance } from "../../../src/services/power-shelf/power-shelves.ts";
import { append } from "../../../src/store/lifecycle/journal.ts";
import { lockThings } from "../../../src/store/lifecycle/locks.ts";
import { appendLogs } from "../../../src/store/run/logs.ts";
import { allStores } from "../../../src/wiring/things/all-things.ts";
import { recordClaim } from "../../support/claims.ts";
import { dumpDatabase } from "../../support/database-dump.ts";
import { carryOut, checkCommand, explainOn } from "../../support/explain-bench.ts";
import { type RunSurface, startRunSurface, tester } from "../../support/run-bench.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";
import { refusal } from "../api/forge-under-test.ts";

/** With nobody who works on anything: each thing stays as it was put, and what `explain` says of it is seen at leisure. */
let surface: RunSurface;
beforeAll(async () => {
  surface = await startRunSurface({ capabilitiesOf: () => new Set(["reset", "system", "exec"]) });
});
afterAll(() => surface.close());

let count = 0;
/** Of a MAC address. */
const lastBytes = (number: number) => number.toString(16).padStart(4, "0").replace(/^../, "$&:");
const machine = () => surface.addMachine(`m-${++count}`);
const set = (table: string, id: string, values: Readonly<Record<string, unknown>>) => {
  const columns = Object.keys(values);
  const assignments = columns.map((column, at) => `${column} = $${at + 2}`).join(", ");
  return surface.db.execute(`update ${table} set ${assignments} where id = $1`, [id, ...Object.values(values)]);
};
const silent = (at: Peer, progress?: string): Cause => ({
  code: "unreachable",
  facts: { at, ...(progress !== undefined && { progress }) },
});
const ago = (seconds: number) => new Date(Date.now() - seconds * 1_000);

async function run(machineId: string, requestId = "r"): Promise<string> {
  return (await surface.runs.startRun({ requestId, machineId, type: "REBOOT" })).runId;
}

const VISIT = {
  name: "reboot",
  kind: "reboot",
  state: "RUNNING",
  retryCount: 0,
  startedAt: ago(60),
  finishedAt: null,
  message: "",
  carriedOver: false,
  nextAttemptAt: null,
  attemptStartedAt: ago(60),
  evidence: {},
  toTakeBack: null,
  resumed: false,
  needsPerson: false,
};

/** A run that is at work on its only step, in the way that the visit says. */
async function running(visit: object = {}, columns: Readonly<Record<string, unknown>> = {}): Promise<string> {
  const id = await run(await machine());
  const facts = { steps: [{ ...VISIT, ...visit }], startedAt: ago(60) };
  await set("runs", id, { state: "RUNNING", facts, ...columns });
  await set("work", id, { wake_at: new Date(Date.now() + 60_000) });
  return id;
}

/** Without a cause: as an older version has kept it. */
async function failed(machineId: string, message: string, cause?: Cause, requestId = "r"): Promise<string> {
  const id = await run(machineId, requestId);
  const steps = [{ ...VISIT, state: "FAILED", retryCount: 2, message, cause, finishedAt: ago(10) }];
  const details = cause ? causeDetails(cause) : {};
  const error = { code: "EXECUTION_FAILED", message: `reboot: ${message}`, retryable: true, details };
  await set("runs", id, { state: "FAILED", facts: { steps, startedAt: ago(60), finishedAt: ago(10), error } });
  await surface.db.execute("update machines set active_run_id = null, last_run_id = $2 where id = $1", [machineId, id]);
  return id;
}

async function shelf(columns: Readonly<Record<string, unknown>> = {}): Promise<string> {
  const id = `ps-${++count}`;
  await createPowerShelf(surface.deps, tester, {
    id,
    name: id,
    rackId: undefined,
    bmcEndpoint: `10.0.0.${count}`,
    bmcMac: `02:00:5e:10:${lastBytes(count)}`,
    bmcUsername: "admin",
    bmcPassword: "password",
    bmcScheme: "",
    trust: "pin",
    requestId: undefined,
  });
  await set("power_shelves", id, { state: "ready", ...columns });
  return id;
}

const claim = (thing: readonly [string, string], holder: readonly [string, string], reason = "maintenance") =>
  surface.db.transaction(async (tx) => {
    const key = ([kind, id]: readonly [string, string]) => ({ kind, id });
    await lockThings(tx, [key(thing)]);
    await recordClaim(tx, key(thing), key(holder), reason);
  });

const explain = (kind: string, id: string) => explainOn(surface, kind, id);
const first = async (kind: string, id: string) => (await explain(kind, id)).nextCommands[0]?.command;

describe("Explain refuses", () => {
  const ask = (kind: string, id: string) => refusal(surface.client(ExplainService).explain({ kind, id }));

  test("a kind that this server does not have, naming those that it has", async () => {
    const answer = await ask("toaster", "t-1");
    expect(answer).toMatchObject({ code: Code.InvalidArgument, field: "kind" });
    expect(answer.message).toContain("power_shelf");
  });

  test("an empty id", async () => {
    expect(await ask("machine", "")).toMatchObject({ code: Code.InvalidArgument, field: "id" });
  });

  test.each([...allStores.keys()])("a %s that does not exist", async (kind) => {
    const answer = await ask(kind, "nobody-here");
    expect(answer).toMatchObject({ code: Code.NotFound });
    // The history of what was never there is no help. Of reviews there is one at a time, that a command of its own shows.
    expect(answer.next).toMatch(kind === "restore_review" ? /^millwright restore review$/ : / list( --|$)/);
  });
});

test("explaining changes nothing, to the byte", async () => {
  const machineId = await machine();
  const ids = [
    ["machine", machineId],
    ["run", await run(machineId)],
    ["power_shelf", await shelf()],
  ] as const;
  const before = await dumpDatabase(surface.db);
  for (const [kind, id] of ids) await explain(kind, id);
  expect(await dumpDatabase(surface.db)).toEqual(before);
});

describe("a run", () => {
  test("that nobody has taken up yet is about to begin", async () => {
    const id = await run(await machine());
    expect(await explain("run", id)).toMatchObject({
      headline: expect.stringMatching(/PENDING: about to begin$/),
      claims: [],
    });
  });

  test("that no server takes up says so, and since when", async () => {
    const id = await run(await machine());
    await set("work", id, { wake_at: "2026-01-01T00:00:00Z" });
    const { headline, nextCommands } = await explain("run", id);
    expect(headline).toContain(
      "waits for a server that does the work: its pass has been due since 2026-01-01T00:00:00Z",
    );
    expect(nextCommands[0]?.command).toBe("millwright system");
  });

  test("that nobody is going to look at waits for the sweep", async () => {
    const id = await run(await machine());
    await set("work", id, { wake_at: "infinity" });
    expect((await explain("run", id)).headline).toContain("waits for the safety sweep");
  });

  test("whose server is not heard of any more waits for another", async () => {
    const id = await running({}, {});
    await set("work", id, { lease_until: "2026-01-01T00:00:00Z", lease_owner: "replica-7" });
    expect((await explain("run", id)).headline).toMatch(
      /another server to take over: replica-7 .*has been silent since 2026/,
    );
  });

  test("whose outcome cannot be kept says what the database says, and when it is tried again", async () => {
    const id = await running();
    await set("work", id, {
      failures: 3,
      last_error: "its outcome cannot be written: value too long",
      last_cause: "quarantined",
    });
    const { headline, waitingFor, lastFailure } = await explain("run", id);
    expect(headline).toContain("what was worked out cannot be kept");
    expect(waitingFor).toContainEqual(expect.stringMatching(/next attempt at .*, after 3 failed attempts/));
    expect(lastFailure).toMatchObject({ attempt: 3, message: expect.stringContaining("value too long") });
  });

  test("between two attempts tells when the next one is, and what the last one failed with", async () => {
    const nextAttemptAt = new Date(Date.now() + 60_000);
    const id = await running({
      retryCount: 1,
      nextAttemptAt,
      message: "BMC 10.0.0.1:443 cannot be reached: ECONNREFUSED",
      cause: silent("bmc"),
    });
    const { headline, waitingFor, lastFailure, nextCommands } = await explain("run", id);
    expect(headline).toMatch(/pauses before attempt 2 of step reboot, but its BMC cannot be reached$/);
    expect(waitingFor[0]).toBe(`attempt 2 at ${nextAttemptAt.toISOString().replace(/\.\d+Z/, "Z")}`);
    expect(lastFailure).toMatchObject({
      runId: id,
      step: "reboot",
      attempt: 1,
      message: expect.stringContaining("ECONNREFUSED"),
    });
    expect(nextCommands.map(({ command }) => command)).toContain(`millwright run cancel ${id}`);
  });

  test("that uploads tells how far it is", async () => {
    const message = "sent 3.0 MB of 40.0 MB (7 %)";
    const id = await running({ actingAt: ago(20), streamedAt: ago(5), message });
    const { doing, waitingFor } = await explain("run", id);
    expect(doing).toBe("step 1 of 1, reboot: sending");
    expect(waitingFor[0]).toContain(message);
  });

  test("that waits for a proof tells for which, and when its time is up", async () => {
    const id = await running({
      actedAt: ago(5),
      message: "waiting for the system to answer (the BMC says: booting)",
      cause: silent("ssh", "booting"),
    });
    const { doing, waitingFor, since } = await explain("run", id);
    expect(doing).toBe("step 1 of 1, reboot: waiting for its proof");
    expect(waitingFor).toEqual([
      expect.stringContaining("waiting for the system"),
      expect.stringMatching(/timeout at .* tried again/),
    ]);
    expect(since).toBeDefined();
  });

  test("that is being canceled says so, and that it ends by itself", async () => {
    const id = await running();
    await surface.runs.cancelRun({ runId: id });
    expect(await explain("run", id)).toMatchObject({
      headline: expect.stringContaining("is being canceled"),
      doing: "undoing what can be undone",
    });
    expect(await first("run", id)).toBe(`millwright run logs ${id} --follow`);
  });

  test("that was canceled can be resumed or done again", async () => {
    const id = await running();
    await set("runs", id, { state: "CANCELED" });
    expect(await first("run", id)).toBe(`millwright run resume ${id}`);
  });

  test("that was canceled names how its machine is given back, where it is to be and as it would be refused otherwise", async () => {
    const machineId = await machine();
    const id = await failed(machineId, "canceled");
    await set("runs", id, { state: "CANCELED", facts: { steps: [], finishedAt: ago(10) } });
    const commands = async () => (await explain("run", id)).nextCommands.map(({ command }) => command);
    const giveBack = `millwright machine exit-maintenance ${machineId}`;
    await set("machines", machineId, { state: "READY" });
    expect((await commands()).filter((command) => command.startsWith(giveBack))).toEqual([]);
    await set("machines", machineId, { state: "MAINTENANCE", conditions: "[]" });
    expect(await commands()).toContain(giveBack);
    const at = new Date().toISOString();
    const failing = { type: "NeedsIntervention", status: true, reason: "RunFailed", message: "", last_transition: at };
    await set("machines", machineId, { conditions: JSON.stringify([failing]) });
    expect(await commands()).toContain(`${giveBack} --acknowledge --comment <text>`);
  });

  test("that FAILED tells step, attempt and cause, and waits for a person", async () => {
    const id = await failed(await machine(), "wrong credentials: BMC 10.0.0.1:443 does not accept user admin", {
      code: "credentials_rejected",
      facts: { at: "bmc" },
    });
    const { headline, waitingFor, lastFailure, nextCommands } = await explain("run", id);
    expect(headline).toMatch(/FAILED in step reboot: its BMC rejects the credentials$/);
    expect(waitingFor).toEqual(["a person: it does nothing more by itself"]);
    expect(lastFailure).toMatchObject({ runId: id, step: "reboot", attempt: 2 });
    expect(nextCommands[0]?.command).toContain("machine set-credentials");
    expect(nextCommands[1]?.command).toBe(`millwright run retry ${id}`);
  });

  test("whose leftovers nobody can undo tells how to begin without, and only then", async () => {
    const machineId = await machine();
    const id = await failed(machineId, "what step reboot of the previous attempt left is not undone within 1m");
    const anew = `millwright run start --machine ${machineId} --type REBOOT`;
    const commands = async () => (await explain("run", id)).nextCommands.map(({ command }) => command);
    expect(await commands()).not.toContain(anew);
    const facts = JSON.stringify({ takeBackFirst: { step: "reboot", evidence: {} } });
    await surface.db.execute("update runs set facts = facts || $2::jsonb where id = $1", [id, facts]);
    expect(await commands()).toContain(anew);
    await carryOut(surface, anew);
  });

  test("whose script failed tells what that said last", async () => {
    const id = await failed(await machine(), "check.sh ended with exit code 1", { code: "script_failed" });
    const line = (text: string, stream: "stdout" | "stderr") => ({
      at: new Date().toISOString(),
      step: "reboot",
      stream,
      text,
    });
    const lines = [
      { ...line("", "stderr"), text: Buffer.from("the node is not cordoned:\ndrain it first\n") },
      line("looking\n", "stdout"),
      line("step reboot failed: check.sh ended with exit code 1\n", "stderr"),
    ];
    await surface.db.transaction((tx) => appendLogs(tx, [{ id, lines }]));
    const { lastFailure } = await explain("run", id);
    expect(lastFailure?.message).toBe("reboot: check.sh ended with exit code 1; it said: drain it first");
  });

  const said = (id: string, text: string) =>
    surface.db.transaction((tx) =>
      appendLogs(tx, [
        {
          id,
          lines: [{ at: new Date().toISOString(), step: "reboot", stream: "stderr" as const, text: Buffer.from(text) }],
        },
      ]),
    );

  test("whose machine is powered off, and does not answer therefore, begins with what switches it on", async () => {
    const machineId = await machine();
    const id = await failed(
      machineId,
      "not done within 2m: waiting for the machine to answer about check.sh",
      silent("ssh"),
    );
    const first = async () => (await explain("run", id)).nextCommands[0]?.command;
    expect(await first()).toBe(`millwright run retry ${id}`);
    await set("machines", machineId, { facts: { powerState: "off" } });
    expect(await first()).toBe(`millwright run start --machine ${machineId} --type REBOOT`);
  });

  describe("whose system hangs while its BMC answers", () => {
    const anew = (machineId: string, what: string) =>
      `millwright run start --machine ${machineId} ${what} --param force=true`;
    const IN_VAIN = "not done within 5m: the BMC reports no reset yet";
    const NO_EFFECT: Cause = { code: "no_effect", facts: { at: "bmc" } };
    const waiting = (said: string) => `not done within 5m: waiting for the system to answer (${said})`;
    const BOUNDS = { timeoutSeconds: 60, maxRetries: 0 };
    const condition = (type: string, status: boolean, reason: string, message = "") => ({
      type,
      status,
      reason,
      message,
      last_transition: ago(1),
    });
    const SILENT = condition("Reachable", false, "NoAnswer", "SSH 10.0.0.2:22 cannot be reached: timed out");
    const SEEN = condition("BMCReachable", true, "BmcAnswers");

    test.each<[message: string, cause: Cause]>([
      [IN_VAIN, NO_EFFECT],
      [waiting("the BMC says: running"), silent("ssh", "running")],
    ])("is restarted by force first, since retrying is as gentle as before: %s", async (message, cause) => {
      const machineId = await machine();
      const id = await failed(machineId, message, cause);
      const commands = (await explain("run", id)).nextCommands.map(({ command }) => command);
      expect(commands.slice(0, 2)).toEqual([anew(machineId, "--type REBOOT"), `millwright run retry ${id}`]);
      await carryOut(surface, commands[0] ?? "");
    });

    test.each<[what: string, message: string, cause: Cause, isNamed: boolean]>([
      ["does not go down", IN_VAIN, NO_EFFECT, true],
      ["is not reached", waiting("the BMC says: running"), silent("ssh", "running"), false],
    ])(
      "is not cut off by the first command where its node is heard of, and it only %s",
      async (_, message, cause, isNamed) => {
        const machineId = await machine();
        const id = await failed(machineId, message, cause);
        const conditions = [SILENT, SEEN, condition("InCustomerCluster", true, "NodeReady")];
        await set("machines", machineId, { facts: { powerState: "on" }, conditions: JSON.stringify(conditions) });
        const commands = (await explain("run", id)).nextCommands.map(({ command }) => command);
        expect(commands[0]).toBe(`millwright run retry ${id}`);
        expect(commands.includes(anew(machineId, "--type REBOOT"))).toBe(isNamed);
      },
    );

    test.each<[what: string, message: string, cause: Cause, force: boolean]>([
      ["is forced already", IN_VAIN, NO_EFFECT, true],
      ["is coming up", waiting("the BMC says: booting"), silent("ssh", "booting"), false],
      ["has a silent BMC", waiting("BMC x cannot be reached"), silent("ssh"), false],
    ])("is retried where the restart %s", async (_, message, cause, force) => {
      const id = await failed(await machine(), message, cause);
      const steps = [{ name: "reboot", kind: "reboot", timeoutSeconds: 300, maxRetries: 1, payload: { force } }];
      await set("runs", id, { plan: { planId: "plan/reboot", displayName: "", steps } });
      expect(await first("run", id)).toBe(`millwright run retry ${id}`);
    });

    test("begins again by force only where nothing before the restart needs the system, or would be done again", async () => {
      const machineId = await machine();
      const id = await failed(machineId, IN_VAIN, NO_EFFECT);
      const planOf = (before: string) => ({
        planId: "plan/repave-join",
        displayName: "",
        steps: [
          { ...BOUNDS, name: "before", kind: before, payload: {} },
          { ...BOUNDS, name: "reboot", kind: "reboot", payload: { force: false, mode: "bmc" } },
        ],
      });
      await set("runs", id, { type: "REPAVE", plan: planOf("netboot") });
      expect(await first("run", id)).toBe(anew(machineId, "--type REPAVE"));
      for (const kind of ["ssh", "repave"]) {
        await set("runs", id, { plan: planOf(kind) });
        expect(await first("run", id)).toBe(anew(machineId, "--type REBOOT"));
      }
    });

    test("is reset first where what was left on it blocks every attempt, since nobody answers to take it back", async () => {
      const machineId = await machine();
      const left = "join: a join may go on; undoing it failed: SSH 10.0.0.2:22 cannot be reached: timed out";
      const what = "what step join of the previous attempt left is not undone within 5m";
      const id = await failed(machineId, `${what}: ${left}`, silent("ssh"));
      const blocked = { steps: [], takeBackFirst: { step: "join", evidence: {} } };
      await surface.db.execute("update runs set type = 'REPAVE', facts = facts || $2::jsonb where id = $1", [
        id,
        JSON.stringify(blocked),
      ]);
      const commands = async () => (await explain("run", id)).nextCommands.map(({ command }) => command);
      expect(await commands()).toContain(anew(machineId, "--type REBOOT"));
      const conditions = JSON.stringify([SILENT, SEEN]);
      await set("machines", machineId, { facts: { powerState: "on" }, conditions });
      expect((await commands()).slice(0, 2)).toEqual([anew(machineId, "--type REBOOT"), `millwright run retry ${id}`]);
    });

    test("is reset first where a pass has found it so, named where nobody has looked, and neither where its node lives", async () => {
      const machineId = await machine();
      const id = await failed(
        machineId,
        "not done within 2m: waiting for the machine to answer about check.sh",
        silent("ssh"),
      );
      const steps = [{ ...VISIT, name: "check", kind: "ssh", state: "FAILED" }];
      await surface.db.execute("update runs set facts = facts || $2::jsonb where id = $1", [
        id,
        JSON.stringify({ steps }),
      ]);
      const commands = async () => (await explain("run", id)).nextCommands.map(({ command }) => command);
      const reset = anew(machineId, "--type REBOOT");
      const look = (...conditions: object[]) =>
        set("machines", machineId, { facts: { powerState: "on" }, conditions: JSON.stringify(conditions) });
      expect((await commands()).indexOf(reset)).toBeGreaterThan(0);
      await look(SILENT, SEEN);
      expect((await commands())[0]).toBe(reset);
      await look(SILENT, SEEN, condition("InCustomerCluster", true, "NodeReady"));
      expect(await commands()).not.toContain(reset);
      await look(SILENT, condition("BMCReachable", false, "NoAnswer", "BMC 10.0.0.1:443 cannot be reached"));
      expect(await commands()).not.toContain(reset);
      await look(condition("Reachable", true, "SshAnswers"), SEEN);
      expect(await commands()).not.toContain(reset);
    });
  });

  test("whose script is another one since is told to take it, since what goes on by the one of then is refused", async () => {
    const was = "when this run was started; start a new run";
    const id = await failed(await machine(), `script check.sh is sha256:aa now, but was sha256:bb ${was}`, {
      code: "script_changed",
      facts: { script: "check.sh" },
    });
    const { headline, nextCommands } = await explain("run", id);
    expect(headline).toMatch(/FAILED in step reboot: a script is another one now than when the run was started$/);
    const commands = nextCommands.map(({ command }) => command.replace("millwright ", ""));
    expect(commands.slice(0, 2)).toEqual([`run retry ${id} --new-scripts`, `run rerun ${id}`]);
    expect(commands).not.toContain(`run resume ${id}`);
    expect(commands).not.toContain(`run retry ${id}`);
  });

  test("whose node was not drained sends to where it is drained, in the order in which that is possible", async () => {
    const machineId = await machine();
    const id = await failed(machineId, "drain_check.sh ended with exit code 1", {
      code: "not_drained",
      facts: { script: "drain_check.sh", exit_code: 1 },
    });
    await said(id, "node n-1 is not cordoned: have it drained\n");
    const commands = async () => {
      const { headline, nextCommands } = await explain("run", id);
      expect(headline).toMatch(/FAILED in step reboot: its node is not drained$/);
      return nextCommands.map(({ command }) => command.replace("millwright ", ""));
    };
    await set("machines", machineId, { state: "IN_SERVICE" });
    expect((await commands()).slice(0, 2)).toEqual([`machine enter-maintenance ${machineId}`, `run retry ${id}`]);
    const condition = (type: string) => ({ type, status: true, reason: "X", message: "", last_transition: ago(1) });
    const needs = JSON.stringify([condition("NeedsIntervention")]);
    await set("machines", machineId, { state: "MAINTENANCE", conditions: needs });
    expect((await commands()).slice(0, 3)).toEqual([
      `machine exit-maintenance ${machineId} --acknowledge --comment <text>`,
      `machine enter-maintenance ${machineId}`,
      `run retry ${id}`,
    ]);
    await set("machines", machineId, { conditions: "[]", state_data: { drain: true } });
    expect((await commands()).slice(0, 2)).toEqual([`machine show ${machineId}`, `run retry ${id}`]);
    await set("machines", machineId, { conditions: JSON.stringify([condition("Drained")]) });
    expect((await commands())[0]).toBe(`run retry ${id}`);
  });

  test("whose settings netplan refused tells what netplan said, and is started with others rather than retried", async () => {
    const machineId = await machine();
    const id = await failed(
      machineId,
      "the network change was reverted: it could not be applied, or the machine was not reached afterwards",
      { code: "net_refused" },
    );
    await set("runs", id, { params: { ssh_address: "10.0.0.9", netplan: "network: {}" } });
    await said(
      id,
      "/etc/netplan/90.yaml:1:9: Error in network definition: malformed address 'nowhere'\n   addresses:\n   ^\n",
    );
    const { headline, lastFailure, nextCommands } = await explain("run", id);
    expect(headline).toMatch(/netplan refuses the settings, so they were undone$/);
    expect(lastFailure?.message).toContain("it said: /etc/netplan/90.yaml:1:9: Error in network definition: malformed");
    expect(nextCommands.map(({ command }) => command).slice(0, 2)).toEqual([
      `millwright run start --machine ${machineId} --type REBOOT --param netplan=<settings> --param ssh_address=10.0.0.9`,
      `millwright run retry ${id}`,
    ]);
  });

  test("whose script says what we would say ourselves is not mistaken for it", async () => {
    const id = await failed(await machine(), "check.sh ended with exit code 1", { code: "script_failed" });
    await said(id, "wrong credentials: BMC 10.0.0.1 does not accept them\n");
    expect((await explain("run", id)).headline).toMatch(/a script failed on the machine$/);
  });

  test("whose BMC is silent says so, whatever its step waits for", async () => {
    const id = await running({ message: "installing" });
    const [{ machine_id: machineId } = { machine_id: "" }] = await surface.db.query<{ machine_id: string }>(
      "select machine_id from runs where id = $1",
      [id],
    );
    const silentBmc = (await explain("run", id)).waitingFor.filter((text) => text.includes("BMC"));
    expect(silentBmc).toEqual([]);
    const message = "BMC 10.0.0.1:443 cannot be reached: timed out";
    const condition = { type: "BMCReachable", status: false, reason: "NoAnswer", message, last_transition: ago(90) };
    await set("machines", machineId, { conditions: JSON.stringify([condition]) });
    expect((await explain("run", id)).waitingFor).toEqual([
      "installing",
      expect.stringContaining("its timeout"),
      expect.stringMatching(new RegExp(`^the BMC of machine ${machineId}, which is not reached since .*: ${message}$`)),
    ]);
  });

  test("that has begun none of its steps yet names the first", async () => {
    const id = await running();
    await set("runs", id, { facts: { steps: [], startedAt: ago(60) } });
    const { headline, doing } = await explain("run", id);
    expect(headline).toMatch(/is RUNNING, about to begin step reboot$/);
    expect(doing).toBe("asking the machine how it is, before step reboot");
  });

  test("that a person took over tells who, and is resumed rather than retried", async () => {
    const id = await failed(await machine(), "kubeadm join ended with exit code 1", { code: "join_failed" });
    await set("runs", id, { manual_at: new Date(), manual_by: "ada", manual_comment: "swapping the disk" });
    expect((await explain("run", id)).headline).toContain("ada took it over: swapping the disk");
    expect(await first("run", id)).toBe(`millwright run resume ${id}`);
  });

  test("that another one of the machine came after sends there", async () => {
    const machineId = await machine();
    const old = await failed(machineId, "kubeadm join ended with exit code 1", { code: "join_failed" });
    const later = await run(machineId, "later");
    expect(await first("run", old)).toBe(`millwright explain run ${later}`);
  });
});

describe("the claims in the way", () => {
  test("of a run are followed from holder to holder, each with what it does", async () => {
    const machineId = await machine();
    const [holder, wanted] = [await shelf(), await shelf()];
    const other = await running({ message: "waiting for the system to answer", cause: silent("ssh") });
    await claim(["machine", machineId], ["power_shelf", holder]);
    const id = await run(machineId);
    await claim(["machine", machineId], ["run", id], "RUNNING");
    await claim(["power_shelf", wanted], ["run", other], "RUNNING");
    await claim(["power_shelf", wanted], ["power_shelf", holder]);
    const { headline, claims: links, waitingFor, nextCommands } = await explain("run", id);
    expect(headline).toMatch(new RegExp(`is PENDING behind power_shelf ${holder}, which works on it \\(ready\\)$`));
    expect(links).toMatchObject([
      { thingKind: "machine", thingId: machineId, claim: { holderKind: "power_shelf", holderId: holder } },
      {
        thingKind: "power_shelf",
        thingId: wanted,
        claim: { holderKind: "run", holderId: other },
        reason: "works on it (RUNNING)",
      },
    ]);
    expect(waitingFor).toEqual([expect.stringContaining(holder), expect.stringContaining(`run ${other}`)]);
    expect(nextCommands[0]?.command).toBe(`millwright explain power_shelf ${holder}`);
    expect(await carryOut(surface, nextCommands[0]?.command ?? "")).toContain(`waits for run ${other}`);
  });

  test("include whoever is before it in line", async () => {
    const machineId = await machine();
    await claim(["machine", machineId], ["rack", "rack-1"]);
    await claim(["machine", machineId], ["workflow", "w-1"]);
    const id = await run(machineId);
    await claim(["machine", machineId], ["run", id], "RUNNING");
    const { claims: links } = await explain("run", id);
    expect(links.map(({ claim: link, reason }) => [link?.holderId, reason])).toEqual([
      ["rack-1", "works on it (maintenance)"],
      ["w-1", "is ahead of it in the queue (maintenance)"],
    ]);
  });

  test("are all named where one waits for more than a chain may have", async () => {
    const id = await run(await machine());
    for (let at = 0; at < 25; at += 1) {
      await claim(["switch", `s-${at}`], ["rack", `holder-${at}`]);
      await claim(["switch", `s-${at}`], ["run", id]);
    }
    const { claims: links, waitingFor } = await explain("run", id);
    expect(links).toHaveLength(25);
    expect(waitingFor).toHaveLength(25);
    expect(waitingFor[24]).toContain("rack holder-24");
  });

  test("end where they come round in a circle", async () => {
    const [one, two] = [await machine(), await machine()];
    const id = await run(one);
    await claim(["machine", one], ["rack", "rack-9"]);
    await claim(["machine", one], ["run", id]);
    await claim(["machine", two], ["run", id]);
    await claim(["machine", two], ["rack", "rack-9"]);
    expect((await explain("run", id)).claims.map(({ claim: link }) => link?.holderId)).toEqual(["rack-9"]);
  });

  test("of a shelf are told too", async () => {
    const id = await shelf();
    await claim(["power_shelf", id], ["rack", "rack-3"]);
    await claim(["power_shelf", id], ["power_shelf", id]);
    expect((await explain("power_shelf", id)).headline).toBe(`power shelf ${id} is ready, and waits for rack rack-3`);
  });
});

describe("a machine", () => {
  // biome-ignore format: a table is read by its columns
  test.each<[phase: string, command: string]>([
    ["FACTORY_READY", "machine accept"],
    ["READY",         "run list --machine"],
    ["IN_SERVICE",    "run list --machine"],
    ["MAINTENANCE",   "machine exit-maintenance"],
    ["RMA",           "machine return"],
    ["RETIRED",       "machine history"],
  ])("that is %s is told so, and its first command (%s) is accepted", async (phase, command) => {
    const id = await machine();
    await set("machines", id, { state: phase });
    const { headline, nextCommands } = await explain("machine", id);
    expect(headline).toBe(`machine ${id} is ${phase}; nothing is wrong`);
    expect(nextCommands[0]?.command).toBe(`millwright ${command} ${id}`);
    await carryOut(surface, nextCommands[0]?.command ?? "");
  });

  test.each([
    ["BMCReachable", false, "NoCredentials", "there are no credentials to sign in with"],
    ["NeedsIntervention", true, "RunFailed", "x"],
    ["Degraded", true, "Unhealthy", "a fan is broken"],
  ])("that is RETIRED needs nobody, whatever %s said last", async (type, status, reason, message) => {
    const id = await machine();
    if (reason === "RunFailed") await failed(id, "kubeadm join ended with exit code 1", { code: "join_failed" });
    const condition = { type, status, reason, message, last_transition: new Date().toISOString() };
    await set("machines", id, { state: "RETIRED", conditions: JSON.stringify([condition]) });
    const { headline, nextCommands } = await explain("machine", id);
    expect(headline).toBe(`machine ${id} is RETIRED; nothing is wrong`);
    expect(nextCommands.map(({ command }) => command)).toEqual([`millwright machine history ${id}`]);
  });

  test("with an active run is explained by it", async () => {
    const runId = await running({ message: "waiting for the system to answer", cause: silent("ssh") });
    const { machineId } = await surface.runs.getRun({ runId });
    const { headline, nextCommands } = await explain("machine", machineId);
    expect(headline).toMatch(new RegExp(`^machine ${machineId} is .*: run ${runId} .* carries out step reboot`));
    expect(nextCommands[0]?.command).toBe(`millwright run logs ${runId} --follow`);
  });

  test("that needs a person after a failed run tells why, what to do, and how to say that it was seen to", async () => {
    const id = await machine();
    const runId = await failed(id, "kubeadm join ended with exit code 1", { code: "join_failed" });
    const at = new Date().toISOString();
    const needs = { type: "NeedsIntervention", status: true, reason: "RunFailed", message: "x", last_transition: at };
    await set("machines", id, { state: "MAINTENANCE", conditions: JSON.stringify([needs]) });
    const { headline, lastFailure, nextCommands, waitingFor } = await explain("machine", id);
    expect(headline).toMatch(/is MAINTENANCE, and needs a person: run .* joining the cluster failed/);
    expect(waitingFor).toEqual(["a person who fixes the cause"]);
    expect(lastFailure).toMatchObject({ runId, step: "reboot" });
    const commands = nextCommands.map(({ command }) => command);
    expect(commands[0]).toBe(`millwright run retry ${runId}`);
    const acknowledge = commands.find((command) => command.includes("--acknowledge")) ?? "";
    await carryOut(surface, acknowledge, { "<text>": "seen-to" });
    expect((await explain("machine", id)).headline).toBe(`machine ${id} is READY; nothing is wrong`);
  });

  test("that a canceled run left in pieces tells what stayed, and is resumed before it is given back", async () => {
    const id = await machine();
    const runId = await failed(id, "canceled");
    const residue = ["pave: what was on the disk may be lost"];
    await set("runs", runId, { state: "CANCELED", facts: { steps: [], residue, finishedAt: ago(10) } });
    const at = new Date().toISOString();
    const silent = { type: "Reachable", status: false, reason: "NoAnswer", message: "no answer", last_transition: at };
    await set("machines", id, { state: "MAINTENANCE", facts: { residue }, conditions: JSON.stringify([silent]) });
    const { headline, nextCommands } = await explain("machine", id);
    expect(headline).toMatch(/is MAINTENANCE: run .* was CANCELED, and left behind: pave: what was on the disk/);
    expect(headline).toContain("not reached over SSH");
    expect(nextCommands[0]?.command).toBe(`millwright run resume ${runId}`);
  });

  test("on which an installation was begun and is not proven says so once it is back in service, and how it is installed", async () => {
    const id = await machine();
    const left = "repave: the installation of ubuntu may have begun: what was on the disk may be lost";
    const at = new Date().toISOString();
    const reason = "InstallationNotProven";
    const unproven = { type: "Provisioned", status: false, reason, message: left, last_transition: at };
    await set("machines", id, { state: "READY", facts: { residue: [left] }, conditions: JSON.stringify([unproven]) });
    const { headline, nextCommands } = await explain("machine", id);
    expect(headline).toBe(`machine ${id} is READY, and an installation was begun and is not proven: ${left}`);
    expect(nextCommands[0]?.command).toBe(`millwright run start --machine ${id} --type REPAVE`);
    await set("machines", id, { state: "RETIRED" });
    expect((await explain("machine", id)).nextCommands.map(({ command }) => command)).not.toContain(
      `millwright run start --machine ${id} --type REPAVE`,
    );
  });

  test("of which nothing answers any more says so, and sends to its neighbours", async () => {
    const id = await machine();
    const silentOf = (type: string, at: Peer, message: string) => ({
      type,
      status: false,
      reason: "NoAnswer",
      message,
      cause: silent(at),
      last_transition: new Date().toISOString(),
    });
    const conditions = [
      silentOf("Reachable", "ssh", "no answer"),
      silentOf("BMCReachable", "bmc", "BMC 10.0.0.1:443 cannot be reached"),
    ];
    await set("machines", id, { state: "READY", rack: "rack-7", conditions: JSON.stringify(conditions) });
    const { headline, nextCommands } = await explain("machine", id);
    expect(headline).toMatch(/its BMC is not reached: its BMC cannot be reached; also, it is not reached over SSH$/);
    expect(nextCommands.map(({ command }) => command)).toContain("millwright machine list --filter rack=rack-7");
  });

  test.each(["READY", "IN_SERVICE", "MAINTENANCE"])(
    "that is silent while it is %s, on, and its BMC answers, names the reset, but looks first",
    async (phase) => {
      const id = await machine();
      const at = new Date().toISOString();
      const conditions = [
        { type: "Reachable", status: false, reason: "NoAnswer", message: "no answer", last_transition: at },
        { type: "BMCReachable", status: true, reason: "BmcAnswers", message: "", last_transition: at },
      ];
      await set("machines", id, {
        state: phase,
        facts: { powerState: "on" },
        conditions: JSON.stringify(conditions),
      });
      const commands = (await explain("machine", id)).nextCommands.map(({ command }) => command);
      const reset = `millwright run start --machine ${id} --type REBOOT --param force=true`;
      expect(commands.indexOf(reset)).toBeGreaterThan(commands.indexOf(`millwright machine show ${id}`));
      expect(commands[0]).not.toBe(reset);
    },
  );

  test("that was switched off for its return is not called unreachable", async () => {
    const id = await machine();
    const at = new Date().toISOString();
    const silent = { type: "Reachable", status: false, reason: "NoAnswer", message: "no answer", last_transition: at };
    await set("machines", id, {
      state: "RMA",
      facts: { powerState: "off" },
      conditions: JSON.stringify([silent]),
    });
    expect((await explain("machine", id)).headline).toBe(
      `machine ${id} is RMA, switched off to be returned or replaced`,
    );
    await set("machines", id, { facts: { powerState: "on" } });
    expect((await explain("machine", id)).headline).toContain("not reached over SSH");
  });

  const condition = (type: string, status: boolean, reason: string, message = "") => ({
    type,
    status,
    reason,
    message,
    last_transition: ago(120).toISOString(),
  });

  test.each(["READY", "IN_SERVICE", "MAINTENANCE"])(
    "that is powered off while it is %s says so, and is switched on first",
    async (phase) => {
      const id = await machine();
      const conditions = [
        condition("Reachable", false, "NoAnswer", "no answer"),
        condition("BMCReachable", true, "BmcAnswers"),
      ];
      await set("machines", id, {
        state: phase,
        facts: { powerState: "off" },
        conditions: JSON.stringify(conditions),
      });
      const { headline, nextCommands } = await explain("machine", id);
      expect(headline).toBe(`machine ${id} is ${phase}, and it is powered off`);
      expect(nextCommands[0]?.command).toBe(`millwright run start --machine ${id} --type REBOOT`);
      // What a BMC said before it fell silent proves nothing.
      const silent = [condition("BMCReachable", false, "NoAnswer", "BMC 10.0.0.1:443 cannot be reached")];
      await set("machines", id, { conditions: JSON.stringify(silent) });
      expect((await explain("machine", id)).headline).not.toContain("powered off");
      await set("machines", id, { conditions: JSON.stringify(conditions) });
      await carryOut(surface, nextCommands[0]?.command ?? "");
    },
  );

  test.each([
    ["READY", true, "NodeDrained", "machine enter-maintenance"],
    ["IN_SERVICE", false, "PodsRemain", "machine enter-maintenance"],
    ["MAINTENANCE", true, "NodeDrained", "machine exit-maintenance"],
  ])("whose node is cordoned while it is %s (Drained %s: %s) says so", async (phase, status, reason, command) => {
    const id = await machine();
    const values = { state: phase, conditions: JSON.stringify([condition("Drained", status, reason)]) };
    await set("machines", id, { ...values, state_since: ago(120) });
    const { headline, nextCommands } = await explain("machine", id);
    expect(headline).toBe(`machine ${id} is ${phase}, and its node is cordoned, so that nothing new runs there`);
    expect(nextCommands[0]?.command).toBe(`millwright ${command} ${id}`);
    // What is ours is given back at once while it is in use, and with the maintenance otherwise.
    await set("machines", id, { facts: { cordoned: { cluster: "c", node: "" } } });
    const expected = phase === "MAINTENANCE" ? /its node is cordoned/ : /nothing is wrong$/;
    expect((await explain("machine", id)).headline).toMatch(expected);
    await set("machines", id, { state_data: { drain: true } });
    expect((await explain("machine", id)).headline).toMatch(/nothing is wrong$/);
  });

  test("that was given back a moment ago is not called cordoned by the pass before", async () => {
    const id = await machine();
    const values = { state: "READY", conditions: JSON.stringify([condition("Drained", true, "NodeDrained")]) };
    await set("machines", id, { ...values, state_since: ago(5) });
    expect((await explain("machine", id)).headline).toMatch(/nothing is wrong$/);
  });

  test("that is being drained tells what remains, what keeps it, and that it goes on by itself", async () => {
    const id = await machine();
    const reason = "node n of c: 1 pod remains: d/p; a disruption budget keeps d/p";
    await set("machines", id, {
      state: "MAINTENANCE",
      state_data: { drain: true },
      outcome: { type: "waiting", reason, since: ago(60).toISOString() },
    });
    const { headline, nextCommands, waitingFor } = await explain("machine", id);
    expect(headline).toBe(
      `machine ${id} is MAINTENANCE, and its node is being drained: node n of c: 1 pod remains: d/p; a disruption budget keeps d/p`,
    );
    expect(waitingFor).toEqual([reason]);
    expect(nextCommands.map(({ command }) => command).slice(0, 2)).toEqual([
      `millwright machine show ${id}`,
      `millwright machine exit-maintenance ${id}`,
    ]);
    const failing = {
      type: "failing",
      reason: "cluster c: GET /api/v1/nodes: the API cannot be reached: no answer",
      cause: silent("cluster"),
    };
    await set("machines", id, { outcome: { ...failing, since: ago(60).toISOString() } });
    expect((await explain("machine", id)).headline).toContain(
      "its node is being drained, without success: the cluster's API does not answer",
    );
  });

  test("that a canceled run put into MAINTENANCE names the run, until somebody else moves it", async () => {
    const id = await machine();
    const runId = await failed(id, "canceled");
    await set("runs", runId, { state: "CANCELED", facts: { steps: [], finishedAt: ago(10) } });
    await set("machines", id, { state: "MAINTENANCE" });
    const moved = async (version: number, actor: string) =>
      surface.db.transaction((tx) =>
        append(tx, [
          {
            kind: "machine",
            id,
            version,
            type: "transition",
            from: "PROVISIONING",
            to: "MAINTENANCE",
            owner: "other",
            actor,
            reason: null,
            data: {},
          },
        ]),
      );
    await moved(901, `run ${runId}`);
    const { headline, nextCommands } = await explain("machine", id);
    expect(headline).toBe(`machine ${id} is MAINTENANCE: run ${runId} on machine ${id} was CANCELED`);
    expect(nextCommands[0]?.command).toBe(`millwright run resume ${runId}`);
    expect(nextCommands.map(({ command }) => command)).toContain(`millwright machine exit-maintenance ${id}`);
    await moved(902, "ada");
    expect((await explain("machine", id)).headline).toBe(`machine ${id} is MAINTENANCE; nothing is wrong`);
  });

  test("whose BMC is not reached tells why", async () => {
    const id = await machine();
    const message = "BMC 10.0.0.1:443 shows a certificate with fingerprint AA, but BB was pinned on first use";
    const condition = {
      type: "BMCReachable",
      status: false,
      reason: "No",
      message,
      cause: { code: "certificate_changed", facts: { at: "bmc", shown: "AA", expected: "BB" } },
      last_transition: new Date().toISOString(),
    };
    await set("machines", id, { state: "READY", conditions: JSON.stringify([condition]) });
    expect((await explain("machine", id)).headline).toMatch(
      /its BMC is not reached: its BMC shows another certificate/,
    );
  });
});

describe("a power shelf", () => {
  const failing = (reason: string, code?: CauseCode) => ({
    outcome: { type: "failing", reason, ...(code && { cause: { code } }), since: "2026-01-01T00:00:00Z" },
  });

  test("whose BMC shows another certificate than the one that is pinned: the first command trusts the new one", async () => {
    const reason =
      "BMC 10.0.0.1:443 shows a certificate with fingerprint AA, but BB was pinned on first use. Nothing was sent";
    const shown = Array.from({ length: 32 }, () => "AA").join(":");
    const { outcome } = failing(reason);
    const cause = { code: "certificate_changed", facts: { at: "bmc", shown, expected: "BB" } };
    const id = await shelf({ outcome: { ...outcome, cause }, facts: { certificateFingerprint: "BB" } });
    const { headline, nextCommands, since } = await explain("power_shelf", id);
    expect(headline).toBe(
      `power shelf ${id} is ready, but its BMC shows another certificate than the one that is pinned`,
    );
    expect(Number(since?.seconds)).toBe(Date.parse("2026-01-01T00:00:00Z") / 1_000);
    expect(nextCommands[0]?.command).toBe(`millwright power-shelf accept-certificate ${id} --fingerprint ${shown}`);
    await carryOut(surface, nextCommands[0]?.command ?? "");
    const [row] = await surface.db.query<{ pinned: string | null }>(
      "select facts ->> 'certificateFingerprint' as pinned from power_shelves where id = $1",
      [id],
    );
    expect(row?.pinned).toBe(shown);
  });

  test("whose credentials are tried only rarely is told so", async () => {
    const id = await shelf(
      failing("wrong credentials: BMC 10.0.0.1:443 has rejected them since 2026-01-01T00:00:00Z", "sign_in_stopped"),
    );
    expect((await explain("power_shelf", id)).headline).toContain("tried only rarely");
    expect(await first("power_shelf", id)).toContain("power-shelf set-credentials");
  });

  test("that does not begin to obey is called so before its deadline, but not at once", async () => {
    const request = { id: "q", operation: "power_off", initiator: "ada", requested_at: ago(90).toISOString() };
    const told = (at: Date) => ({
      facts: { commandedAt: { operation: "power_off", requestId: "q", at: at.toISOString() } },
    });
    const cause: Cause = { code: "no_effect", facts: { at: "bmc", progress: "on" } };
    const id = await shelf({
      state: "maintenance",
      state_since: ago(90),
      state_data: { operation: "power_off", request },
      outcome: { type: "waiting", reason: "shelf reports power on, wanted off", cause },
      ...told(ago(5)),
    });
    expect((await explain("power_shelf", id)).headline).toBe(
      `power shelf ${id} is carrying out power_off: shelf reports power on, wanted off`,
    );
    await set("power_shelves", id, told(ago(60)));
    const { headline, waitingFor } = await explain("power_shelf", id);
    expect(headline).toContain("accepts the command, and nothing changes");
    expect(waitingFor).toContainEqual(expect.stringMatching(/the deadline at .*, when it gives up/));
  });

  test("with a request that was not taken up yet is about to carry it out", async () => {
    const id = await shelf();
    await setPowerShelfMaintenance(surface.deps, tester, {
      powerShelfIds: [id],
      operation: "power_off",
      reference: "R",
    });
    expect((await explain("power_shelf", id)).headline).toContain("is about to carry out power_off");
  });

  test("is found by its name on the command line, under its short kind", async () => {
    const id = await shelf({ name: "shelf-of-the-north" });
    expect(await carryOut(surface, "millwright explain ps shelf-of-the-north")).toContain(`power shelf ${id} is ready`);
  });
});

describe("an expected power shelf", () => {
  async function expected(columns: Readonly<Record<string, unknown>> = {}): Promise<{ id: string; mac: string }> {
    const mac = `02:00:5e:20:${lastBytes(++count)}`;
    const input = {
      bmcMac: mac,
      bmcUsername: "admin",
      bmcPassword: "password",
      serial: `SN-${count}`,
      bmcEndpoint: "10.1.0.1:8443",
      rackId: undefined,
      metadata: { name: "", description: "", labels: {} },
    };
    await addExpectedPowerShelf(surface.deps, tester, input);
    const [row] = await surface.db.query<{ id: string }>("select id from expected_power_shelves where bmc_mac = $1", [
      mac,
    ]);
    const id = row?.id ?? "";
    await set("work", id, { wake_at: new Date(Date.now() + 60_000) });
    if (Object.keys(columns).length > 0) await set("expected_power_shelves", id, columns);
    return { id, mac };
  }
  const waiting = (reason: string, code: CauseCode) => ({ outcome: { type: "waiting", reason, cause: { code } } });

  test.each<[what: string, reason: string, code: CauseCode, names: RegExp, command: string]>([
    [
      "cannot be reached",
      "BMC 10.1.0.1:8443 cannot be reached: ECONNREFUSED",
      "unreachable",
      /BMC cannot be reached/,
      "--bmc-endpoint 10.1.0.1:8443",
    ],
    [
      "rejects the credentials",
      "wrong credentials: BMC 10.1.0.1:8443 does not accept",
      "credentials_rejected",
      /rejects the credentials/,
      "--bmc-username admin",
    ],
    [
      "is another shelf",
      "the BMC at 10.1.0.1 reports serial X, expected Y",
      "wrong_identity",
      /another device answers/,
      "--serial <serial>",
    ],
    [
      "is nowhere",
      "no bmc_ip_address is given: update the row with one",
      "endpoint_missing",
      /not on record where/,
      "--bmc-endpoint <host[:port]>",
    ],
  ])("whose BMC %s", async (_, reason, code, words, command) => {
    const { mac } = await expected(waiting(reason, code));
    const { headline, nextCommands, waitingFor } = await explain("expected_power_shelf", mac);
    expect(headline).toMatch(words);
    expect(nextCommands[0]?.command).toBe(`millwright expected-power-shelf update ${mac} ${command}`);
    expect(waitingFor).toEqual([reason, expect.stringContaining("the next search at")]);
  });

  test("that is looked for again at once after its first command", async () => {
    const { id, mac } = await expected(waiting("BMC 10.1.0.1:8443 cannot be reached: ECONNREFUSED", "unreachable"));
    await carryOut(surface, (await first("expected_power_shelf", mac)) ?? "");
    const [row] = await surface.db.query<{ due: boolean }>("select wake_at <= now() as due from work where id = $1", [
      id,
    ]);
    expect(row?.due).toBe(true);
  });

  test("that is linked sends to its power shelf; one that is detached is looked for again when it is updated", async () => {
    const id = await shelf();
    const linked = await expected({ state: "linked", facts: { powerShelfId: id } });
    expect(await first("expected_power_shelf", linked.id)).toBe(`millwright explain power_shelf ${id}`);
    const detached = await expected({ state: "detached" });
    expect((await explain("expected_power_shelf", detached.id)).headline).toContain("is detached");
    expect(await first("expected_power_shelf", detached.id)).toContain("expected-power-shelf update");
  });
});

test.each(Object.keys(CAUSES) as CauseCode[])(
  "what is suggested against %s is understood by the command line",
  async (code) => {
    for (const at of Object.keys(PEERS) as Peer[])
      for (const { command } of machineRemedies({ code, facts: { at } }, "m-1")) await checkCommand(command);
  },
);

describe("what an older version has kept, without a cause, is told in its own words:", () => {
  test("a run that failed", async () => {
    const id = await failed(await machine(), "BMC 10.0.0.1:443 cannot be reached");
    const { headline, nextCommands } = await explain("run", id);
    expect(headline).toMatch(/FAILED in step reboot: reboot: BMC 10\.0\.0\.1:443 cannot be reached$/);
    expect(nextCommands[0]?.command).toBe(`millwright run retry ${id}`);
  });

  test("a shelf that fails, and one that is in error", async () => {
    const outcome = { type: "failing", reason: "BMC 10.0.0.1:443 cannot be reached" };
    const failing = await shelf({ outcome });
    expect((await explain("power_shelf", failing)).headline).toMatch(/is ready, but BMC .* cannot be reached$/);
    const inError = await shelf({ state: "error", state_data: { cause: "the shelf refused" } });
    expect((await explain("power_shelf", inError)).headline).toMatch(/failed because the shelf refused$/);
  });

  test("a machine that is not reached", async () => {
    const id = await machine();
    const last_transition = new Date().toISOString();
    const condition = { type: "BMCReachable", status: false, reason: "NoAnswer", message: "silence", last_transition };
    await set("machines", id, { state: "READY", conditions: JSON.stringify([condition]) });
    expect((await explain("machine", id)).headline).toMatch(/its BMC is not reached: silence$/);
  });
});

test("a command that the command line does not know is noticed", async () => {
  await expect(checkCommand("millwright run dance run-1")).rejects.toThrow(/does not understand/);
  await expect(checkCommand("millwright run show run-1 --loudly")).rejects.toThrow(/does not understand/);
});
