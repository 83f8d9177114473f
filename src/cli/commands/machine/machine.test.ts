import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { Code, ConnectError, type ConnectRouter } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  type Machine,
  MachineSchema,
  MachineService,
  MachineStatus_Phase as Phase,
  Run_Phase,
  RunService,
} from "../../../../contract/baremetal/v1/baremetal_pb.js";
import { MachineLifecycleService } from "../../../../contract/millwright/v1/machine_pb.js";
import { runAgainst } from "../../../../test/support/cli/fake-terminal.ts";

const now = new Date("2026-01-01T00:10:00Z");
const at = (minute: number) => ({ seconds: BigInt(Date.UTC(2026, 0, 1, 0, minute) / 1_000), nanos: 0 });

type Parts = Exclude<MessageInitShape<typeof MachineSchema>, Machine>;

const M1: MessageInitShape<typeof MachineSchema> = {
  machineId: "m-1",
  labels: { env: "prod", spare: "" },
  spec: {
    rack: "rack-1",
    slot: "3",
    provider: "datacenter",
    bmcEndpoint: "10.0.0.1",
    bmcTlsTrust: "pin",
    serial: "S1",
  },
  status: {
    phase: Phase.MAINTENANCE,
    effectiveState: Phase.PROVISIONING,
    activeRunId: "run-7",
    banners: ["NeedsIntervention"],
    failing: true,
    waitingFor: "rack rack-1 holds it",
    phaseSince: at(5),
    claim: { kind: "rack", id: "rack-1", since: at(8) },
    residue: ["media is still inserted"],
    conditions: [
      { type: "Reachable", status: false, reason: "NoBanner", message: "connection refused", lastTransition: at(4) },
      { type: "NeedsIntervention", status: true, reason: "RunFailed", lastTransition: at(4) },
    ],
  },
};

/** A server with two machines, one a page; it keeps what it is asked. */
function fakeServer() {
  const asked: { readonly method: string; readonly request: object }[] = [];
  const machines = [M1, { machineId: "m-2", status: { phase: Phase.READY, effectiveState: Phase.READY } }].map((one) =>
    create(MachineSchema, one),
  );
  const keep = (method: string, request: object) => asked.push({ method, request });
  const answer =
    (method: string) =>
    (request: { machine?: Machine | undefined }): Parts => {
      keep(method, request);
      return {
        machineId: request.machine?.machineId || "m-new",
        status: { phase: Phase.FACTORY_READY },
      };
    };
  const moved = (method: string) => (request: object) => {
    keep(method, request);
    return { machine: { machineId: "m-1", status: { phase: Phase.READY } } };
  };
  const routes = (router: ConnectRouter) => {
    router.service(MachineService, {
      listMachines(request) {
        keep("list", request);
        const place = Number(request.pageToken || "0");
        const nextPageToken = place + 1 < machines.length ? String(place + 1) : "";
        return { machines: machines.slice(place, place + 1), nextPageToken };
      },
      getMachine({ machineId }) {
        const found = machines.find((one) => one.machineId === machineId);
        if (!found) throw new ConnectError(`machine ${machineId} does not exist`, Code.NotFound);
        return found;
      },
      registerMachine: answer("register"),
      updateMachine: answer("update"),
    });
    router.service(MachineLifecycleService, {
      acceptMachine: moved("accept"),
      enterMaintenance: moved("enter"),
      exitMaintenance: moved("exit"),
      returnMachine: moved("return"),
      retireMachine: moved("retire"),
      setMachineCredentials(request) {
        keep("credentials", request);
        return {};
      },
    });
    router.service(RunService, {
      listRuns: ({ filter, pageSize }) => {
        keep("runs", { filter, pageSize });
        return { runs: [{ runId: "run-7", type: "REPAVE", phase: Run_Phase.RUNNING, createdAt: at(9) }] };
      },
    });
  };
  return { asked, routes };
}

let directory: string;
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), "millwright-cli-"));
});
afterAll(() => rmSync(directory, { recursive: true, force: true }));
const file = (name: string, text: string): string => {
  writeFileSync(join(directory, name), text);
  return join(directory, name);
};

describe("machine list", () => {
  test("turns pages, and hands the filter over as it is", async () => {
    const { asked, routes } = fakeServer();
    const { out } = await runAgainst(routes, ["machine", "list", "--filter", "rack=rack-1 AND phase=READY"], { now });
    expect(out).toMatch(/ID +PHASE +EFFECTIVE +RACK +PROVIDER +REACHABLE +BMC +IN CLUSTER +BANNERS +RUN +WAITS FOR/);
    expect(out).toMatch(
      /m-1 +MAINTENANCE +PROVISIONING +rack-1 +datacenter +no 6m +- +- +NeedsIntervention +run-7 +rack rack-1/,
    );
    expect(out).toMatch(/m-2 +READY +READY/);
    expect(asked.map(({ request }) => request)).toMatchObject([
      { filter: "rack=rack-1 AND phase=READY", pageToken: "" },
      { filter: "rack=rack-1 AND phase=READY", pageToken: "1" },
    ]);
  });

  test("--failing has the server leave out what is well, so that a page is full of what is not", async () => {
    const { asked, routes } = fakeServer();
    await runAgainst(routes, "machine list --failing", { now });
    expect(asked[0]?.request).toMatchObject({ filter: "failing=true" });
    await runAgainst(routes, ["machine", "list", "--failing", "--filter", "rack=rack-1"], { now });
    expect(asked.at(-1)?.request).toMatchObject({ filter: "rack=rack-1 AND failing=true" });
    const none = (router: ConnectRouter) => router.service(MachineService, { listMachines: () => ({}) });
    expect((await runAgainst(none, "machine list --failing", { now })).err).toBe("No machine is in trouble.\n");
  });

  test("gives programs the words of the contract", async () => {
    const { out } = await runAgainst(fakeServer().routes, "machine list -o json", { now });
    const [first] = JSON.parse(out) as [{ status: object }];
    expect(first.status).toMatchObject({ phase: "MAINTENANCE", effective_state: "PROVISIONING" });
  });
});

describe("machine show", () => {
  test("tells phase, conditions, banners, who works on it and its runs", async () => {
    const { asked, routes } = fakeServer();
    const { out } = await runAgainst(routes, "machine show m-1", { now });
    expect(out).toMatch(/Phase: +MAINTENANCE/);
    expect(out).toMatch(/Effective state: +PROVISIONING/);
    expect(out).toMatch(/Banners: +NeedsIntervention/);
    expect(out).toMatch(/Claimed by: +rack rack-1 for 2m/);
    expect(out).toMatch(/Left behind: +media is still inserted/);
    expect(out).toMatch(/Place: +rack-1, slot 3/);
    expect(out).toMatch(/Labels: +env=prod, spare/);
    expect(out).toMatch(/Reachable +no +6m +NoBanner +connection refused/);
    expect(out).toMatch(/run-7 +REPAVE +RUNNING/);
    expect(asked).toContainEqual({ method: "runs", request: { filter: "machine_id=m-1", pageSize: 5 } });
  });

  test("of one that is not there ends with its own exit code", async () => {
    expect((await runAgainst(fakeServer().routes, "machine show m-9")).code).toBe(3);
  });
});

describe("jump hosts", () => {
  const KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA==";

  test("are given in their order, each with its host key; an empty one removes all", async () => {
    const { routes, asked } = fakeServer();
    const update = ["machine", "update", "m-1", "--jump-host"];
    expect((await runAgainst(routes, [...update, `ops@jump-1:2222=${KEY}`, "[fd00::1]:22=SHA256:abc"])).code).toBe(0);
    await runAgainst(routes, [...update, ""]);
    const sent = asked
      .filter(({ method }) => method === "update")
      .map(({ request }) => request as { machine: Machine });
    expect(sent.map(({ machine }) => machine.spec?.jumpHosts)).toMatchObject([
      [
        { username: "ops", endpoint: "jump-1:2222", hostKey: KEY },
        { username: "", endpoint: "[fd00::1]:22", hostKey: "SHA256:abc" },
      ],
      [],
    ]);
  });

  test.each(["jump-1", "jump-1=", "=SHA256:abc", "ops@=SHA256:abc"])("%j is refused", async (host) => {
    const { routes, asked } = fakeServer();
    const { code, err } = await runAgainst(routes, ["machine", "update", "m-1", "--jump-host", host]);
    expect({ code, updates: asked.filter(({ method }) => method === "update") }).toEqual({ code: 2, updates: [] });
    expect(err).toContain("[user@]host[:port]=<host key>");
  });
});

describe("machine register", () => {
  test("sends what the options say", async () => {
    const { asked, routes } = fakeServer();
    const line =
      "machine register --id m-3 --mac 02:00:00:00:00:01 02:00:00:00:00:02 --rack rack-2 --bmc-endpoint 10.0.0.9:8443 --bmc-protocol redfish --tls-trust off --cluster c1 --customer acme --label env=prod tier=";
    const { out } = await runAgainst(routes, line);
    expect(out).toBe("Machine m-3 registered; it is FACTORY_READY.\n");
    expect(asked[0]?.request).toMatchObject({
      machine: {
        machineId: "m-3",
        labels: { env: "prod", tier: "" },
        spec: {
          macAddresses: ["02:00:00:00:00:01", "02:00:00:00:00:02"],
          rack: "rack-2",
          bmcEndpoint: "10.0.0.9:8443",
          bmcProtocol: "redfish",
          bmcTlsTrust: "off",
          targetClusterRef: "c1",
          customerId: "acme",
        },
      },
    });
  });

  test("refuses when nothing is given of it, and the server is not asked", async () => {
    const { asked, routes } = fakeServer();
    const { code, err } = await runAgainst(routes, "machine register");
    expect(err).toContain("no field of the machine is given");
    expect([code, asked]).toEqual([2, []]);
  });

  test("takes what `show -o yaml` printed, without its status, and lets options win", async () => {
    const { asked, routes } = fakeServer();
    const { out } = await runAgainst(routes, "machine show m-1 -o yaml");
    const path = file("m-1.yaml", out);
    await runAgainst(routes, ["machine", "register", "-f", path, "--slot", "9"]);
    const registered = asked.find(({ method }) => method === "register")?.request;
    expect(registered).toMatchObject({
      machine: { machineId: "m-1", labels: { env: "prod" }, spec: { rack: "rack-1", slot: "9" } },
    });
    expect(registered).not.toHaveProperty("machine.status.phase");
  });

  test.each([
    ["a file that is not there", () => join(directory, "none.yaml"), "does not exist"],
    ["a field that is none", () => file("odd.yaml", "colour: red\n"), "colour"],
    ["no YAML at all", () => file("torn.yaml", "a: [\n"), "neither YAML nor JSON: line"],
  ])("refuses %s", async (_, path, said) => {
    const { code, err } = await runAgainst(fakeServer().routes, ["machine", "register", "-f", path()]);
    expect(code).toBe(2);
    expect(err).toContain(said);
  });
});

describe("machine update and label", () => {
  test("change only what is given", async () => {
    const { asked, routes } = fakeServer();
    await runAgainst(routes, ["machine", "update", "m-1", "--slot", "4", "--serial", ""]);
    expect(asked[0]?.request).toMatchObject({ machine: { spec: { rack: "rack-1", slot: "4", serial: "" } } });
  });

  test("with nothing given, nothing is asked of the server", async () => {
    const { asked, routes } = fakeServer();
    expect((await runAgainst(routes, "machine update m-1")).code).toBe(2);
    expect(asked).toEqual([]);
  });

  test("set and remove labels", async () => {
    const { asked, routes } = fakeServer();
    await runAgainst(routes, "machine label m-1 env=dev spare- new=a=b");
    expect(asked).toMatchObject([
      { method: "update", request: { machine: { machineId: "m-1", labels: { env: "dev", new: "a=b" } } } },
    ]);
    expect(asked[0]?.request).not.toHaveProperty("machine.spec.rack");
  });

  test("remove the last label, too", async () => {
    const { asked, routes } = fakeServer();
    await runAgainst(routes, "machine label m-1 env- spare-");
    expect(asked).toMatchObject([
      { method: "register", request: { machine: { labels: {}, spec: { rack: "rack-1" } } } },
    ]);
  });
});

describe("the phases", () => {
  test.each([
    ["accept m-1 --comment ok", "accept", { machineId: "m-1", comment: "ok" }],
    ["enter-maintenance m-1", "enter", { machineId: "m-1", comment: "", evictBarePods: false, deleteLocalData: false }],
    [
      "enter-maintenance m-1 --evict-bare-pods --delete-local-data",
      "enter",
      { evictBarePods: true, deleteLocalData: true },
    ],
    ["exit-maintenance m-1 --acknowledge --comment seen", "exit", { acknowledge: true, comment: "seen" }],
    ["exit-maintenance m-1", "exit", { acknowledge: false }],
    ["return m-1", "return", { machineId: "m-1" }],
    ["retire m-1 --yes", "retire", { machineId: "m-1" }],
  ])("machine %s asks for it and says where the machine is now", async (line, method, request) => {
    const { asked, routes } = fakeServer();
    const { out } = await runAgainst(routes, `machine ${line}`);
    expect(out).toBe("Machine m-1 is READY now.\n");
    expect(asked).toMatchObject([{ method, request }]);
  });

  test("nobody is retired without a yes", async () => {
    const { asked, routes } = fakeServer();
    expect((await runAgainst(routes, "machine retire m-1")).code).toBe(2);
    expect((await runAgainst(routes, "machine retire m-1", { isTTY: true, answer: "no" })).code).toBe(2);
    expect(asked).toEqual([]);
    expect((await runAgainst(routes, "machine retire m-1", { isTTY: true, answer: "yes" })).code).toBe(0);
  });
});

test("who retires a machine that serves is told so, and types its name instead of yes", async () => {
  const asked: string[] = [];
  const seen = { type: "InCustomerCluster", status: true, message: "node n1 of c1" };
  const status = { effectiveState: Phase.IN_SERVICE, conditions: [seen] };
  const serving = { machineId: "m-1", spec: { targetClusterRef: "wanted" }, status };
  const routes = (router: ConnectRouter) => {
    router.service(MachineService, { getMachine: () => serving });
    router.service(MachineLifecycleService, {
      retireMachine({ machineId }) {
        asked.push(machineId);
        return { machine: { machineId, status: { phase: Phase.RETIRED } } };
      },
    });
  };
  const refused = await runAgainst(routes, "machine retire m-1", { isTTY: true, answer: "yes" });
  expect(refused.err).toContain("IN_SERVICE (node n1 of c1):");
  expect(refused.err).not.toContain("wanted");
  expect([refused.code, asked]).toEqual([2, []]);
  expect((await runAgainst(routes, "machine retire m-1", { isTTY: true, answer: "m-1" })).code).toBe(0);
  const forced = await runAgainst(routes, "machine retire m-1 -y");
  expect(forced.err).toContain("machine enter-maintenance");
  expect(asked).toEqual(["m-1", "m-1"]);
});

describe("machine set-credentials", () => {
  test("reads secrets from files, and repeats none of them", async () => {
    const { asked, routes } = fakeServer();
    const [password, key] = [file("password", "hush\n"), file("key", "-----BEGIN…\n")];
    const { out, err } = await runAgainst(routes, [
      ...["machine", "set-credentials", "m-1", "--bmc-username", "root", "--bmc-password-file", password],
      ...["--ssh-username", "ubuntu", "--ssh-key-file", key],
    ]);
    expect(asked[0]?.request).toMatchObject({
      bmcUsername: "root",
      bmcPassword: "hush",
      sshUsername: "ubuntu",
      sshPrivateKey: "-----BEGIN…\n",
    });
    expect(out + err).not.toContain("hush");
  });

  test.each([
    "machine set-credentials m-1",
    "machine set-credentials m-1 --ssh-username root",
    "machine set-credentials m-1 --ssh-key-file /nowhere",
    "machine set-credentials m-1 --bmc-username root",
  ])("%s is refused", async (line) => {
    const { asked, routes } = fakeServer();
    expect((await runAgainst(routes, line)).code).toBe(2);
    expect(asked).toEqual([]);
  });
});
