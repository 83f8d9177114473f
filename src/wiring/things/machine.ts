import { MachineService } from "../../../contract/baremetal/v1/baremetal_pb.js";
import {
  MachineService as ListedMachineService,
  MachineLifecycleService,
  MachinePowerService,
} from "../../../contract/millwright/v1/machine_pb.js";
import { machineLifecycle, machines } from "../../api/baremetal/machines.ts";
import { machinePower } from "../../api/millwright/machine-power.ts";
import { listedMachines } from "../../api/millwright/machines.ts";
import { partOf } from "../../api/transport/service-parts.ts";
import type { ClusterTarget } from "../../capabilities/cluster-target.ts";
import { AppError, StepFailure } from "../../kernel/errors.ts";
import { type MachineContext, machineHandlers } from "../../lifecycles/machine/handlers.ts";
import type { Machine } from "../../lifecycles/machine/machine.ts";
import type { StepTargets } from "../../runs/model/targets.ts";
import { machineTarget } from "../../runs/targets/machine.ts";
import { machineStepParts } from "../../runs/targets/machine-steps.ts";
import { explainMachine } from "../../services/explain/machine.ts";
import { observeMachine } from "../../store/machine/conditions.ts";
import { settleMachineHealth } from "../../store/machine/health.ts";
import { machineListing } from "../../store/machine/machine-list.ts";
import { machineStore } from "../../store/machine/machines.ts";
import { isDatabaseTrouble } from "../../store/postgres/database-errors.ts";
import { withFakeEndpoints } from "../fake-machines.ts";
import { devicePartsOf } from "../rack/device-parts.ts";
import type { WiredTarget } from "../run-targets.ts";
import { isUnusable, wireStepTargets } from "../step-targets.ts";
import { defineThing, type HandlerTools, type TargetTools } from "./thing.ts";
import { withContext } from "./with-context.ts";

function handlers({ db, secrets, runs }: HandlerTools) {
  const targetsOf = runs && wireStepTargets({ db, secrets, runbooks: runs.runbooks });
  return withContext(
    machineHandlers,
    (machine: Machine): Omit<MachineContext, "call"> => ({
      provider: runs?.hardware.providerOf(machine.spec) ?? { name: machine.spec.provider, can: {} },
      cluster: async (name = "") => targetsOf && clusterOnRecord(targetsOf(machine), name),
      bmc: async () => {
        if (!targetsOf)
          throw new StepFailure("endpoint_missing", "no machines are worked on here", { facts: { at: "bmc" } });
        return targetsOf(withFakeEndpoints(machine)).bmc();
      },
    }),
  );
}

/** Undefined for one that is not on record. One that is there and cannot be read is a reason to wait. */
async function clusterOnRecord(targets: StepTargets, name: string): Promise<ClusterTarget | undefined> {
  try {
    return await targets.cluster(name);
  } catch (error) {
    if (error instanceof StepFailure) return undefined;
    if (isUnusable(error))
      throw new StepFailure("credentials_missing", `the kubeconfig of its cluster cannot be used: ${error.message}`, {
        disposition: "retry",
        facts: { at: "cluster", ...(name !== "" && { name }) },
        cause: error,
      });
    if (!(error instanceof AppError) || isDatabaseTrouble(error)) throw error;
    throw new StepFailure("server_trouble", error.message, { cause: error });
  }
}

const runTarget = ({
  db,
  secrets,
  seedsAt = null,
  installersAt = null,
  seededMedia,
  runs: { hardware, steps, runbooks },
  ...tools
}: TargetTools): WiredTarget<Machine> => {
  const targetsOf = wireStepTargets({
    db,
    secrets,
    runbooks,
    seedsAt,
    installersAt,
    ...(seededMedia && { seededMedia }),
  });
  return {
    kind: machineTarget,
    asSeen: withFakeEndpoints,
    providerOf: ({ spec }) => hardware.providerOf(spec) ?? { name: spec.provider, can: {} },
    bmcOf: (thing) => targetsOf(thing).bmc(),
    partsOf(run, step) {
      const targets = targetsOf(run.target.thing);
      return {
        ...machineStepParts(run, step, { targets, steps }),
        ...devicePartsOf(run.target, () => targets.bmc(), tools),
      };
    },
  };
};

export const machine = defineThing<Machine>({
  store: {
    ...machineStore,
    observe: observeMachine,
    observedColumns: ["conditions"],
    healthChanged: settleMachineHealth,
  },
  handlers,
  runTarget,
  explain: explainMachine,
  methods: ({ services, runs }) => [
    partOf(MachineService, machines(services)),
    partOf(ListedMachineService, listedMachines(services)),
    partOf(MachineLifecycleService, machineLifecycle(services)),
    ...(runs ? [partOf(MachinePowerService, machinePower({ ...services, ...runs }))] : []),
  ],
  words: { short: "m" },
  listing: machineListing,
  methodGroup: "machines",
  // biome-ignore format: a table is read by its columns
  things: {
    "baremetal.v1.MachineService/GetMachine":                            "machine machine_id",
    "baremetal.v1.MachineService/ListMachines":                          "list",
    "millwright.v1.MachineService/ListMachines":                         "list",
    "millwright.v1.MachineLifecycleService/AcceptMachine":               "machine machine_id",
    "millwright.v1.MachineLifecycleService/EnterMaintenance":            "machine machine_id",
    "millwright.v1.MachineLifecycleService/ExitMaintenance":             "machine machine_id",
    "millwright.v1.MachineLifecycleService/ReturnMachine":               "machine machine_id",
    "millwright.v1.MachineLifecycleService/RetireMachine":               "machine machine_id",
    "millwright.v1.MachineLifecycleService/SetMachineCredentials":       "machine machine_id",
    "millwright.v1.MachineLifecycleService/AcceptMachineCertificate":    "machine machine_id",
    "millwright.v1.MachinePowerService/SetMachinePower":                 "machine machine_ids",
    "millwright.v1.MachinePowerService/SetBootDevice":                   "machine machine_ids",
    "millwright.v1.MachinePowerService/GetMachinePower":                 "machine machine_ids",
  },
  // biome-ignore format: a table is read by its columns
  roles: {
    "baremetal.v1.MachineService/RegisterMachine":        ["operator"],
    "baremetal.v1.MachineService/GetMachine":             ["viewer"],
    "baremetal.v1.MachineService/ListMachines":           ["viewer"],
    "baremetal.v1.MachineService/UpdateMachine":          ["operator"],
    "millwright.v1.MachineService/ListMachines":          ["viewer"],
    "millwright.v1.MachineLifecycleService/AcceptMachine":    ["operator"],
    "millwright.v1.MachineLifecycleService/EnterMaintenance": ["operator"],
    "millwright.v1.MachineLifecycleService/ExitMaintenance":  ["operator"],
    "millwright.v1.MachineLifecycleService/ReturnMachine":    ["operator"],
    "millwright.v1.MachineLifecycleService/RetireMachine":    ["admin"],
    "millwright.v1.MachineLifecycleService/SetMachineCredentials": ["admin", "credentials"],
    "millwright.v1.MachineLifecycleService/AcceptMachineCertificate": ["operator"],
    "millwright.v1.MachinePowerService/SetMachinePower":  ["operator"],
    "millwright.v1.MachinePowerService/SetBootDevice":    ["operator"],
    "millwright.v1.MachinePowerService/GetMachinePower":  ["viewer"],
  },
});
