import { createRegistry, fromJson, type JsonObject } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { file_baremetal_v1_baremetal } from "../../../contract/baremetal/v1/baremetal_pb.js";
import { file_millwright_v1_fleet_node } from "../../../contract/millwright/v1/fleet_node_pb.js";
import { file_millwright_v1_machine } from "../../../contract/millwright/v1/machine_pb.js";
import { file_millwright_v1_node } from "../../../contract/millwright/v1/node_pb.js";
import { file_millwright_v1_power_shelf } from "../../../contract/millwright/v1/power_shelf_pb.js";
import { file_millwright_v1_rack_firmware } from "../../../contract/millwright/v1/rack_firmware_pb.js";
import { file_millwright_v1_rack } from "../../../contract/millwright/v1/rack_pb.js";
import { file_millwright_v1_run } from "../../../contract/millwright/v1/run_pb.js";
import { callOf } from "./command-call.ts";

const registry = createRegistry(
  file_baremetal_v1_baremetal,
  file_millwright_v1_fleet_node,
  file_millwright_v1_machine,
  file_millwright_v1_node,
  file_millwright_v1_power_shelf,
  file_millwright_v1_rack,
  file_millwright_v1_rack_firmware,
  file_millwright_v1_run,
);

test.each<[command: string, method: string, request: JsonObject, missing?: string[]]>([
  ["run cancel run-1", "CancelRun", { run_id: "run-1" }],
  ["run retry run-1", "RetryRun", { run_id: "run-1" }],
  ["run retry run-1 --new-scripts", "RetryRun", { run_id: "run-1", take_new_scripts: true }],
  ["run resume run-1", "ResumeRun", { run_id: "run-1" }],
  ["run rerun run-1", "RerunRun", { run_id: "run-1" }],
  ["run restart-clean run-1", "RestartRunClean", { run_id: "run-1" }],
  ["run adopt run-1", "AdoptRun", { run_id: "run-1" }],
  ["run mark-manual run-1 --comment <text>", "MarkRunManual", { run_id: "run-1" }, ["comment"]],
  [
    "run start --machine m-1 --type REBOOT --param force=true --param ticket=T-1",
    "StartRun",
    { machine_id: "m-1", type: "REBOOT", params: { force: "true", ticket: "T-1" } },
  ],
  [
    "run start --machine m-1 --type NET_RECONFIG --plan p --param netplan=<settings>",
    "StartRun",
    { machine_id: "m-1", type: "NET_RECONFIG", plan_id: "p", params: {} },
    ["params"],
  ],
  ["machine enter-maintenance m-1", "EnterMaintenance", { machine_id: "m-1" }],
  [
    "machine exit-maintenance m-1 --acknowledge --comment <text>",
    "ExitMaintenance",
    { machine_id: "m-1", acknowledge: true },
    ["comment"],
  ],
  ["machine return m-1", "ReturnMachine", { machine_id: "m-1" }],
  ["machine accept m-1", "AcceptMachine", { machine_id: "m-1" }],
  ["machine reprovision m-1", "ReprovisionMachine", { machine_id: "m-1" }],
  [
    "machine accept-certificate m-1 --fingerprint ab:cd",
    "AcceptMachineCertificate",
    { machine_id: "m-1", fingerprint: "ab:cd" },
  ],
  [
    "machine accept-certificate m-1 --fingerprint <sha256>",
    "AcceptMachineCertificate",
    { machine_id: "m-1" },
    ["fingerprint"],
  ],
  ["machine power on m-1", "SetMachinePower", { machine_ids: ["m-1"], operation: "POWER_OPERATION_ON" }],
  ["rack clear-error r-1", "ClearRackError", { rack_id: "r-1" }],
  ["rack maintenance terminate r-1", "TerminateRackMaintenance", { rack_id: "r-1" }],
  ["rack maintenance resume", "ResumeRackMaintenance", {}],
  ["rack-firmware download fw-1", "DownloadRackFirmware", { id: "fw-1" }],
  ["power-shelf refresh ps-1", "RefreshPowerShelf", { id: "ps-1" }],
  [
    "node approve n-1 --workflow <id>",
    "ChangeNodeState",
    { id: "n-1", from: "discovered", state: "pending" },
    ["workflow_id"],
  ],
  [
    "node retry n-1 --workflow w-1 --force",
    "ChangeNodeState",
    { id: "n-1", from: "install_failed", state: "pending", workflow_id: "w-1", force: true },
  ],
  ["node activate n-1", "ChangeNodeState", { id: "n-1", state: "active" }],
  ["node requeue n-1", "ChangeNodeState", { id: "n-1", from: "reprovision", state: "pending" }],
  ["node arm n-1", "ArmNode", { id: "n-1" }],
  ["node confirm-erased n-1", "ConfirmNodeErased", { id: "n-1" }],
  ["fleet action fn-1 retry-stage", "ActOnNode", { node: "fn-1", action: "retry-stage" }],
  ["fleet recover fn-1", "RecoverNode", { node: "fn-1" }],
  ["fleet reactivate fn-1", "ReactivateNode", { node: "fn-1" }],
  ["fleet drain abort fn-1", "AbortDrain", { node: "fn-1" }],
  ["fleet remove rollback fn-1", "RollbackRemoval", { node: "fn-1" }],
  ["fleet bootstrap reissue fn-1", "ReissueBootstrap", { node: "fn-1" }],
])("`millwright %s` is a call of %s that the contract has", (command, method, request, missing = []) => {
  const call = callOf(`millwright ${command}`);
  expect(call).toMatchObject({ request, missing });
  const [service = "", name = ""] = call?.method.split("/") ?? [];
  expect(name).toBe(method);
  const rpc = registry.getService(service)?.methods.find((each) => each.name === name);
  if (rpc === undefined) throw new Error(`${call?.method} is not in the contract`);
  // Unknown fields are refused.
  expect(() => fromJson(rpc.input, call?.request as JsonObject, { registry })).not.toThrow();
  for (const field of missing) expect(rpc.input.fields.map((each) => each.name)).toContain(field);
});

test.each([
  "",
  "run logs run-1 --follow",
  "run show run-1",
  "explain run run-1",
  "machine update m-1 --ssh-host-key ''",
  "run retry <run>",
  "run retry run-1 run-2",
  "run retry run-1 --request-id x",
  "rack delete r-1 --detach",
  "node set n-1 --workflow <id>",
])("`millwright %s` is no single call", (command) => {
  expect(callOf(`millwright ${command}`)).toBeUndefined();
});
