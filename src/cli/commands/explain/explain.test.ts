import type { ConnectRouter } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { MachineStatus_Phase } from "../../../../contract/baremetal/v1/baremetal_pb.js";
import { ExplainService } from "../../../../contract/millwright/v1/explain_pb.js";
import { RunActionsService } from "../../../../contract/millwright/v1/run_pb.js";
import { runAgainst } from "../../../../test/support/cli/fake-terminal.ts";

const now = new Date("2026-01-01T00:10:00Z");
const at = (minute: number) => ({ seconds: BigInt(Date.UTC(2026, 0, 1, 0, minute) / 1_000), nanos: 0 });

describe("explain", () => {
  const asked: { kind: string; id: string }[] = [];
  const routes = (router: ConnectRouter) =>
    router.service(ExplainService, {
      explain({ kind, id }) {
        asked.push({ kind, id });
        return {
          headline: "run run-1 on machine m-1 is PENDING behind rack r-1",
          waitingFor: ["rack r-1, which works on it", "the next attempt at noon"],
          since: at(8),
          claims: [
            {
              thingKind: "machine",
              thingId: "m-1",
              claim: { holderKind: "rack", holderId: "r-1", since: at(5) },
              reason: "works on it",
            },
          ],
          lastFailure: { runId: "run-1", step: "reboot", attempt: 2, message: "BMC\u001b[2J is gone", at: at(9) },
          nextCommands: [
            { command: "millwright explain rack r-1", why: "says what that one does" },
            { command: "millwright run cancel run-1", why: "ends it" },
          ],
        };
      },
    });

  test("prints why, since when, who is in the way, what failed, and what helps, the best first", async () => {
    const { code, out } = await runAgainst(routes, "explain run run-1", { now });
    expect(code).toBe(0);
    expect(out.replace(/\d{4}-\d\d-\d\d \d\d:\d\d:\d\d/, "TIME").split("\n")).toEqual([
      "Why:          run run-1 on machine m-1 is PENDING behind rack r-1",
      "Since:        TIME, 2m ago",
      "Waits for:    rack r-1, which works on it",
      "then:         the next attempt at noon",
      "In the way:   rack r-1 works on it: machine m-1, for 5m",
      "Last failure: BMC\\x1b[2J is gone (run run-1, step reboot, attempt 2, 1m ago)",
      "",
      "What helps",
      "COMMAND                      WHAT IT DOES",
      "millwright explain rack r-1  says what that one does",
      "millwright run cancel run-1  ends it",
      "",
    ]);
  });

  test.each([
    ["eps", "expected_power_shelf"],
    ["expected-power-shelf", "expected_power_shelf"],
    ["m", "machine"],
    ["MACHINE", "machine"],
  ])("takes %s for %s", async (word, kind) => {
    await runAgainst(routes, `explain ${word} x`);
    expect(asked.at(-1)).toEqual({ kind, id: "x" });
  });

  test("as JSON holds every field of the contract", async () => {
    const { out } = await runAgainst(routes, "explain run run-1 -o json");
    expect(JSON.parse(out)).toMatchObject({
      doing: "",
      next_commands: [{ command: "millwright explain rack r-1" }, { command: "millwright run cancel run-1" }],
      last_failure: { run_id: "run-1", attempt: 2 },
      claims: [{ thing_kind: "machine", claim: { holder_kind: "rack" } }],
    });
  });
});

describe("run start --dry-run", () => {
  const asked: object[] = [];
  const server =
    (conflicts: string[], children: object[] = []) =>
    (router: ConnectRouter) =>
      router.service(RunActionsService, {
        previewRun({ machineId, type, planId, params }) {
          asked.push({ machineId, type, planId, params });
          return {
            planId: "plan/reboot",
            steps: [
              {
                step: {
                  name: "reboot",
                  timeoutSeconds: 300,
                  maxRetries: 1,
                  kind: { case: "reboot", value: { mode: "bmc" } },
                },
                needs: ["reset", "system"],
                reboots: true,
                expectedDuration: { seconds: 90n, nanos: 0 },
                children,
              },
            ],
            conflicts,
            reboots: 1,
            expectedDuration: { seconds: 90n, nanos: 0 },
            phaseOnSuccess: MachineStatus_Phase.READY,
          };
        },
      });
  const LINE = "run start --machine m-1 --type REBOOT --param ticket=T-1 --dry-run";

  test("asks what would happen, starts nothing, and shows each step as it would be carried out", async () => {
    const { code, out } = await runAgainst(server([]), LINE);
    expect(code).toBe(0);
    expect(asked.at(-1)).toEqual({ machineId: "m-1", type: "REBOOT", planId: "", params: { ticket: "T-1" } });
    expect(out.split("\n").map((line) => line.trimEnd())).toEqual([
      "Dry run:          nothing was started or changed",
      "Machine:          m-1",
      "Plan:             plan/reboot",
      "Reboots:          1",
      "Expected to take: 1m 30s",
      "Phase on success: READY",
      "",
      "Steps",
      "STEP    KIND    TIMEOUT  RETRIES  REBOOTS  EXPECTED  NEEDS         PAYLOAD",
      "reboot  reboot  300s     1        yes      1m 30s    reset system  force=false mode=bmc",
      "",
    ]);
  });

  test("ends with code 4 when something is in the way, and names it", async () => {
    const { code, out } = await runAgainst(server(["machine m-1 has an active run, run-7"]), LINE);
    expect(code).toBe(4);
    expect(out).toMatch(/In the way: +machine m-1 has an active run, run-7/);
  });

  test("shows the runs that a step would start on other things", async () => {
    const child = { target: { kind: "switch", id: "sw-1" }, steps: ["drain", "flash"] };
    const { out } = await runAgainst(server([], [child]), LINE);
    expect(out).toContain("Runs that it would start, as things are now\nSTEP    TARGET       STEPS\n");
    expect(out).toContain("reboot  switch/sw-1  drain → flash\n");
  });

  test("as JSON is the contract's own answer", async () => {
    const { out } = await runAgainst(server([]), `${LINE} -o json`);
    expect(JSON.parse(out)).toMatchObject({
      plan_id: "plan/reboot",
      phase_on_success: "READY",
      expected_duration: "90s",
      steps: [{ step: { name: "reboot" }, needs: ["reset", "system"], reboots: true }],
    });
  });
});
