/** The contract and the vocabulary of this folder, held against the specification's listing and its samples. */
import {
  create,
  type DescEnum,
  type DescMessage,
  type DescMethod,
  fromBinary,
  fromJson,
  toBinary,
  toJson,
} from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import * as contract from "../../../contract/baremetal/v1/baremetal_pb.js";
import type { JsonObject } from "../../kernel/lifecycle.ts";
import { CONDITION_TYPES } from "../../lifecycles/machine/conditions.ts";
import { MACHINE_PHASES } from "../../lifecycles/machine/machine.ts";
import { BUILT_IN_PLANS } from "../plans/built-in.ts";
import { parsePayload } from "./plan/payloads.ts";
import { type StepInput, validatePlan } from "./plan/plan.ts";
import { RUN_PHASES, STEP_STATES } from "./run.ts";

/** Every field that the specification lists or decides, with its number. Those of our own stand beside them, on other numbers. */
// biome-ignore format: a table is read by its columns
const FIELDS: readonly (readonly [DescMessage, Readonly<Record<string, number>>])[] = [
  [contract.RegisterMachineRequestSchema, { machine: 1 }],
  [contract.GetMachineRequestSchema,      { machine_id: 1 }],
  [contract.ListMachinesRequestSchema,    { filter: 1, page_size: 2, page_token: 3 }],
  [contract.ListMachinesResponseSchema,   { machines: 1, next_page_token: 2 }],
  [contract.UpdateMachineRequestSchema,   { machine: 1 }],
  [contract.GetPlanRequestSchema,         { plan_id: 1 }],
  [contract.ListPlansResponseSchema,      { plans: 1 }],
  [contract.StartRunRequestSchema,        { request_id: 1, machine_id: 2, type: 3, plan_id: 4 }],
  [contract.GetRunRequestSchema,          { run_id: 1 }],
  [contract.ListRunsRequestSchema,        { filter: 1 }],
  [contract.ListRunsResponseSchema,       { runs: 1 }],
  [contract.CancelRunRequestSchema,       { run_id: 1 }],
  [contract.WatchRunsRequestSchema,       { filter: 1, cursor: 2 }],
  [contract.StreamRunLogsRequestSchema,   { run_id: 1, after: 2 }],
  [contract.MachineSchema,                { machine_id: 1, labels: 2, spec: 3, status: 4 }],
  [contract.MachineSpecSchema,            { ssh_endpoint: 1, bmc_endpoint: 2, target_cluster_ref: 3, mac_addresses: 4 }],
  [contract.MachineStatusSchema,          { phase: 1, conditions: 2, active_run_id: 3, effective_state: 10, banners: 11, waiting_for: 12 }],
  [contract.ConditionSchema,              { type: 1, status: 2, reason: 3, last_transition: 4 }],
  [contract.PlanSchema,                   { plan_id: 1, display_name: 2, steps: 3 }],
  [contract.StepSchema,                   { name: 1, timeout_seconds: 2, max_retries: 3, ssh: 10, reboot: 11, netboot: 12, repave: 13, join: 14, verify: 15, net: 16, rma: 17 }],
  [contract.RunSchema,                    { run_id: 1, machine_id: 2, request_id: 3, type: 4, plan_id: 5, phase: 6, steps: 7, current_step: 8, created_at: 9, started_at: 10, finished_at: 11 }],
  [contract.StepStatusSchema,             { name: 1, state: 2, retry_count: 3, started_at: 4, finished_at: 5, message: 6 }],
  [contract.RunEventSchema,               { ts: 1, snapshot: 2, message: 3, cursor: 4 }],
  [contract.LogChunkSchema,               { ts: 1, run_id: 2, stream: 3, data: 4, seq: 5 }],
  [contract.SshCommandSchema,             { script_ref: 1, args: 2 }],
  [contract.RebootSchema,                 { force: 1, mode: 2 }],
  [contract.SetNetbootSchema,             { profile: 1, mode: 2 }],
  [contract.RepaveImageSchema,            { image_ref: 1, cloud_init_ref: 2, image: 3 }],
  [contract.KubeadmJoinSchema,            { target_cluster: 1, cluster_ref: 2 }],
  [contract.VerifyInClusterSchema,        { target_cluster: 1, cluster_ref: 2 }],
  [contract.NetReconfigSchema,            { params: 1 }],
  [contract.RmaActionSchema,              { reason: 1 }],
];

/** What we added, by the names of the messages. A number that was given out once stays, as the listed ones do. */
// biome-ignore format: a table is read by its columns
const OWN_FIELDS: Readonly<Record<string, Readonly<Record<string, number>>>> = {
  ListPlansRequest:     { page_size: 1, page_token: 2 },
  ListPlansResponse:    { next_page_token: 2 },
  StartRunRequest:      { params: 12 },
  ListRunsRequest:      { page_size: 2, page_token: 3 },
  ListRunsResponse:     { next_page_token: 2 },
  StreamRunLogsRequest: { no_follow: 10 },
  Machine:              { created_at: 10, version: 11 },
  MachineSpec:          { provider: 10, serial: 11, rack: 12, slot: 13, location: 14, customer_id: 15, jump_hosts: 16, ssh_host_key: 17, bmc_protocol: 18, bmc_tls_trust: 19 },
  JumpHost:             { endpoint: 1, host_key: 2, username: 3 },
  MachineStatus:        { phase_since: 13, claim: 14, residue: 15, inventory: 16, last_run_id: 17, ssh_moved_to: 18, ssh_host_key: 19, ssh_host_key_from: 20, failing: 21 },
  ClaimHolder:          { kind: 1, id: 2, since: 3 },
  MachineInventory:     { serial: 1, vendor: 2, model: 3, bmc_firmware_version: 4, power_state: 5, boot_id: 6, observed_at: 7 },
  Condition:            { message: 10 },
  Plan:                 { built_in: 10, created_at: 11 },
  TargetClusterRef:     { cluster_id: 1, kubeconfig_secret_ref: 2 },
  Run:                  { error: 20, message: 21, job_id: 22, attempt: 23, previous_run_id: 24, params: 25, plan: 26, initiator: 27, waiting_for: 28, cancel_requested_at: 29, residue: 30, version: 31, action: 32, job_state: 33, next_run_id: 34, manual: 35 },
  ManualMark:           { at: 1, by: 2, comment: 3 },
  ErrorStatus:          { code: 1, message: 2, retryable: 3, details: 4 },
  StepStatus:           { kind: 10, carried_over: 11, next_attempt_at: 12 },
  LogChunk:             { step: 10 },
};

const SERVICES = [
  [contract.MachineService, ["RegisterMachine", "GetMachine", "ListMachines", "UpdateMachine"], []],
  [contract.PlanService, ["GetPlan", "ListPlans"], []],
  [
    contract.RunService,
    ["StartRun", "GetRun", "ListRuns", "CancelRun", "WatchRuns", "StreamRunLogs"],
    ["WatchRuns", "StreamRunLogs"],
  ],
] as const;

describe("the contract baremetal.v1", () => {
  test.each(FIELDS.map(([schema, fields]) => [schema.name, schema, fields] as const))(
    "gives %s the specified fields and numbers",
    (_, schema, fields) => {
      const ours = Object.fromEntries(schema.fields.map(({ name, number }) => [name, number]));
      expect(ours).toMatchObject(fields);
    },
  );

  test.each(contract.file_baremetal_v1_baremetal.messages.map((schema) => [schema.name, schema] as const))(
    "gives %s no field, and no number, that is not written down here",
    (name, schema) => {
      const listed = FIELDS.find(([known]) => known.name === name)?.[1];
      const ours = Object.fromEntries(schema.fields.map(({ name: field, number }) => [field, number]));
      expect(ours).toEqual({ ...listed, ...OWN_FIELDS[name] });
    },
  );

  test.each(SERVICES.map(([service, methods, streams]) => [service.typeName, service, methods, streams] as const))(
    "gives %s its methods, and only watching and logs are streams",
    (name, service, methods, streams) => {
      expect(name).toMatch(/^baremetal\.v1\.(Machine|Plan|Run)Service$/);
      const ours: readonly DescMethod[] = service.methods;
      expect(ours.map((method) => method.name)).toEqual(methods);
      expect(ours.filter(({ methodKind }) => methodKind !== "unary").map((method) => method.name)).toEqual(streams);
    },
  );

  test.each<[string, DescEnum, string, readonly string[]]>([
    ["machine phases", contract.MachineStatus_PhaseSchema, "PHASE_UNSPECIFIED", MACHINE_PHASES],
    ["run phases", contract.Run_PhaseSchema, "PHASE_UNSPECIFIED", RUN_PHASES],
    [
      "step states",
      contract.StepStatus_StateSchema,
      "STATE_UNSPECIFIED",
      STEP_STATES.filter((state) => state !== "SKIPPED"),
    ], // our own: shown as SUCCEEDED
  ])("spells %s as we do, in our order, from 1 on", (_, schema, unspecified, words) => {
    expect(schema.values.map(({ name, number }) => [name, number])).toEqual(
      [unspecified, ...words].map((word, number) => [word, number]),
    );
  });

  test("tells retries that were not given from none, on the number that the specification gives them", () => {
    const open = fromJson(contract.StepSchema, { name: "a" });
    const none = fromJson(contract.StepSchema, { name: "a", max_retries: 0 });
    expect([open.maxRetries, none.maxRetries]).toEqual([undefined, 0]);
    const plain = new Uint8Array([3 << 3, 2]); // as who knows the field without presence writes it
    expect(fromBinary(contract.StepSchema, plain).maxRetries).toBe(2);
    expect(toBinary(contract.StepSchema, create(contract.StepSchema, { maxRetries: 2 }))).toEqual(plain);
  });

  test("has the step kinds that we have", () => {
    const kinds = contract.StepSchema.oneofs[0]?.fields.map(({ name }) => name);
    expect(kinds).toEqual(Object.keys(parsePayload));
  });
});

/** As it is printed in the specification. */
const SAMPLE_PLAN = {
  plan_id: "plan-repave-ubuntu-2204-v1",
  display_name: "Repave Ubuntu 22.04 + Join Cluster",
  steps: [
    { name: "set-netboot", timeout_seconds: 60, max_retries: 2, netboot: { mode: "PXE" } },
    { name: "repave-os", timeout_seconds: 1800, max_retries: 1, repave: { image: "ubuntu-22.04" } },
    { name: "reboot", timeout_seconds: 300, max_retries: 2, reboot: { mode: "bmc" } },
    { name: "join-cluster", timeout_seconds: 600, max_retries: 1, join: { cluster_ref: "cluster-a" } },
    { name: "verify", timeout_seconds: 300, max_retries: 0, verify: { cluster_ref: "cluster-a" } },
  ],
};

describe("the samples of the specification, as they are printed,", () => {
  test("read as a plan, which is the built-in one", () => {
    const message = fromJson(contract.PlanSchema, SAMPLE_PLAN);
    const steps = message.steps.map((step): StepInput => {
      const json = toJson(contract.StepSchema, step, { useProtoFieldName: true }) as Record<string, JsonObject>;
      const { name, timeoutSeconds, maxRetries, kind } = step;
      return { name, timeoutSeconds, maxRetries, kind: kind.case, payload: json[kind.case ?? ""] ?? {} };
    });
    const plan = validatePlan({ planId: message.planId, displayName: message.displayName, steps });
    expect(plan).toEqual(BUILT_IN_PLANS.find(({ planId }) => planId === SAMPLE_PLAN.plan_id));
  });

  test("read as a machine", () => {
    const machine = fromJson(contract.MachineSchema, {
      machine_id: "m-123",
      labels: { env: "prod", role: "worker", provider: "dc-1" },
      spec: {
        ssh_endpoint: "10.20.30.40:22",
        bmc_endpoint: "10.20.30.41",
        target_cluster_ref: "cluster-a",
        mac_addresses: ["aa:bb:cc:dd:ee:ff"],
      },
      status: {
        phase: "READY",
        conditions: [
          { type: "Reachable", status: true, reason: "PingOK" },
          { type: "BMCReachable", status: true, reason: "RedfishOK" },
          { type: "InCustomerCluster", status: false, reason: "NotJoined" },
        ],
        active_run_id: "",
      },
    });
    expect(machine.status?.phase).toBe(contract.MachineStatus_Phase.READY);
    for (const { type } of machine.status?.conditions ?? []) expect(CONDITION_TYPES).toContain(type);
  });

  test("read as a run", () => {
    const run = fromJson(contract.RunSchema, {
      run_id: "run-789",
      machine_id: "m-123",
      request_id: "req-456",
      type: "REPAVE",
      plan_id: "plan-repave-ubuntu-2204-v1",
      phase: "RUNNING",
      current_step: "repave-os",
      steps: [
        { name: "set-netboot", state: "SUCCEEDED", retry_count: 0 },
        { name: "repave-os", state: "RUNNING", retry_count: 0 },
      ],
      created_at: "2026-01-29T15:10:00Z",
      started_at: "2026-01-29T15:10:05Z",
      finished_at: null,
    });
    expect(run).toMatchObject({ phase: contract.Run_Phase.RUNNING, currentStep: "repave-os" });
    expect(run.finishedAt).toBeUndefined();
    expect(create(contract.RunSchema).phase).toBe(contract.Run_Phase.PHASE_UNSPECIFIED);
  });
});
