import { expect, test } from "vitest";
import { type Log, silentLog } from "../kernel/log.ts";
import { milliseconds } from "../kernel/time/duration.ts";
import { createMetrics } from "./metrics.ts";
import { observeDeviceCalls, observeEngine, observeRpc, observeSteps } from "./observers.ts";

test("what engine, devices and API report is found under the metrics of the table, in seconds", async () => {
  const metrics = createMetrics({ processMetrics: false });
  const engine = observeEngine(metrics);
  engine.handled({ kind: "power_shelf", state: "maintenance", outcome: "moved", took: milliseconds(250) });
  engine.moved({ kind: "power_shelf", from: "maintenance", to: "ready", after: milliseconds(4_000) });
  engine.failed({ kind: "power_shelf", state: "maintenance", cause: "unreachable" });
  engine.conflicted("power_shelf");
  const failed = { run: "run-1", step: "boot", attempt: 2, reason: "no answer" };
  observeSteps(metrics, silentLog).stepFailed({ ...failed, stepKind: "reboot", cause: "timed_out" });
  engine.leaseLost("power_shelf");
  engine.quarantined({ kind: "power_shelf" });
  observeDeviceCalls(metrics, silentLog).onCall({
    address: "10.0.0.1",
    operation: "redfish.read",
    outcome: "ok",
    ms: 20,
    left: true,
  });
  observeRpc(metrics)({ method: "forge.Forge/SetPowerShelfMaintenance", code: "ok", ms: 3 });
  const { body } = await metrics.render();
  expect(
    body
      .split("\n")
      .filter((line) => /_(sum|total)\b/.test(line) && !line.startsWith("#"))
      .sort(),
  ).toEqual([
    "millwright_collect_failures_total 0",
    'millwright_conflicts_total{kind="power_shelf"} 1',
    'millwright_device_call_seconds_sum{operation="redfish.read",outcome="ok"} 0.02',
    'millwright_failures_total{kind="power_shelf",state="maintenance",cause="unreachable"} 1',
    'millwright_handler_seconds_sum{kind="power_shelf",state="maintenance",outcome="moved"} 0.25',
    "millwright_journal_seals_lost_total 0",
    'millwright_leases_lost_total{kind="power_shelf"} 1',
    'millwright_quarantines_total{kind="power_shelf"} 1',
    'millwright_rpc_seconds_sum{method="forge.Forge/SetPowerShelfMaintenance",code="ok"} 0.003',
    'millwright_state_seconds_sum{kind="power_shelf",state="maintenance"} 4',
    'millwright_step_failures_total{step_kind="reboot",cause="timed_out"} 1',
    'millwright_transitions_total{kind="power_shelf",from="maintenance",to="ready"} 1',
  ]);
});

test("commands that were sent to a device are logged with where they went; reads, and what was never sent, are not", () => {
  const lines: object[] = [];
  const log: Log = { ...silentLog, info: (fields, message) => void lines.push({ ...fields, message }) };
  const { onCall } = observeDeviceCalls(createMetrics({ processMetrics: false }), log);
  const call = { address: "10.0.0.1", operation: "redfish.command", outcome: "ok", ms: 20.4, left: true };
  onCall({ ...call, operation: "redfish.read" });
  onCall({ ...call, operation: "redfish.sign_in" });
  onCall({ ...call, outcome: "unreachable", left: false });
  onCall(call);
  expect(lines).toEqual([
    {
      address: "10.0.0.1",
      operation: "redfish.command",
      outcome: "ok",
      ms: 20,
      message: "a device was sent a command",
    },
  ]);
});
