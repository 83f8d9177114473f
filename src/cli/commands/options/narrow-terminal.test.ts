import type { ConnectRouter } from "@connectrpc/connect";
import { Code, ConnectError } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import {
  MachineService,
  MachineStatus_Phase as Phase,
  Run_Phase,
  StepStatus_State,
} from "../../../../contract/baremetal/v1/baremetal_pb.js";
import { ExplainService } from "../../../../contract/millwright/v1/explain_pb.js";
import { RunService } from "../../../../contract/millwright/v1/run_pb.js";
import { createFakeShelves } from "../../../../test/support/cli/fake-shelves.ts";
import { runAgainst } from "../../../../test/support/cli/fake-terminal.ts";

const now = new Date("2026-01-01T00:10:00Z");
const at = (minute: number) => ({ seconds: BigInt(Date.UTC(2026, 0, 1, 0, minute) / 1_000), nanos: 0 });
const terminal = { now, isTTY: true, columns: 80 };
const RUN = "run-76995a1e-e703-4388-9e5d-2c059e2ac5c4";
const MESSAGE =
  "wrong credentials: BMC 10.0.0.4 does not accept user admin with the given password (401): There is no valid session";

/** Read as a person does: lines joined, whatever they were broken into. */
const read = (out: string) => out.replace(/\s+/g, " ");
const longest = (out: string) => Math.max(...out.split("\n").map((line) => line.length));

function routes(router: ConnectRouter): void {
  const steps = [
    { name: "drain-check", state: StepStatus_State.SUCCEEDED, startedAt: at(1), finishedAt: at(2), message: "drained" },
    {
      name: "reboot",
      state: StepStatus_State.FAILED,
      retryCount: 1,
      startedAt: at(2),
      finishedAt: at(5),
      message: MESSAGE,
    },
  ];
  const run = {
    runId: RUN,
    machineId: "m-rack1-04",
    type: "REBOOT",
    phase: Run_Phase.FAILED,
    createdAt: at(1),
    startedAt: at(1),
  };
  const target = { kind: "machine", id: "m-rack1-04" };
  router.service(RunService, {
    getRun: () => ({ run: { run: { ...run, message: MESSAGE, steps }, target } }),
    listRuns: ({ filter }) => ({
      runs: filter.includes("nope") ? [] : [{ run: { ...run, message: MESSAGE }, target }],
    }),
  });
  const condition = (type: string) => ({ type, status: true, lastTransition: at(0) });
  const conditions = ["Reachable", "BMCReachable", "InCustomerCluster"].map(condition);
  router.service(MachineService, {
    listMachines: () => ({
      machines: ["m-rack1-03", "m-rack1-04"].map((machineId, place) => ({
        machineId,
        spec: { rack: "rack-1", provider: "datacenter" },
        status: {
          phase: Phase.MAINTENANCE,
          effectiveState: Phase.MAINTENANCE,
          conditions,
          ...(place === 1 && { banners: ["NeedsIntervention"], activeRunId: RUN }),
        },
      })),
    }),
    getMachine({ machineId }) {
      throw new ConnectError(`machine ${machineId} does not exist`, Code.NotFound);
    },
  });
  router.service(ExplainService, {
    explain: () => ({
      headline: `run ${RUN} FAILED in step reboot: ${MESSAGE}`,
      nextCommands: [
        { command: `millwright run mark-manual ${RUN} --comment <text>`, why: "says that a person takes over" },
      ],
    }),
  });
}

describe("on a terminal of 80 columns", () => {
  test.each(["run list", `run show ${RUN}`, "machine list"])(
    "%s stays within it and leaves nothing out",
    async (line) => {
      const { out } = await runAgainst(routes, `${line} --no-color`, terminal);
      expect(longest(out)).toBeLessThanOrEqual(80);
      expect(read(out)).toContain(line === "machine list" ? `BANNERS NeedsIntervention RUN ${RUN}` : MESSAGE);
    },
  );

  test("a run's steps tell when they began and how long they took", async () => {
    const { out } = await runAgainst(routes, `run show ${RUN} --no-color`, terminal);
    const started = new Date(Date.UTC(2026, 0, 1, 0, 2)).toTimeString().slice(0, 8);
    expect(out).toMatch(new RegExp(`reboot +FAILED +1 +${started} +3m\n`));
  });

  test("explain says what each command does, and breaks no command", async () => {
    const { out } = await runAgainst(routes, `explain run ${RUN} --no-color`, terminal);
    expect(out).toContain(`\nmillwright run mark-manual ${RUN} --comment <text>\n    says that a person takes over\n`);
    expect(read(out)).toContain(MESSAGE);
  });

  test("programs get the same as without a terminal", async () => {
    for (const format of ["json", "yaml", "csv"])
      for (const line of ["run list", `run show ${RUN}`, "machine list", `explain run ${RUN}`]) {
        const { out } = await runAgainst(routes, `${line} -o ${format}`, { now });
        expect((await runAgainst(routes, `${line} -o ${format}`, terminal)).out).toBe(out);
      }
  });
});

test("runs of a machine that does not exist are not just none", async () => {
  const { code, err } = await runAgainst(routes, "run list --machine nope");
  expect(code).toBe(3);
  expect(err).toContain("machine nope does not exist");
});

describe("watch on a terminal", () => {
  async function watched(columns: number, ...ids: string[]): Promise<string[]> {
    const fake = createFakeShelves();
    const running = runAgainst(fake.routes, `watch --from oldest -n ${ids.length} --no-color`, {
      ...terminal,
      columns,
    });
    for (const id of ids) fake.emit({ kind: "machine", id, type: "transition", fromState: "READY", toState: "RMA" });
    return (await running).out.trimEnd().split("\n");
  }

  test.each([200, 240])("has its values below their titles at %d columns", async (columns) => {
    const [head = "", ...rows] = await watched(columns, "m-1", RUN);
    for (const [title, text] of [
      ["ID", /m-1|run-/],
      ["EVENT", /transition/],
      ["CHANGE", /READY → RMA/],
    ] as const)
      for (const row of rows) expect(row.search(text)).toBe(head.search(new RegExp(`\\b${title}\\b`)));
  });

  test("says its head again above columns that became wider, and lays out alone what would move them", async () => {
    const heads = (lines: string[]) => lines.filter((line) => line.startsWith("TIME")).length;
    const wide = "p".repeat(59);
    expect(heads(await watched(300, "m-1", wide))).toBe(2);
    const narrow = await watched(80, "m-1", wide, "m-2");
    expect(heads(narrow)).toBe(1);
    expect(Math.max(...narrow.map((line) => line.length))).toBeLessThanOrEqual(80);
    expect(narrow.join("\n")).toContain(`ID ${wide}`);
  });
});
