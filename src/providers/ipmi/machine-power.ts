import { setTimeout as pause } from "node:timers/promises";
import type { BmcTarget } from "../../capabilities/bmc-target.ts";
import type { CallContext } from "../../capabilities/call.ts";
import { DeviceFailure } from "../../capabilities/device-failure.ts";
import type { PowerControl, Told } from "../../capabilities/power-control.ts";
import type { Reset } from "../../capabilities/reset.ts";
import type { Clock } from "../../kernel/clock.ts";
import { type Duration, seconds } from "../../kernel/duration.ts";
import { StepFailure } from "../../kernel/errors.ts";
import { keyOf, nameOf } from "../bmc-gateway.ts";
import { BoundedMemory } from "../bounded-memory.ts";
import { chassisControl, GET_CHASSIS_STATUS, powerOf } from "./chassis-status.ts";
import type { IpmiClient } from "./client.ts";

export interface MachinePowerOptions {
  readonly clock: Clock;
  /** How long an accepted command is given to show before it is sent again. */
  readonly commandSettles?: Duration;
  /** How long an operating system that was asked to go down is given, before it is reset under it. */
  readonly shutdownTakes?: Duration;
  readonly shutdownPoll?: Duration;
}

const REMEMBERED = 20_000;

export function createMachinePower(client: IpmiClient, options: MachinePowerOptions): PowerControl & Reset {
  const { clock, commandSettles = seconds(20), shutdownTakes = seconds(30), shutdownPoll = seconds(1) } = options;
  const commanded = new BoundedMemory<{ readonly desired: "on" | "off"; readonly until: number }>(REMEMBERED);
  const readPower = async (target: BmcTarget, call: CallContext) =>
    powerOf(await client.raw(target, GET_CHASSIS_STATUS, call));

  function isAwaited(key: string, desired: "on" | "off", told: Told | undefined): boolean {
    const last = commanded.get(key);
    if (last !== undefined && last.desired === desired && clock.monotonic() < last.until) return true;
    return told !== undefined && Math.abs(clock.now().getTime() - told.at.getTime()) < commandSettles;
  }

  /** IPMI has no restart that asks the system first: it is asked to go down, and switched on again once it has. */
  async function restartGracefully(target: BmcTarget, call: CallContext): Promise<void> {
    await client.raw(target, chassisControl("soft"), call);
    const deadline = clock.monotonic() + shutdownTakes;
    while (clock.monotonic() < deadline) {
      await pauseFor(shutdownPoll, target, call);
      if ((await readPower(target, call)) === "off") {
        await client.raw(target, chassisControl("on"), call);
        return;
      }
    }
    await client.raw(target, chassisControl("reset"), call);
  }

  return {
    readPower,

    async setPower(target, desired, call, told) {
      const key = keyOf(target);
      if ((await readPower(target, call)) === desired) {
        commanded.forget(key);
        return { commanded: false };
      }
      if (isAwaited(key, desired, told)) return { commanded: false };
      const remember = () => commanded.set(key, { desired, until: clock.monotonic() + commandSettles });
      try {
        await client.raw(target, chassisControl(desired), call);
      } catch (error) {
        // No answer, or nobody waited for it: the command may be on its way to being carried out.
        if (error instanceof DeviceFailure ? error.reason === "unreachable" : error instanceof StepFailure) remember();
        throw error;
      }
      remember();
      return { commanded: true };
    },

    async resetPower(target, mode, call) {
      const power = await readPower(target, call);
      // Restarting what is off is refused by most and means nothing to the rest.
      if (power === "off") await client.raw(target, chassisControl("on"), call);
      else if (mode === "graceful") await restartGracefully(target, call);
      else await client.raw(target, chassisControl("reset"), call);
      commanded.forget(keyOf(target));
    },
  };
}

async function pauseFor(length: Duration, target: BmcTarget, { signal }: CallContext): Promise<void> {
  try {
    await pause(length, undefined, { signal });
  } catch {
    throw new StepFailure("retry", `${nameOf(target)}: stopped while the system was going down`);
  }
}
