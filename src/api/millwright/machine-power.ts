import type { MessageInitShape } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import {
  BootDevice,
  type MachinePowerService,
  type MachineRunResultSchema,
  PowerOperation,
} from "../../../contract/millwright/v1/machine_pb.js";
import { AppError } from "../../kernel/errors.ts";
import type { RunDeps } from "../../services/run/deps.ts";
import {
  type BootDeviceWord,
  type MachineResult,
  type PowerOperation as PowerWord,
  readMachinePower,
  setBootDevice,
  setMachinePower,
} from "../../services/run/many/machine-power.ts";
import { runOf } from "../baremetal/run-messages.ts";
import { wordFor } from "../convert/fields.ts";
import { callerKey } from "../transport/interceptors.ts";

const OPERATIONS: Readonly<Record<PowerOperation, PowerWord | undefined>> = {
  [PowerOperation.UNSPECIFIED]: undefined,
  [PowerOperation.ON]: "on",
  [PowerOperation.OFF]: "off",
  [PowerOperation.CYCLE]: "cycle",
};
const DEVICES: Readonly<Record<BootDevice, BootDeviceWord | undefined>> = {
  [BootDevice.UNSPECIFIED]: undefined,
  [BootDevice.NONE]: "none",
  [BootDevice.PXE]: "pxe",
  [BootDevice.HTTP]: "http",
  [BootDevice.DISK]: "disk",
  [BootDevice.CD]: "cd",
};

export const machinePower = (deps: RunDeps): ServiceImpl<typeof MachinePowerService> => ({
  async setMachinePower({ machineIds, operation: number, requestId }, { values }) {
    const operation = number === PowerOperation.UNSPECIFIED ? undefined : wordFor(OPERATIONS, number, "operation");
    const asked = { machineIds, requestId, operation };
    return { results: (await setMachinePower(deps, values.get(callerKey), asked)).map(resultOf) };
  },
  async setBootDevice({ machineIds, device: number, requestId }, { values }) {
    const device = number === BootDevice.UNSPECIFIED ? undefined : wordFor(DEVICES, number, "device");
    const asked = { machineIds, requestId, device };
    return { results: (await setBootDevice(deps, values.get(callerKey), asked)).map(resultOf) };
  },
  async getMachinePower({ machineIds }, { signal }) {
    const readings = await readMachinePower(deps, machineIds, signal);
    return {
      machines: readings.map(({ machineId, power, error, offByRun }) => ({
        machineId,
        power,
        error,
        offByRunId: offByRun,
      })),
    };
  },
});

const resultOf = ({ machineId, started }: MachineResult): MessageInitShape<typeof MachineRunResultSchema> =>
  started instanceof AppError
    ? { machineId, refusal: started.message, next: started.detail.next ?? "" }
    : { machineId, run: runOf(started) };
