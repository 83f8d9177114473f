import { Code, ConnectError, type ConnectRouter } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import {
  MachineService,
  MachineStatus_Phase,
  Run_Phase,
  RunService,
} from "../../../../contract/baremetal/v1/baremetal_pb.js";
import { RunService as AllRunsService, RunActionsService } from "../../../../contract/millwright/v1/run_pb.js";
import { WatchService } from "../../../../contract/millwright/v1/watch_pb.js";
import { runAgainst } from "../../../../test/support/cli/fake-terminal.ts";

interface Answers {
  /** By machine. */
  readonly disturbs?: Readonly<Record<string, string>>;
  readonly warnings?: readonly string[];
  readonly refuses?: readonly string[];
  /** How runs end, by machine; SUCCEEDED unless told. */
  readonly ends?: Readonly<Record<string, Run_Phase>>;
  /** Machines that PreviewRun refuses as StartRun does. */
  readonly unknown?: readonly string[];
  /** Machines on which the request has made a run before. */
  readonly made?: readonly string[];
  /** An older server, without PreviewRun. */
  readonly isOld?: boolean;
}

function server({ disturbs = {}, warnings = [], refuses = [], ends = {}, isOld = false, ...more }: Answers = {}) {
  const { unknown = [], made = [] } = more;
  const started: { readonly machineId: string; readonly requestId: string }[] = [];
  const routes = (router: ConnectRouter) => {
    if (!isOld)
      router.service(RunActionsService, {
        previewRun({ machineId }) {
          if (unknown.includes(machineId)) throw new ConnectError(`${machineId} does not exist`, Code.NotFound);
          return { warnings: [...warnings], disturbsCluster: disturbs[machineId] ?? "" };
        },
      });
    router.service(RunService, {
      startRun({ machineId, requestId }) {
        if (unknown.includes(machineId)) throw new ConnectError(`${machineId} does not exist`, Code.NotFound);
        if (refuses.includes(machineId)) throw new ConnectError(`${machineId} is RETIRED`, Code.FailedPrecondition);
        started.push({ machineId, requestId });
        return { runId: `run-${machineId}`, machineId, phase: Run_Phase.PENDING };
      },
    });
    router.service(AllRunsService, {
      listRuns: ({ filter }) => ({
        runs: made
          .filter((id) => filter === `request_id=once AND machine_id=${id}`)
          .map((id) => ({ run: { runId: `run-${id}` } })),
      }),
      getRun: ({ runId }) => {
        const machineId = runId.slice("run-".length);
        const run = { runId, machineId, phase: ends[machineId] ?? Run_Phase.SUCCEEDED };
        return { run: { run, target: { kind: "machine", id: machineId } } };
      },
    });
    router.service(WatchService, {
      async *watch() {
        yield { message: { case: "bookmark", value: { cursor: "1.1.1" } } } as const;
      },
    });
  };
  return { routes, started };
}

describe("millwright run start with several machines", () => {
  const LINE = "run start --machine m-1 --machine m-2 --machine m-1 --type REBOOT";

  test("starts one run on each, under one request id", async () => {
    const { routes, started } = server();
    const { code, out } = await runAgainst(routes, `${LINE} --request-id once`);
    expect(code).toBe(0);
    expect(started).toEqual([
      { machineId: "m-1", requestId: "once" },
      { machineId: "m-2", requestId: "once" },
    ]);
    expect(out).toMatch(/run-m-1.*\n.*run-m-2/);
  });

  test("a machine that is refused is named, and keeps no other from its run", async () => {
    const { routes, started } = server({ refuses: ["m-1"] });
    const { code, err } = await runAgainst(routes, LINE);
    expect(code).toBe(4);
    expect(err).toContain("error: m-1: m-1 is RETIRED");
    expect(started.map(({ machineId }) => machineId)).toEqual(["m-2"]);
  });

  test("nor does one that does not exist", async () => {
    const { routes, started } = server({ unknown: ["m-1"] });
    const { code, err } = await runAgainst(routes, LINE);
    expect(code).not.toBe(0);
    expect(err).toContain("error: m-1: m-1 does not exist");
    expect(started.map(({ machineId }) => machineId)).toEqual(["m-2"]);
  });

  test("a preview of them is one list for programs, each with its machine", async () => {
    const { code, out } = await runAgainst(server().routes, `${LINE} --dry-run -o json`);
    expect(code).toBe(0);
    expect(JSON.parse(out)).toEqual([
      expect.objectContaining({ machine_id: "m-1" }),
      expect.objectContaining({ machine_id: "m-2" }),
    ]);
  });

  test("--wait follows all of them; the exit code is 1 unless each SUCCEEDED", async () => {
    const good = await runAgainst(server().routes, `${LINE} --wait`);
    expect(good).toMatchObject({ code: 0, err: expect.stringContaining("m-2: SUCCEEDED") });
    const { code, err } = await runAgainst(server({ ends: { "m-2": Run_Phase.FAILED } }).routes, `${LINE} --wait`);
    expect(code).toBe(1);
    expect(err).toContain("m-2: FAILED");
  });
});

test("millwright run start --filter --dry-run shows for each machine what would be done and what it disturbs, and starts nothing", async () => {
  const { routes: others, started } = server({ disturbs: { "m-2": "prod" } });
  const routes = (router: ConnectRouter) => {
    others(router);
    router.service(MachineService, {
      listMachines: () => ({
        machines: [
          { machineId: "m-1" },
          { machineId: "m-2" },
          { machineId: "m-gone", status: { phase: MachineStatus_Phase.RETIRED } },
        ],
      }),
    });
  };
  const line = "run start --filter rack=rack-1 --type REBOOT --dry-run";
  const { code, out, err } = await runAgainst(routes, line);
  expect(code).toBe(0);
  expect(out).toMatch(/MACHINE +PLAN +STEPS +REBOOTS[^\n]*DISTURBS[^\n]*\nm-1 [^\n]*\nm-2 [^\n]*prod/);
  expect(out).not.toContain("m-gone");
  expect(err).toContain("2 machines match; 0 would be refused or wait, 1 serve a cluster and are not drained");
  const json = JSON.parse((await runAgainst(routes, `${line} -o json`)).out);
  expect(json).toMatchObject([{ machine_id: "m-1" }, { machine_id: "m-2", disturbs_cluster: "prod" }]);
  expect(started).toEqual([]);
});

describe("millwright run start on a machine that serves a cluster", () => {
  const LINE = "run start --machine m-1 --type REPAVE";
  const disturbs = { "m-1": "prod" };

  test("is refused without a terminal, and starts nothing", async () => {
    const { routes, started } = server({ disturbs });
    const { code, err } = await runAgainst(routes, LINE);
    expect(code).toBe(2);
    expect(err).toContain("REPAVE disturbs m-1 (serves cluster prod, not drained)");
    expect(err).toContain("--yes");
    expect(started).toEqual([]);
  });

  test.each([
    ["yes", 1],
    ["no", 0],
  ])("asks at a terminal: the answer %s starts %i", async (answer, count) => {
    const { routes, started } = server({ disturbs });
    await runAgainst(routes, LINE, { isTTY: true, answer });
    expect(started).toHaveLength(count);
  });

  test("a request that has made its run before is not asked about: it is answered with that run", async () => {
    const { routes, started } = server({ disturbs, made: ["m-1"] });
    expect((await runAgainst(routes, `${LINE} --request-id once`)).code).toBe(0);
    expect(started).toHaveLength(1);
    expect((await runAgainst(routes, `${LINE} --request-id another`)).code).toBe(2);
  });

  test("--yes starts it without asking", async () => {
    const { routes, started } = server({ disturbs });
    expect((await runAgainst(routes, `${LINE} --yes`)).code).toBe(0);
    expect(started).toHaveLength(1);
  });

  test("a machine that serves nothing is not asked about, nor is anything with a server that cannot tell", async () => {
    for (const answers of [{}, { isOld: true, disturbs }]) {
      const { routes, started } = server(answers);
      expect((await runAgainst(routes, LINE)).code).toBe(0);
      expect(started).toHaveLength(1);
    }
  });
});

test("what may not be meant is warned about on standard error, also with --yes", async () => {
  const warnings = ["type REBOOT contradicts plan plan/rma: the plan takes the machine out of service"];
  for (const more of ["", " --yes"]) {
    const { routes, started } = server({ warnings });
    const { code, err } = await runAgainst(routes, `run start --machine m-1 --type REBOOT --plan plan/rma${more}`);
    expect({ code, count: started.length }).toEqual({ code: 0, count: 1 });
    expect(err).toContain(`warning: ${warnings[0]}`);
  }
});
