import { Code } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { MachineStatus_Phase as Phase } from "../../../contract/baremetal/v1/baremetal_pb.js";
import { MACHINE_PHASES, type MachinePhase } from "../../../src/lifecycles/machine/machine.ts";
import { getMachineBmcCredentials, getMachineSshCredentials } from "../../../src/store/machine/credentials.ts";
import { listMachines } from "../../../src/store/machine/machines.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";
import { as, dumpTables, refusal } from "../api/forge-under-test.ts";
import { type MachinesUnderTest, startMachines } from "./machines-under-test.ts";

let site: MachinesUnderTest;
beforeAll(async () => {
  site = await startMachines();
});
afterAll(() => site.close());

let count = 0;
const machineIn = async (phase: MachinePhase): Promise<string> => {
  count += 1;
  const machineId = `m-${count}`;
  await site.machines.registerMachine({ machine: { machineId, spec: { serial: `S-${count}` } } });
  await site.setPhase(machineId, phase);
  return machineId;
};

const VERBS = {
  accept: (machineId: string) => site.lifecycle.acceptMachine({ machineId, comment: "why" }, as("kim")),
  enter_maintenance: (machineId: string) => site.lifecycle.enterMaintenance({ machineId, comment: "why" }, as("kim")),
  exit_maintenance: (machineId: string) => site.lifecycle.exitMaintenance({ machineId, comment: "why" }, as("kim")),
  return: (machineId: string) => site.lifecycle.returnMachine({ machineId, comment: "why" }, as("kim")),
  retire: (machineId: string) => site.lifecycle.retireMachine({ machineId, comment: "why" }, as("kim")),
} as const;
type Verb = keyof typeof VERBS;

/** Where each verb leads from each phase; what is not here is refused. */
const LEADS: Readonly<Record<MachinePhase, Partial<Record<Verb, MachinePhase>>>> = {
  FACTORY_READY: { accept: "READY", retire: "RETIRED" },
  READY: { enter_maintenance: "MAINTENANCE", retire: "RETIRED" },
  PROVISIONING: { retire: "RETIRED" },
  IN_SERVICE: { enter_maintenance: "MAINTENANCE", retire: "RETIRED" },
  MAINTENANCE: { exit_maintenance: "READY", retire: "RETIRED" },
  RMA: { return: "FACTORY_READY", retire: "RETIRED" },
  RETIRED: {},
};

const cases = MACHINE_PHASES.flatMap((phase) =>
  (Object.keys(VERBS) as Verb[]).map((verb) => [verb, phase, LEADS[phase][verb]] as const),
);

test.each(cases)("%s from %s leads to %s", async (verb, phase, target) => {
  const machineId = await machineIn(phase);
  if (target === undefined) {
    const refused = await refusal(VERBS[verb](machineId));
    expect(refused.code).toBe(Code.FailedPrecondition);
    expect(refused.message).toContain(`machine ${machineId} is ${phase}: ${verb} is not possible`);
    for (const possible of Object.keys(LEADS[phase])) expect(refused.message).toContain(possible);
    expect(refused.next).toBe(`millwright explain machine ${machineId}`);
    return;
  }
  const { machine } = await VERBS[verb](machineId);
  expect(machine?.status?.phase).toBe(Phase[target]);
  const { events } = await site.history.listHistory({ kind: "machine", id: machineId });
  expect(events.at(-1)).toMatchObject({ fromState: phase, toState: target, actor: "kim", reason: "why" });
});

test("a machine that comes back is in no cluster any more, as far as anybody knows, and may show another host key", async () => {
  const machineId = await machineIn("RMA");
  await site.db.execute("update machines set facts = facts || $2 where id = $1", [
    machineId,
    { joinedCluster: "cluster-a", sshHostKey: "ssh-ed25519 AAAA", sshHostKeySeen: "ssh-ed25519 AAAB" },
  ]);
  await VERBS.return(machineId);
  const [row] = await site.db.query<{ facts: object }>("select facts from machines where id = $1", [machineId]);
  expect(row?.facts).toMatchObject({ joinedCluster: null, sshHostKey: null, sshHostKeySeen: null });
});

test.each(Object.entries(VERBS))("%s of no machine is NOT_FOUND, and of no id INVALID_ARGUMENT", async (_, ask) => {
  expect((await refusal(ask("m-nobody"))).code).toBe(Code.NotFound);
  expect(await refusal(ask("No Id"))).toMatchObject({ code: Code.InvalidArgument, field: "machine_id" });
});

test("a comment that cannot be shown is refused", async () => {
  const machineId = await machineIn("FACTORY_READY");
  for (const comment of ["a\nb", "c".repeat(1025)])
    expect(await refusal(site.lifecycle.acceptMachine({ machineId, comment }))).toMatchObject({
      code: Code.InvalidArgument,
      field: "comment",
    });
});

describe("the end of maintenance of a machine that needs somebody", () => {
  const needy = async () => {
    const machineId = await machineIn("MAINTENANCE");
    await site.observe(machineId, [
      { type: "NeedsIntervention", status: true, reason: "RunFailed", message: "step reboot failed" },
    ]);
    return machineId;
  };

  test("is refused, with why and what to do", async () => {
    const machineId = await needy();
    const refused = await refusal(site.lifecycle.exitMaintenance({ machineId }));
    expect(refused).toMatchObject({ code: Code.FailedPrecondition, field: "acknowledge" });
    expect(refused.message).toContain("NeedsIntervention (RunFailed: step reboot failed)");
    expect((await site.machines.getMachine({ machineId })).status?.phase).toBe(Phase.MAINTENANCE);
  });

  test("is not acknowledged without a comment", async () => {
    const machineId = await needy();
    for (const comment of ["", "  "])
      expect(await refusal(site.lifecycle.exitMaintenance({ machineId, acknowledge: true, comment }))).toMatchObject({
        code: Code.InvalidArgument,
        field: "comment",
      });
  });

  test("comes with an acknowledgement, and the banner goes in the same moment", async () => {
    const machineId = await needy();
    const { machine } = await site.lifecycle.exitMaintenance(
      { machineId, acknowledge: true, comment: "replaced the disk" },
      as("kim"),
    );
    expect(machine?.status).toMatchObject({
      phase: Phase.READY,
      banners: [],
      conditions: [{ type: "NeedsIntervention", status: false, reason: "Acknowledged", message: "replaced the disk" }],
    });
  });

  test("leaves the condition as it is when the machine is not in maintenance", async () => {
    const machineId = await needy();
    await site.setPhase(machineId, "READY");
    const before = await dumpTables(site.db, ["tokens"]);
    const ask = site.lifecycle.exitMaintenance({ machineId, acknowledge: true, comment: "done" });
    expect((await refusal(ask)).code).toBe(Code.FailedPrecondition);
    expect(await dumpTables(site.db, ["tokens"])).toEqual(before);
  });
});

describe("retiring", () => {
  test("waits for the end of an active run, pending ones too", async () => {
    const machineId = await machineIn("READY");
    await site.addRun({ id: `run-${machineId}`, machineId });
    const refused = await refusal(VERBS.retire(machineId));
    expect(refused.code).toBe(Code.FailedPrecondition);
    expect(refused.message).toContain(`run-${machineId}`);
    await site.db.execute("update runs set state = 'CANCELED' where machine_id = $1", [machineId]);
    expect((await VERBS.retire(machineId)).machine?.status?.phase).toBe(Phase.RETIRED);
  });

  test("frees its serial, forgets its credentials, and ends all changes", async () => {
    const machineId = await machineIn("READY");
    await site.lifecycle.setMachineCredentials({ machineId, bmcUsername: "root", bmcPassword: "secret" });
    const { machine } = await VERBS.retire(machineId);
    const spec = { serial: machine?.spec?.serial ?? "" };
    await site.machines.registerMachine({ machine: { machineId: `${machineId}-heir`, spec } });
    expect(await site.db.query("select name from secrets where name like $1", [`%/${machineId}`])).toEqual([]);
    for (const ask of [
      () => site.machines.registerMachine({ machine: { machineId, spec: { rack: "rack-1" } } }),
      () => site.machines.updateMachine({ machine: { machineId, labels: { a: "1" } } }),
      () => site.lifecycle.setMachineCredentials({ machineId, bmcUsername: "root", bmcPassword: "secret" }),
    ]) {
      const refused = await refusal(ask());
      expect(refused.code).toBe(Code.FailedPrecondition);
      expect(refused.message).toContain("is RETIRED");
    }
  });
});

describe("credentials", () => {
  const keyWith = (cipher: string) => {
    const body = Buffer.from(
      `openssh-key-v1\0\0\0\0${String.fromCharCode(cipher.length)}${cipher} and the rest`,
      "latin1",
    );
    return `-----BEGIN OPENSSH PRIVATE KEY-----\n${body.toString("base64")}\n-----END OPENSSH PRIVATE KEY-----\n`;
  };
  const KEY = keyWith("none");
  const set = (request: Parameters<typeof site.lifecycle.setMachineCredentials>[0]) =>
    site.lifecycle.setMachineCredentials(request, as("kim"));

  test("are kept encrypted, each pair by itself, and shown to nobody", async () => {
    const machineId = await machineIn("READY");
    await set({ machineId, bmcUsername: "root", bmcPassword: "hunter-two" });
    await set({ machineId, sshUsername: "ubuntu", sshPrivateKey: KEY });
    const { db, secrets } = site.deps;
    const machines = await listMachines(db, { ids: [machineId] });
    expect(await getMachineBmcCredentials(db, secrets, machines)).toEqual([
      { username: "root", password: "hunter-two" },
    ]);
    expect(await getMachineSshCredentials(db, secrets, machines)).toEqual([{ username: "ubuntu", privateKey: KEY }]);
    const everything = JSON.stringify(await dumpTables(db));
    expect(everything).not.toContain("hunter-two");
    expect(everything).not.toContain(KEY.slice(40, 80));
    const { events } = await site.history.listHistory({ kind: "machine", id: machineId });
    expect(events.map(({ type }) => type)).toEqual(["created", "credentials_changed", "credentials_changed"]);
  });

  test("that are missing are named with the command that sets them", async () => {
    const machines = await listMachines(site.db, { ids: [await machineIn("READY")] });
    const [missing] = await getMachineSshCredentials(site.db, site.deps.secrets, machines);
    expect(missing).toMatchObject({
      kind: "failed_precondition",
      detail: { next: expect.stringContaining("set-credentials") },
    });
  });

  test.each([
    ["nothing at all", {}, "bmc_username"],
    ["a name alone", { bmcUsername: "root" }, "bmc_password"],
    ["a password alone", { bmcPassword: "secret-word" }, "bmc_username"],
    ["a key alone", { sshPrivateKey: KEY }, "ssh_username"],
    ["no key", { sshUsername: "root", sshPrivateKey: "secret-word" }, "ssh_private_key"],
    ["a key with a passphrase", { sshUsername: "root", sshPrivateKey: keyWith("aes256-ctr") }, "ssh_private_key"],
    ["a long password", { bmcUsername: "root", bmcPassword: "secret-word".repeat(30) }, "bmc_password"],
  ])("with %s are refused, without repeating them", async (_, given, field) => {
    const machineId = await machineIn("READY");
    const refused = await refusal(set({ machineId, ...given }));
    expect(refused).toMatchObject({ code: Code.InvalidArgument, field });
    expect(refused.message).not.toContain("secret-word");
  });

  test("of no machine are NOT_FOUND", async () => {
    expect((await refusal(set({ machineId: "m-nobody", bmcUsername: "a", bmcPassword: "b" }))).code).toBe(
      Code.NotFound,
    );
  });
});
