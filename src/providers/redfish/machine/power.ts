import type { PowerControl, PowerState } from "../../../capabilities/power-control.ts";
import type { Reset, ResetMode } from "../../../capabilities/reset.ts";
import type { Clock } from "../../../kernel/time/clock.ts";
import { type Duration, seconds } from "../../../kernel/time/duration.ts";
import { bmcFailure } from "../../transport/bmc-failure.ts";
import { deviceKeyOf, nameOf } from "../../transport/bmc-gateway.ts";
import { PowerCommands } from "../../transport/power-commands.ts";
import { actionOffered } from "../action-offered.ts";
import { textAt } from "../resource.ts";
import { createSetPower } from "../set-power.ts";
import type { Machines, OpenMachine } from "./machine.ts";

const RESET_ACTION = "#ComputerSystem.Reset";

/** Redfish's words for each wish, the best first; the first that the machine offers is sent. */
const RESET_TYPES = {
  on: ["On", "ForceOn"],
  off: ["ForceOff"],
  graceful: ["GracefulRestart", "ForceRestart", "PowerCycle"],
  forced: ["ForceRestart", "PowerCycle"],
} as const satisfies Record<"on" | "off" | ResetMode, readonly string[]>;

const POWER_STATES: Readonly<Record<string, PowerState>> = {
  on: "on",
  off: "off",
  poweringon: "powering_on",
  poweringoff: "powering_off",
};

/** What a computer system reports of its power. */
export const machinePowerOf = ({ system }: Pick<OpenMachine, "system">): PowerState =>
  POWER_STATES[textAt(system, "PowerState")?.toLowerCase() ?? ""] ?? "unknown";

export interface MachinePowerOptions {
  readonly clock: Clock;
  /** How long an accepted command is given to show before it is sent again. Seen: up to 11 s without any sign. */
  readonly commandSettles?: Duration;
}

export function createMachinePower(machines: Machines, options: MachinePowerOptions): PowerControl & Reset {
  const { clock, commandSettles = seconds(20) } = options;
  const commands = new PowerCommands(clock, commandSettles);

  return {
    async readPower(target, call) {
      return machinePowerOf(await machines.open(target, call));
    },

    setPower: createSetPower<OpenMachine>({
      open: (target, call) => machines.open(target, call),
      powerOf: machinePowerOf,
      commandFor: async (machine, desired) => () => sendReset(machine, desired),
      commands,
    }),

    async resetPower(target, mode, call) {
      const machine = await machines.open(target, call);
      const power = machinePowerOf(machine);
      // Restarting what is off is refused by most and means nothing to the rest.
      await sendReset(machine, power === "off" || power === "powering_off" ? "on" : mode);
      commands.forget(deviceKeyOf(target));
    },
  };
}

async function sendReset(machine: OpenMachine, wish: keyof typeof RESET_TYPES): Promise<void> {
  for (const value of RESET_TYPES[wish]) {
    const path = actionOffered(machine.system, RESET_ACTION, { name: "ResetType", value });
    if (path === undefined) continue;
    await machine.client.post(machine.target, path, { ResetType: value }, machine.call);
    return;
  }
  throw bmcFailure(
    "unsupported",
    machine.target,
    `${nameOf(machine.target)}: this machine offers no reset of the kinds ${RESET_TYPES[wish].join(", ")}. Do it at the rack`,
  );
}
