import { fromJson, type MessageInitShape } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { MachineSchema, MachineStatus_Phase as Phase } from "../../../contract/baremetal/v1/baremetal_pb.js";
import { recordClaim } from "../../support/claims.ts";
import { afterAll, beforeAll } from "../../support/second-try.ts";
import { as, refusal } from "../api/forge-under-test.ts";
import { type MachinesUnderTest, startMachines } from "./machines-under-test.ts";

let site: MachinesUnderTest;
beforeAll(async () => {
  site = await startMachines();
});
afterAll(() => site.close());

const HOST_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ+9C3XQ0gDXZg5iuIIdaTTlZ0L59WskL9PyoC0BpClv";
type Given = MessageInitShape<typeof MachineSchema>;
const register = (machine: Given | undefined) =>
  site.machines.registerMachine(machine === undefined ? {} : { machine }, as("kim"));
const get = (machineId: string) => site.machines.getMachine({ machineId });
const historyOf = async (id: string) =>
  (await site.history.listHistory({ kind: "machine", id })).events.map(({ type, actor, reason }) => ({
    type,
    actor,
    reason,
  }));

describe("registering", () => {
  test("takes the specification's sample as it is printed, and drops the status that it was sent with", async () => {
    const sample = fromJson(MachineSchema, {
      machine_id: "m-123",
      labels: { env: "prod", role: "worker", provider: "dc-1" },
      spec: {
        ssh_endpoint: "10.20.30.40:22",
        bmc_endpoint: "10.20.30.41",
        target_cluster_ref: "cluster-a",
        mac_addresses: ["aa:bb:cc:dd:ee:ff"],
      },
      status: {
        phase: "IN_SERVICE",
        conditions: [{ type: "InCustomerCluster", status: true }],
        active_run_id: "run-9",
        effective_state: "IN_SERVICE",
      },
    });
    const registered = await register(sample);
    expect(registered).toMatchObject({
      machineId: "m-123",
      labels: { env: "prod", role: "worker", provider: "dc-1" },
      spec: {
        sshEndpoint: "10.20.30.40:22",
        bmcEndpoint: "10.20.30.41",
        targetClusterRef: "cluster-a",
        macAddresses: ["aa:bb:cc:dd:ee:ff"],
        provider: "datacenter",
        bmcTlsTrust: "pin",
      },
      status: { phase: Phase.FACTORY_READY, effectiveState: Phase.FACTORY_READY, conditions: [], activeRunId: "" },
    });
    expect(registered.status?.inventory).toBeUndefined();
    expect(registered.createdAt).toBeDefined();
    expect(await get("m-123")).toEqual(registered);
    expect(await historyOf("m-123")).toEqual([{ type: "created", actor: "kim", reason: "" }]);
  });

  test("gives an id by the first MAC address, so that doing it again finds the same machine", async () => {
    const spec = { macAddresses: ["02-00-00-00-0A-01", "02:00:00:00:0a:02"] };
    const first = await register({ spec });
    expect(first.machineId).toBe("m-020000000a01");
    expect(first.spec?.macAddresses).toEqual(["02:00:00:00:0a:01", "02:00:00:00:0a:02"]);
    expect(await register({ spec })).toEqual(first);
  });

  test("gives a random id to a machine of which nothing is known", async () => {
    const [one, other] = [await register({}), await register({ spec: {} })];
    expect(one.machineId).toMatch(/^m-[0-9a-f]{16}$/);
    expect(other.machineId).not.toBe(one.machineId);
  });

  test("replaces spec and labels of the same id, and keeps its status", async () => {
    await register({ machineId: "m-again", labels: { a: "1", b: "2" }, spec: { rack: "rack-1", serial: "S-again" } });
    await site.setPhase("m-again", "READY");
    await site.observe("m-again", [{ type: "Reachable", status: true, reason: "Banner", message: "" }]);
    const again = await register({
      machineId: "m-again",
      labels: { c: "3" },
      spec: { slot: "7" },
      status: { phase: Phase.RETIRED },
    });
    expect(again.labels).toEqual({ c: "3" });
    expect(again.spec).toMatchObject({ rack: "", slot: "7", serial: "" });
    expect(again.status).toMatchObject({ phase: Phase.READY, conditions: [{ type: "Reachable", status: true }] });
    await register({ machineId: "m-heir", spec: { serial: "S-again" } }); // the serial is free again
  });

  test("without a spec keeps the one on record", async () => {
    await register({ machineId: "m-kept", spec: { rack: "rack-9" } });
    expect((await register({ machineId: "m-kept", labels: { a: "1" } })).spec?.rack).toBe("rack-9");
  });

  test("with nothing new writes nothing", async () => {
    const machine = {
      machineId: "m-still",
      labels: { a: "1" },
      spec: { rack: "rack-1", jumpHosts: [{ endpoint: "10.0.0.1", hostKey: HOST_KEY }], sshEndpoint: "10.0.0.2" },
    };
    const before = await register(machine);
    expect((await register(machine)).version).toBe(before.version);
    expect(await historyOf("m-still")).toHaveLength(1);
  });

  test.each([
    [
      "a MAC address",
      { macAddresses: ["02:00:00:00:0b:02", "02:00:00:00:0b:01"] },
      "machine.spec.mac_addresses",
      "02:00:00:00:0b:01",
    ],
    ["the serial", { serial: "S-owner" }, "machine.spec.serial", "S-owner"],
    ["the BMC", { bmcEndpoint: "BMC-owner.example:443" }, "machine.spec.bmc_endpoint", "BMC-owner.example:443"],
  ])("another machine with %s of one on record is refused, naming the owner", async (_, spec, field, value) => {
    await register({
      machineId: "m-owner",
      spec: { macAddresses: ["02:00:00:00:0b:01"], serial: "S-owner", bmcEndpoint: "https://bmc-owner.example/" },
    });
    const refused = await refusal(register({ machineId: "m-thief", spec }));
    expect(refused).toMatchObject({ code: Code.AlreadyExists, field });
    expect(refused.message).toContain(`${value} belongs to machine m-owner`);
    expect((await refusal(get("m-thief"))).code).toBe(Code.NotFound);
  });

  test("of twenty who race for one MAC address, one wins and nineteen are told who", { tags: "race" }, async () => {
    const tries = await Promise.allSettled(
      Array.from({ length: 20 }, (_, at) =>
        register({
          machineId: `m-race-${at}`,
          spec: { macAddresses: ["02:00:00:00:0c:01", `02:00:00:00:0d:${String(at).padStart(2, "0")}`] },
        }),
      ),
    );
    const won = tries.flatMap((one) => (one.status === "fulfilled" ? [one.value.machineId] : []));
    expect(won).toHaveLength(1);
    for (const one of tries) {
      if (one.status === "fulfilled") continue;
      expect(one.reason).toMatchObject({ code: Code.AlreadyExists });
      expect(String(one.reason)).toContain(`belongs to machine ${won[0]}`);
    }
  });

  test("two machines that exchange their MAC addresses at the same moment end with one each, or as they were", {
    tags: "race",
  }, async () => {
    const [a, b] = ["02:00:00:00:0e:01", "02:00:00:00:0e:02"] as const;
    await register({ machineId: "m-left", spec: { macAddresses: [a] } });
    await register({ machineId: "m-right", spec: { macAddresses: [b] } });
    await Promise.allSettled([
      register({ machineId: "m-left", spec: { macAddresses: [b] } }),
      register({ machineId: "m-right", spec: { macAddresses: [a] } }),
    ]);
    const owned = (await Promise.all([get("m-left"), get("m-right")])).flatMap(({ spec }) => spec?.macAddresses ?? []);
    expect(new Set(owned).size).toBe(owned.length);
    const identities = await site.db.query(
      "select value, machine_id from machine_identities where value = any($1) order by 1",
      [[a, b]],
    );
    expect(identities).toHaveLength(owned.length);
  });
});

describe("what is wrong is refused by its field", () => {
  test.each([
    ["the machine itself", undefined, "machine"],
    ["an id", { machineId: "M 1" }, "machine.machine_id"],
    ["a provider", { spec: { provider: "magic" } }, "machine.spec.provider"],
    [
      "a protocol that the provider does not speak",
      { spec: { provider: "redfish", bmcProtocol: "ipmi" } },
      "machine.spec.bmc_protocol",
    ],
    ["a MAC address", { spec: { macAddresses: ["02:00:00:00:00:01", "nonsense"] } }, "machine.spec.mac_addresses[1]"],
    ["an SSH endpoint", { spec: { sshEndpoint: "10.0.0.1:99999" } }, "machine.spec.ssh_endpoint"],
    ["a BMC endpoint", { spec: { bmcEndpoint: "ftp://10.0.0.1" } }, "machine.spec.bmc_endpoint"],
    ["a BMC protocol", { spec: { bmcProtocol: "telnet" } }, "machine.spec.bmc_protocol"],
    [
      "a computer system over IPMI",
      { spec: { bmcProtocol: "ipmi", bmcEndpoint: "10.0.0.7/redfish/v1/Systems/1" } },
      "machine.spec.bmc_endpoint",
    ],
    ["a trust", { spec: { bmcTlsTrust: "blind" } }, "machine.spec.bmc_tls_trust"],
    ["a host key", { spec: { sshHostKey: "nonsense" } }, "machine.spec.ssh_host_key"],
    ["a MAC address of all ports", { spec: { macAddresses: ["FF-FF-FF-FF-FF-FF"] } }, "machine.spec.mac_addresses[0]"],
    ["a MAC address of none", { spec: { macAddresses: ["000000000000"] } }, "machine.spec.mac_addresses[0]"],
    ["a host key that was cut off", { spec: { sshHostKey: HOST_KEY.slice(0, -8) } }, "machine.spec.ssh_host_key"],
    [
      "jump hosts to nowhere",
      { spec: { jumpHosts: [{ endpoint: "10.0.0.1", hostKey: HOST_KEY }] } },
      "machine.spec.jump_hosts",
    ],
    [
      "a jump host without a key",
      { spec: { sshEndpoint: "10.0.0.2", jumpHosts: [{ endpoint: "10.0.0.1" }] } },
      "machine.spec.jump_hosts[0].host_key",
    ],
    ["a rack", { spec: { rack: "r".repeat(257) } }, "machine.spec.rack"],
    ["a label", { labels: { a: "v".repeat(257) } }, "machine.labels"],
    [
      "too many labels",
      { labels: Object.fromEntries(Array.from({ length: 65 }, (_, at) => [`k${at}`, ""])) },
      "machine.labels",
    ],
  ])("%s", async (_, machine, field) => {
    expect(await refusal(register(machine as Given | undefined))).toMatchObject({ code: Code.InvalidArgument, field });
  });
});

describe("updating", () => {
  test("replaces the spec when one is given, the labels when there are any, and never the status", async () => {
    await register({ machineId: "m-upd", labels: { a: "1" }, spec: { rack: "rack-1" } });
    const update = (machine: object) =>
      site.machines.updateMachine({ machine: { machineId: "m-upd", ...machine } }, as("lee"));
    expect(await update({ spec: { slot: "3" }, status: { phase: Phase.RMA } })).toMatchObject({
      labels: { a: "1" },
      spec: { rack: "", slot: "3" },
      status: { phase: Phase.FACTORY_READY },
    });
    expect(await update({ labels: { b: "2" } })).toMatchObject({ labels: { b: "2" }, spec: { slot: "3" } });
    expect((await historyOf("m-upd")).map(({ type, actor }) => `${type} by ${actor}`)).toEqual([
      "created by kim",
      "spec_changed by lee",
      "spec_changed by lee",
    ]);
  });

  test("is refused for a machine that is not there, or not named", async () => {
    expect((await refusal(site.machines.updateMachine({ machine: { machineId: "m-nobody" } }))).code).toBe(
      Code.NotFound,
    );
    expect(await refusal(site.machines.updateMachine({ machine: {} }))).toMatchObject({
      code: Code.InvalidArgument,
      field: "machine.machine_id",
    });
    expect(await refusal(site.machines.updateMachine({}))).toMatchObject({
      code: Code.InvalidArgument,
      field: "machine",
    });
  });

  describe("of how SSH reaches it", () => {
    const learnt = { sshHostKey: "ssh-ed25519 PROVED", sshHostKeySeen: "ssh-ed25519 SEEN" };
    const sshMoved = { from: "10.8.8.8", to: "10.8.8.9" };
    test.each<[string, object, object]>([
      ["the key forgets all that was learnt", { sshHostKey: HOST_KEY }, { sshHostKey: null, sshHostKeySeen: null }],
      [
        "the address forgets what was seen there, and not what was proved",
        { sshEndpoint: "10.9.9.9" },
        { sshHostKey: "ssh-ed25519 PROVED", sshHostKeySeen: null },
      ],
      ["the port does as well", { sshEndpoint: "10.8.8.8:2222" }, { sshHostKeySeen: null }],
      ["the address to where a run has moved it forgets nothing", { sshEndpoint: "10.8.8.9" }, learnt],
      ["the spelling of the same address forgets nothing", { sshEndpoint: "10.8.8.8:22" }, learnt],
      ["anything else forgets nothing", { rack: "rack-9" }, learnt],
    ])("%s", async (title, change, facts) => {
      const machineId = `m-learnt-${title.length}`;
      const spec = { sshEndpoint: "10.8.8.8", rack: "rack-1" };
      await register({ machineId, spec });
      await site.db.execute("update machines set facts = $2 where id = $1", [machineId, { ...learnt, sshMoved }]);
      await site.machines.updateMachine({ machine: { machineId, spec: { ...spec, ...change } } });
      const [row] = await site.db.query<{ facts: object }>("select facts from machines where id = $1", [machineId]);
      expect(row?.facts).toMatchObject(facts);
    });

    test("shows which key it must show, and who says so", async () => {
      const machineId = "m-whose-key";
      const key = async () => {
        const { status } = await site.machines.getMachine({ machineId });
        return [status?.sshHostKey, status?.sshHostKeyFrom];
      };
      await register({ machineId, spec: { sshEndpoint: "10.8.8.8" } });
      expect(await key()).toEqual(["", ""]);
      await site.db.execute("update machines set facts = $2 where id = $1", [machineId, { sshHostKeySeen: HOST_KEY }]);
      expect(await key()).toEqual([HOST_KEY, "first_seen"]);
      const pinned = `SHA256:${"A".repeat(43)}`;
      await site.machines.updateMachine({
        machine: { machineId, spec: { sshEndpoint: "10.8.8.8", sshHostKey: pinned } },
      });
      expect(await key()).toEqual([pinned, "spec"]);
      await site.db.execute("update machines set facts = $2 where id = $1", [machineId, { sshHostKey: HOST_KEY }]);
      expect(await key()).toEqual([HOST_KEY, "installation"]);
    });
  });

  test.each([
    ["provider", { provider: "ipmi" }],
    ["ssh_endpoint", { sshEndpoint: "10.9.9.9" }],
    ["ssh_host_key", { sshHostKey: HOST_KEY }],
    ["jump_hosts", { jumpHosts: [{ endpoint: "10.8.8.1", hostKey: HOST_KEY }] }],
    ["bmc_endpoint", { bmcEndpoint: "10.9.9.8" }],
    ["bmc_protocol", { bmcProtocol: "redfish" }],
    ["bmc_tls_trust", { bmcTlsTrust: "off" }],
  ])("of %s waits for the end of the run that works on the machine, by either call", async (name, change) => {
    const machineId = `m-busy-${name.replaceAll("_", "-")}`;
    const spec = { provider: "redfish", sshEndpoint: "10.8.8.8", rack: "rack-1" };
    await register({ machineId, spec });
    await site.addRun({ id: `run-${machineId}`, machineId });
    for (const call of [
      () => site.machines.updateMachine({ machine: { machineId, spec: { ...spec, ...change } } }),
      () => register({ machineId, spec: { ...spec, ...change } }),
    ]) {
      const refused = await refusal(call());
      expect(refused).toMatchObject({ code: Code.FailedPrecondition, field: `machine.spec.${name}` });
      expect(refused.message).toContain(`run run-${machineId} works on machine ${machineId}`);
    }
    await site.machines.updateMachine({
      machine: { machineId, labels: { a: "1" }, spec: { ...spec, rack: "rack-2" } },
    });
    await site.db.execute("update runs set state = 'SUCCEEDED' where machine_id = $1", [machineId]);
    await register({ machineId, spec: { ...spec, ...change } });
  });

  test("of endpoints waits for anybody else who holds the machine, too", async () => {
    await register({ machineId: "m-claimed", spec: { sshEndpoint: "10.7.7.7" } });
    await site.db.execute(
      "insert into claims (thing_kind, thing_id, holder_kind, holder_id, reason, granted_at) values ('machine', 'm-claimed', 'rack', 'rack-1', 'maintenance', now())",
    );
    const refused = await refusal(register({ machineId: "m-claimed", spec: { sshEndpoint: "10.7.7.8" } }));
    expect(refused.message).toContain("rack rack-1 works on machine m-claimed");
    expect((await get("m-claimed")).status?.claim).toMatchObject({ kind: "rack", id: "rack-1" });
  });

  test("of the rack, and retirement, wait for whoever holds the machine", async () => {
    const machineId = "m-in-a-rack";
    await register({ machineId, spec: { rack: "rack-1" } });
    await recordClaim(site.db, { kind: "machine", id: machineId }, { kind: "rack", id: "rack-1" }, "maintenance");
    const moved = await refusal(register({ machineId, spec: { rack: "rack-2" } }));
    expect(moved).toMatchObject({ code: Code.FailedPrecondition, field: "machine.spec.rack" });
    expect(moved.message).toContain(`machine ${machineId} cannot be moved to another rack: rack rack-1 (maintenance)`);
    const retired = await refusal(site.lifecycle.retireMachine({ machineId, comment: "" }));
    expect(retired.message).toContain(`machine ${machineId} cannot be retired: rack rack-1 (maintenance) works on it`);
    await register({ machineId, spec: { rack: "rack-1", slot: "7" } });
    expect((await get(machineId)).spec).toMatchObject({ rack: "rack-1", slot: "7" });
  });
});

describe("a machine shows", () => {
  test("its active run, as long as that is pending or running, and then the last one", async () => {
    await register({ machineId: "m-runs" });
    await site.addRun({ id: "run-of-m-runs", machineId: "m-runs" });
    await site.db.execute(
      `update runs set outcome = '{"type": "waiting", "reason": "rack rack-1 holds it"}' where id = 'run-of-m-runs'`,
    );
    expect((await get("m-runs")).status).toMatchObject({
      phase: Phase.FACTORY_READY,
      effectiveState: Phase.PROVISIONING,
      activeRunId: "run-of-m-runs",
      waitingFor: "rack rack-1 holds it",
      lastRunId: "",
    });
    await site.beginRun("m-runs", "run-of-m-runs");
    await site.db.execute("update runs set state = 'RUNNING' where id = 'run-of-m-runs'");
    expect((await get("m-runs")).status).toMatchObject({ phase: Phase.PROVISIONING, activeRunId: "run-of-m-runs" });
    await site.db.execute("update runs set state = 'FAILED' where id = 'run-of-m-runs'");
    expect((await get("m-runs")).status).toMatchObject({ activeRunId: "", lastRunId: "run-of-m-runs" });
  });

  test("its conditions with the time at which they flipped, and banners for the grave ones", async () => {
    await register({ machineId: "m-cond" });
    await site.observe("m-cond", [
      { type: "InCustomerCluster", status: true, reason: "NodeReady", message: "" },
      { type: "NeedsIntervention", status: true, reason: "RunFailed", message: "boom" },
      { type: "Degraded", status: true, reason: "FanFailed", message: "" },
    ]);
    const first = (await get("m-cond")).status;
    expect(first).toMatchObject({ effectiveState: Phase.IN_SERVICE, banners: ["NeedsIntervention", "Degraded"] });
    await site.observe("m-cond", [{ type: "Degraded", status: true, reason: "FansFailed", message: "two" }]);
    const then = (await get("m-cond")).status?.conditions.find(({ type }) => type === "Degraded");
    expect(then).toMatchObject({ reason: "FansFailed", message: "two" });
    expect(then?.lastTransition).toEqual(first?.conditions.find(({ type }) => type === "Degraded")?.lastTransition);
  });

  test("what was read from it", async () => {
    await register({ machineId: "m-facts" });
    await site.db.execute(
      `update machines set facts = '{"serial": "S1", "vendor": "Acme", "powerState": "on", "observedAt": "2026-01-01T00:00:00Z",
              "residue": ["media is still inserted"]}' where id = 'm-facts'`,
    );
    expect((await get("m-facts")).status).toMatchObject({
      inventory: { serial: "S1", vendor: "Acme", model: "", powerState: "on", observedAt: { seconds: 1767225600n } },
      residue: ["media is still inserted"],
    });
  });

  test("all that can be read of it when a part cannot, and hides nobody else from the list", async () => {
    await register({ machineId: "m-torn", labels: { torn: "yes" }, spec: { rack: "rack-torn" } });
    await register({ machineId: "m-whole", labels: { torn: "yes" } });
    await site.db.execute(`update machines set conditions = '[{"type": "Nonsense"}]' where id = 'm-torn'`);
    const { machines } = await site.machines.listMachines({ filter: "labels.torn=yes" });
    expect(machines.map(({ machineId }) => machineId)).toEqual(["m-torn", "m-whole"]);
    expect(machines[0]?.status?.waitingFor).toContain("its row cannot be read");
  });
});
