import type { BmcTarget } from "../../capabilities/bmc-target.ts";
import type { CallContext } from "../../capabilities/call.ts";
import { DeviceFailure } from "../../capabilities/device-failure.ts";
import type { PowerControl } from "../../capabilities/power-control.ts";
import type { Reset } from "../../capabilities/reset.ts";
import type { Clock } from "../../kernel/time/clock.ts";
import { type Duration, seconds } from "../../kernel/time/duration.ts";
import { keyOf } from "../transport/bmc-gateway.ts";
import { mayHaveArrived, PowerCommands } from "../transport/power-commands.ts";
import { chassisControl, GET_CHASSIS_STATUS, powerOf } from "./chassis-status.ts";
import type { IpmiClient } from "./client.ts";

export interface MachinePowerOptions {
  readonly clock: Clock;
  /** How long an accepted command is given to show before it is sent again. */
  readonly commandSettles?: Duration;
}

/** A BMC that has no time for a command, or not now, has not begun with it. */
const isTurnedAway = (error: unknown): boolean => error instanceof DeviceFailure && error.family === "busy";

export function createMachinePower(client: IpmiClient, options: MachinePowerOptions): PowerControl & Reset {
  const { clock, commandSettles = seconds(20) } = options;
  const commands = new PowerCommands(clock, commandSettles);
  const readPower = async (target: BmcTarget, call: CallContext) =>
    powerOf(await client.raw(target, GET_CHASSIS_STATUS, call));

  return {
    readPower,

    async setPower(target, desired, call, told) {
      const key = keyOf(target);
      if ((await readPower(target, call)) === desired && !commands.isUndoing(key, desired)) {
        commands.forget(key);
        return { commanded: false };
      }
      if (commands.isAwaited(key, desired, told)) return { commanded: false };
      try {
        await client.raw(target, chassisControl(desired), call);
      } catch (error) {
        if (mayHaveArrived(error) && !isTurnedAway(error)) commands.note(key, desired);
        throw error;
      }
      commands.note(key, desired);
      return { commanded: true };
    },

    async resetPower(target, mode, call) {
      const power = await readPower(target, call);
      // Restarting what is off is refused by most and means nothing to the rest.
      const wish = power === "off" ? "on" : mode === "graceful" ? "soft" : "reset";
      await client.raw(target, chassisControl(wish), call);
      commands.forget(keyOf(target));
    },
  };
}
