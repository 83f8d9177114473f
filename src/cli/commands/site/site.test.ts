import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ConnectRouter } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { MachineService } from "../../../../contract/baremetal/v1/baremetal_pb.js";
import { Forge } from "../../../../contract/forge/forge_pb.js";
import { MachineLifecycleService } from "../../../../contract/millwright/v1/machine_pb.js";
import { RackService } from "../../../../contract/millwright/v1/rack_pb.js";
import { SwitchService } from "../../../../contract/millwright/v1/switch_pb.js";
import { runAgainst } from "../../../../test/support/cli/fake-terminal.ts";

const SITE = `
rack_profiles:
  - {name: small, compute: {count: 1}, switches: {count: 1}, power_shelves: {count: 1}}
expected_racks:
  - {rack_id: rack-1, rack_profile_id: small}
expected_switches:
  - {bmc_mac: "02:00:00:00:00:01", bmc_endpoint: 10.0.0.1, bmc_username: root, bmc_password: s3cret, serial: SN1, rack_id: rack-1, name: sw-1}
expected_power_shelves:
  - {bmc_mac: "02:00:00:00:00:02", bmc_endpoint: 10.0.0.2, bmc_username: root, serial: SN2, rack_id: rack-1}
machines:
  - {machine_id: m-1, spec: {rack: rack-1, slot: "3"}}
`;

function siteFile(text = SITE): string {
  const file = join(mkdtempSync(join(tmpdir(), "site-")), "site.yaml");
  writeFileSync(file, text);
  return file;
}

/** A server that has the shelf, at another address, and a switch that the file does not have. */
function server(calls: string[]) {
  const called = (name: string) => (request: object) => {
    calls.push(
      `${name} ${JSON.stringify(request, (key, value) => (key.startsWith("$") ? undefined : typeof value === "bigint" ? Number(value) : value))}`,
    );
    return {};
  };
  return (router: ConnectRouter) => {
    router.service(RackService, {
      listRackProfiles: () => ({ profiles: [{ name: "old" }] }),
      listRacks: () => ({ racks: [{ id: "rack-1", state: "created" }] }),
      putRackProfile: called("put profile"),
      deleteRackProfile: called("delete profile"),
    });
    router.service(MachineService, {
      listMachines: () => ({ machines: [{ machineId: "m-1", spec: { rack: "rack-2", slot: "3", serial: "S" } }] }),
      registerMachine: called("register"),
    });
    router.service(Forge, {
      getAllExpectedRacks: () => ({ expectedRacks: [{ rackId: { id: "rack-1" }, rackProfileId: { id: "small" } }] }),
      getAllExpectedSwitches: () => ({ expectedSwitches: [{ bmcMacAddress: "02:00:00:00:00:99" }] }),
      getAllExpectedPowerShelves: () => ({
        expectedPowerShelves: [
          {
            bmcMacAddress: "02:00:00:00:00:02",
            bmcIpAddress: "10.0.0.9:443",
            bmcUsername: "root",
            shelfSerialNumber: "SN2",
            rackId: { id: "rack-1" },
          },
        ],
      }),
      addExpectedSwitch: called("add switch"),
      updateExpectedPowerShelf: called("update shelf"),
      deleteExpectedSwitch: called("delete switch"),
    });
  };
}

test("a dry run shows the difference and changes nothing", async () => {
  const calls: string[] = [];
  const { code, out } = await runAgainst(server(calls), `site apply -f ${siteFile()} --dry-run --prune -o json`);
  expect(code).toBe(0);
  expect(calls).toEqual([]);
  const lines = JSON.parse(out).map(({ action, what, id, differs_in }: Record<string, unknown>) => [
    action,
    what,
    id,
    differs_in,
  ]);
  expect(lines).toEqual([
    ["add", "rack profile", "small", []],
    ["update", "expected power shelf", "020000000002", ["bmc_ip_address"]],
    ["add", "expected switch", "020000000001", []],
    ["update", "machine", "m-1", ["spec"]],
    ["remove", "expected switch", "020000000099", []],
    ["remove", "rack profile", "old", []],
  ]);
  expect(out).not.toContain("s3cret");
});

test("without --prune nothing is removed, and what is named by others is put first", async () => {
  const calls: string[] = [];
  const { code } = await runAgainst(server(calls), `site apply -f ${siteFile()} --yes`);
  expect(code).toBe(0);
  expect(calls.map((call) => call.split(" {")[0])).toEqual(["put profile", "update shelf", "add switch", "register"]);
  expect(calls[2]).toContain('"bmcPassword":"s3cret"');
  expect(calls[2]).toContain('"rackId":{"id":"rack-1"}');
});

test("the address of NVOS is a field of a switch: it is compared, and set once the switch is on record", async () => {
  const entry = (mac: number, address: string) =>
    `  - {bmc_mac: "02:00:00:00:00:0${mac}", serial: SN${mac}, nvos_address: "${address}"}`;
  const text = ["expected_switches:", entry(1, "10.0.1.1"), entry(2, "10.0.1.2"), entry(3, "10.0.1.3"), entry(4, "")];
  const calls: string[] = [];
  const { code, out } = await runAgainst(
    (router) => {
      router.service(RackService, { listRacks: () => ({}) });
      router.service(MachineService, {});
      router.service(SwitchService, {
        listExpectedSwitchOsAddresses: () => ({
          addresses: [2, 3].map((n) => ({ bmcMacAddress: `02:00:00:00:00:0${n}`, osAddress: "10.0.1.2" })),
        }),
        setExpectedSwitchOsAddress: ({ bmcMacAddress, osAddress }) => {
          calls.push(`set ${bmcMacAddress} ${osAddress}`);
          return {};
        },
      });
      router.service(Forge, {
        getAllExpectedSwitches: () => ({
          expectedSwitches: [2, 3, 4].map((n) => ({
            bmcMacAddress: `02:00:00:00:00:0${n}`,
            switchSerialNumber: `SN${n}`,
          })),
        }),
        addExpectedSwitch: ({ bmcMacAddress }) => {
          calls.push(`add ${bmcMacAddress}`);
          return {};
        },
        updateExpectedSwitch: () => ({}),
      });
    },
    `site apply -f ${siteFile(text.join("\n"))} --yes -o json`,
  );
  expect(code).toBe(0);
  expect(JSON.parse(out)).toMatchObject([
    { action: "add", id: "020000000001" },
    { action: "update", id: "020000000003", differs_in: ["nvos_address"] },
  ]);
  expect(calls.filter((call) => call.includes(":01"))).toEqual([
    "add 02:00:00:00:00:01",
    "set 02:00:00:00:00:01 10.0.1.1",
  ]);
  expect(calls).toContain("set 02:00:00:00:00:03 10.0.1.3");
  expect(calls).toHaveLength(3);
});

/** A server that knows machines, and what it was told. */
function machineServer(calls: string[], known: readonly object[] = []) {
  return (router: ConnectRouter) => {
    router.service(RackService, { listRacks: () => ({}) });
    router.service(Forge, {});
    router.service(MachineService, {
      listMachines: () => ({ machines: known }) as never,
      registerMachine: ({ machine }) => {
        calls.push(`register ${machine?.machineId}`);
        return {};
      },
    });
    router.service(MachineLifecycleService, {
      setMachineCredentials: ({ machineId, bmcUsername, bmcPassword, sshUsername, sshPrivateKey }) => {
        calls.push(`credentials ${[machineId, bmcUsername, bmcPassword, sshUsername, sshPrivateKey].join(" ")}`);
        return {};
      },
    });
  };
}

const SIGNED_IN = `
machines:
  - {machine_id: m-1, spec: {rack: rack-1}, bmc_username: root, bmc_password: s3cret, ssh_username: admin, ssh_private_key: key}
  - {machine_id: m-2, spec: {rack: rack-1}}
`;

test("a machine is registered, and then told how it is signed in to", async () => {
  const calls: string[] = [];
  const { code, out } = await runAgainst(machineServer(calls), `site apply -f ${siteFile(SIGNED_IN)} --yes -o json`);
  expect(code).toBe(0);
  expect(calls.filter((call) => call.includes("m-1"))).toEqual([
    "register m-1",
    "credentials m-1 root s3cret admin key",
  ]);
  expect(calls.filter((call) => call.includes("m-2"))).toEqual(["register m-2"]);
  expect(out).not.toContain("s3cret");
});

test.each([
  ["NoCredentials", ["register m-1", "credentials m-1 root s3cret admin key"]],
  ["NoAnswer", []],
])(
  "of a machine whose BMC is not read (%s) credentials are sent once more only where there are none",
  async (reason, sent) => {
    const status = { conditions: [{ type: "BMCReachable", status: false, reason }] };
    const known = ["m-1", "m-2"].map((machineId) => ({ machineId, spec: { rack: "rack-1" }, status }));
    const calls: string[] = [];
    await runAgainst(machineServer(calls, known), `site apply -f ${siteFile(SIGNED_IN)} --yes`);
    expect(calls).toEqual(sent);
  },
);

test("entries of one list are put at the same time, and those of the next once all are done", async () => {
  const under = new Set<string>();
  let most = 0;
  const allThere = Promise.withResolvers<void>();
  const lines = Array.from(
    { length: 20 },
    (_, n) => `  - {bmc_mac: "02:00:00:00:00:${n + 10}", serial: SN${n}, rack_id: r${n}}`,
  );
  const { code } = await runAgainst(
    (router) => {
      router.service(RackService, { listRacks: () => ({}) });
      router.service(MachineService, {
        listMachines: () => ({ machines: [] }),
        registerMachine: () => {
          expect(under.size).toBe(0);
          return {};
        },
      });
      router.service(Forge, {
        getAllExpectedSwitches: () => ({ expectedSwitches: [] }),
        addExpectedSwitch: async ({ bmcMacAddress }) => {
          under.add(bmcMacAddress);
          most = Math.max(most, under.size);
          if (under.size === 20) allThere.resolve();
          await allThere.promise; // all of them must be on their way before the first is answered
          under.delete(bmcMacAddress);
          return {};
        },
      });
    },
    `site apply -f ${siteFile(`expected_switches:\n${lines.join("\n")}\nmachines: [{machine_id: m-1, spec: {rack: r1}}]`)} --yes`,
  );
  expect(code).toBe(0);
  expect(most).toBe(20);
});

test("a refusal is shown with its entry, the rest is done, and the exit code tells", async () => {
  const { code, out } = await runAgainst(
    (router) => {
      router.service(RackService, {
        listRackProfiles: () => ({ profiles: [] }),
        putRackProfile: () => {
          throw new Error("no");
        },
      });
      router.service(Forge, {});
      router.service(MachineService, {});
    },
    `site apply -f ${siteFile("rack_profiles: [{name: small}]")} --yes -o json`,
  );
  expect(code).toBe(1);
  expect(JSON.parse(out)[0].result).toContain("refused");
});

test.each([
  ["a list that no site has", "racks: []", "known: rack_profiles"],
  ["a field that the contract does not have", "expected_racks: [{rack_id: r, colour: red}]", "expected_racks[0]"],
  ["what is neither YAML nor JSON", "{", "neither JSON nor YAML"],
])("%s is refused", async (_, text, message) => {
  const { code, err } = await runAgainst(server([]), `site apply -f ${siteFile(text)} --dry-run`);
  expect(code).toBe(2);
  expect(err).toContain(message);
});

test("a password that is no text is not repeated", async () => {
  for (const entry of ["expected_switches: [{bmc_mac: a,", "machines: [{machine_id: m-1,"]) {
    const text = `${entry} bmc_password: 918273}]`;
    const { code, err } = await runAgainst(server([]), `site apply -f ${siteFile(text)} --dry-run`);
    expect(code).toBe(2);
    expect(err).not.toContain("918273");
    expect(err).toContain("bmc_password is not a text");
  }
});

test("says how many racks are maintained again: those of a profile whose counts change, and those that devices join or leave", async () => {
  const racks = [
    ...Array.from({ length: 300 }, (_, at) => ({ id: `r-${at + 100}`, profile: "large", state: "ready" })),
    { id: "rack-1", profile: "same", state: "ready" },
    { id: "rack-2", profile: "same", state: "error" },
    { id: "rack-3", profile: "same", state: "ready" },
    { id: "rack-new", profile: "large", state: "created" },
  ];
  const large = { name: "large", compute: { count: 18 } };
  const apply = (text: string) =>
    runAgainst(
      (router) => {
        router.service(RackService, {
          listRackProfiles: () => ({ profiles: [large, { name: "same", compute: { count: 1 } }] }),
          listRacks: () => ({ racks }),
        });
        router.service(MachineService, {
          listMachines: () => ({ machines: [{ machineId: "m-1", spec: { rack: "rack-2" } }] }),
        });
        router.service(Forge, {});
      },
      `site apply -f ${siteFile(text)} --dry-run`,
    );
  const counts = await apply("rack_profiles: [{name: large, compute: {count: 16}}]");
  expect(counts.err).toContain(
    "300 racks are discovered and maintained again by these changes: r-100, r-101, r-102 and 297 more",
  );
  const moved = await apply("machines: [{machine_id: m-1, spec: {rack: rack-1}}]");
  expect(moved.err).toContain("2 racks are discovered and maintained again by these changes: rack-1, rack-2 (");
  const named = await apply("rack_profiles: [{name: large, hardware_type: gb300, compute: {count: 18}}]");
  expect(named.err).not.toContain("maintained again");
});
