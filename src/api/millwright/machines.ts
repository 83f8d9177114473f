import type { ServiceImpl } from "@connectrpc/connect";
import type { MachineService } from "../../../contract/millwright/v1/machine_pb.js";
import type { ServiceDeps } from "../../services/call/deps.ts";
import { pageMachines } from "../../services/machine/view.ts";
import { machineOf } from "../baremetal/machine-messages.ts";
import { listRequestFrom, pageOf } from "../convert/listing.ts";
import { callerKey } from "../transport/interceptors.ts";

export const listedMachines = (deps: ServiceDeps): ServiceImpl<typeof MachineService> => ({
  async listMachines(request, { values }) {
    const page = await pageMachines(deps, listRequestFrom(request, values.get(callerKey)), machineOf);
    return { machines: [...page.items], ...pageOf(page) };
  },
});
