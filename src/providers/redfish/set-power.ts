import type { BmcTarget } from "../../capabilities/bmc-target.ts";
import type { CallContext } from "../../capabilities/call.ts";
import { isRefusal } from "../../capabilities/device-failure.ts";
import type { PowerControl, PowerState } from "../../capabilities/power-control.ts";
import type { Duration } from "../../kernel/time/duration.ts";
import { deviceKeyOf } from "../transport/bmc-gateway.ts";
import { isReachedOrUnderWay, mayHaveArrived, type PowerCommands } from "../transport/power-commands.ts";

/** In which one kind of devices differs from another. */
export interface SetPowerWays<Device> {
  open(target: BmcTarget, call: CallContext): Promise<Device>;
  powerOf(device: Device): PowerState | Promise<PowerState>;
  /** Finds out what to send, and returns what sends it: only what was sent may have arrived. */
  commandFor(device: Device, desired: "on" | "off"): Promise<() => Promise<unknown>>;
  readonly commands: PowerCommands;
  /** How long a command whose answer was lost is given to show. Absent: as long as an accepted one. */
  readonly lostCommandSettles?: Duration;
}

/** Commands a state once: not where it is reached or under way, nor where the command was given a moment ago. */
export function createSetPower<Device>(ways: SetPowerWays<Device>): PowerControl["setPower"] {
  const { commands, lostCommandSettles } = ways;
  return async (target, desired, call, told) => {
    const device = await ways.open(target, call);
    const key = deviceKeyOf(target);
    const power = await ways.powerOf(device);
    const isStale = power === desired && commands.isUndoing(key, desired);
    if (isReachedOrUnderWay(power, desired) && !isStale) {
      commands.forget(key);
      return { commanded: false };
    }
    if (commands.isAwaited(key, desired, told)) return { commanded: false };
    const send = await ways.commandFor(device, desired);
    try {
      await send();
    } catch (error) {
      if (mayHaveArrived(error)) commands.note(key, desired, lostCommandSettles);
      if (!isRefusal(error)) throw error;
      // Some refuse a command for the state that they have just reached by themselves.
      const now = await ways.powerOf(await ways.open(target, call));
      if (!isReachedOrUnderWay(now, desired)) throw error;
      return { commanded: false };
    }
    commands.note(key, desired);
    return { commanded: true };
  };
}
