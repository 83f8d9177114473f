import type { ServiceImpl } from "@connectrpc/connect";
import type { MachineService } from "../../../contract/baremetal/v1/baremetal_pb.js";
import type { MachineLifecycleService } from "../../../contract/millwright/v1/machine_pb.js";
import { reachOf } from "../../kernel/access/scope.ts";
import type { ServiceDeps } from "../../services/call/deps.ts";
import { acceptMachineCertificate } from "../../services/machine/certificate.ts";
import { setMachineCredentials } from "../../services/machine/credentials.ts";
import { registerMachine, updateMachine } from "../../services/machine/machines.ts";
import {
  acceptMachine,
  enterMaintenance,
  exitMaintenance,
  retireMachine,
  returnMachine,
} from "../../services/machine/phase-changes.ts";
import { pageMachines, viewMachine } from "../../services/machine/view.ts";
import { callerKey } from "../transport/interceptors.ts";
import { machineFrom, machineOf } from "./machine-messages.ts";

export const machines = (deps: ServiceDeps): ServiceImpl<typeof MachineService> => ({
  async registerMachine({ machine }, { values }) {
    const id = await registerMachine(deps, values.get(callerKey), machineFrom(machine));
    return machineOf(await viewMachine(deps, id));
  },
  async getMachine({ machineId }) {
    return machineOf(await viewMachine(deps, machineId));
  },
  async listMachines({ filter, pageSize, pageToken }, { values }) {
    const reach = reachOf(values.get(callerKey).scope);
    const { items, nextPageToken } = await pageMachines(deps, { filter, pageSize, pageToken, reach }, machineOf);
    return { machines: [...items], nextPageToken };
  },
  async updateMachine({ machine }, { values }) {
    const id = await updateMachine(deps, values.get(callerKey), machineFrom(machine));
    return machineOf(await viewMachine(deps, id));
  },
});

export function machineLifecycle(
  deps: ServiceDeps,
): Omit<ServiceImpl<typeof MachineLifecycleService>, "reprovisionMachine"> {
  const answer = async (moved: Promise<string>) => ({ machine: machineOf(await viewMachine(deps, await moved)) });
  return {
    acceptMachine: (request, { values }) => answer(acceptMachine(deps, values.get(callerKey), request)),
    enterMaintenance: (request, { values }) => answer(enterMaintenance(deps, values.get(callerKey), request)),
    exitMaintenance: (request, { values }) => answer(exitMaintenance(deps, values.get(callerKey), request)),
    returnMachine: (request, { values }) => answer(returnMachine(deps, values.get(callerKey), request)),
    retireMachine: (request, { values }) => answer(retireMachine(deps, values.get(callerKey), request)),
    acceptMachineCertificate: (request, { values }) =>
      answer(acceptMachineCertificate(deps, values.get(callerKey), request)),
    async setMachineCredentials(request, { values }) {
      await setMachineCredentials(deps, values.get(callerKey), request);
      return {};
    },
  };
}
