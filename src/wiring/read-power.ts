import type { BootSeen } from "../capabilities/computer-system.ts";
import type { PowerState } from "../capabilities/power-control.ts";
import { need } from "../capabilities/provider.ts";
import type { Duration } from "../kernel/time/duration.ts";
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
    return power.readPower(await targetsOf(seen).bmc(), callFor(machine, signal));
  };

/** Reads when machines were last reset; null where their technology does not tell. */
export const wireReadBoot =
  ({ hardware, targetsOf }: Parameters<typeof wireReadPower>[0]) =>
  async (machine: Machine, signal: AbortSignal): Promise<BootSeen | null> => {
    const seen = withFakeEndpoints(machine);
    const system = hardware.providerOf(seen.spec)?.can.system;
    return system ? system.readBoot(await targetsOf(seen).bmc(), callFor(machine, signal)) : null;
  };

const callFor = ({ id }: Machine, signal: AbortSignal) => ({
  signal: AbortSignal.any([signal, AbortSignal.timeout(LONGEST_MS)]),
  mayTouchDevice: (wanted: Duration) => wanted,
  subject: `machine ${id}`,
});
