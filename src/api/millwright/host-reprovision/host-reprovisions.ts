import type { ServiceImpl } from "@connectrpc/connect";
import type { MachineLifecycleService } from "../../../../contract/millwright/v1/machine_pb.js";
import type { ServiceDeps } from "../../../services/call/deps.ts";
import { reprovisionMachine } from "../../../services/host-reprovision/host-reprovisions.ts";
import { nonEmpty } from "../../convert/fields.ts";
import { callerKey } from "../../transport/interceptors.ts";

export const hostReprovisions = (deps: ServiceDeps) =>
  ({
    reprovisionMachine: ({ machineId, reset, reference }, { values }) =>
      reprovisionMachine(deps, values.get(callerKey), { machineId, reset, reference: nonEmpty(reference) }),
  }) satisfies Partial<ServiceImpl<typeof MachineLifecycleService>>;
