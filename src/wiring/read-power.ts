import type { PowerState } from "../capabilities/power-control.ts";
import { need } from "../capabilities/provider.ts";
import type { Machine } from "../lifecycles/machine/machine.ts";
import type { StepTargets } from "../runs/model/targets.ts";
import { withFakeEndpoints } from "./fake-machines.ts";
import type { MachineHardware } from "./machine-hardware.ts";

const LONGEST_MS = 30_000;

/** Reads the power of machines for callers: a call that changes nothing, and that no lease is needed for. */
export const wireReadPower =
  ({
    hardware,
    targetsOf,
  }: {
    readonly hardware: MachineHardware;
    readonly targetsOf: (machine: Machine) => StepTargets;
  }) =>
  async (machine: Machine, signal: AbortSignal): Promise<PowerState> => {
    const seen = withFakeEndpoints(machine);
    const { power } = need(hardware.providerOf(seen.spec) ?? { name: seen.spec.provider, can: {} }, ["power"]);
    return power.readPower(await targetsOf(seen).bmc(), {
      signal: AbortSignal.any([signal, AbortSignal.timeout(LONGEST_MS)]),
      mayTouchDevice: (wanted) => wanted,
      subject: `machine ${machine.id}`,
    });
  };
