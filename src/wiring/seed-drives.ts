import { DeviceFailure } from "../capabilities/device-failure.ts";
import type { SeededMedia } from "../capabilities/seeds/seeded-media.ts";
import { AppError, StepFailure } from "../kernel/errors.ts";
import type { Machine } from "../lifecycles/machine/machine.ts";
import type { StepTargets } from "../runs/model/targets.ts";
import { withFakeEndpoints } from "./fake-machines.ts";
import type { MachineHardware } from "./machine-hardware.ts";

const LONGEST_MS = 8_000;

/** Reads an image's directories, before a run is started that needs a seed in it. */
export const wireUnfitImages =
  (media: SeededMedia) =>
  async (location: string): Promise<string | undefined> => {
    const signal = AbortSignal.timeout(LONGEST_MS);
    try {
      await media.examine(location, signal);
      return undefined;
    } catch (error) {
      if (signal.aborted || (error instanceof DeviceFailure && isPassing(error))) return undefined;
      if (error instanceof StepFailure) return error.message;
      throw error;
    }
  };

/** May be over when the step begins. */
const isPassing = ({ code, family }: DeviceFailure): boolean =>
  code !== "address_not_allowed" && (family === "silent" || family === "busy");

/** Asks BMCs for a second virtual drive, before a run is started that needs one: a call that changes nothing. */
export const wireSeedDrives =
  ({
    hardware,
    targetsOf,
  }: {
    readonly hardware: Pick<MachineHardware, "providerOf">;
    readonly targetsOf: (machine: Machine) => StepTargets;
  }) =>
  async (machine: Machine): Promise<string | undefined> => {
    const seen = withFakeEndpoints(machine);
    const imaging = hardware.providerOf(seen.spec)?.can.imaging;
    if (imaging?.checkSeed === undefined) return undefined;
    const signal = AbortSignal.timeout(LONGEST_MS);
    try {
      await imaging.checkSeed(await targetsOf(seen).bmc(), {
        signal,
        mayTouchDevice: (wanted) => wanted,
        subject: `machine ${machine.id}`,
      });
      return undefined;
    } catch (error) {
      // Whatever else is wrong with the BMC may be right when the step begins.
      if (error instanceof DeviceFailure && error.code === "unsupported") return error.message;
      if (error instanceof StepFailure || error instanceof AppError || signal.aborted) return undefined;
      throw error;
    }
  };
