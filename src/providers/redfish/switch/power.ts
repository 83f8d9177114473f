import type { PowerControl, PowerState } from "../../../capabilities/power-control.ts";
import type { Reset, ResetMode } from "../../../capabilities/reset.ts";
import type { Clock } from "../../../kernel/time/clock.ts";
import { type Duration, seconds } from "../../../kernel/time/duration.ts";
import { bmcFailure } from "../../transport/bmc-failure.ts";
import { deviceKeyOf, nameOf } from "../../transport/bmc-gateway.ts";
import { PowerCommands } from "../../transport/power-commands.ts";
import { actionOffered } from "../action-offered.ts";
import { membersOf, type Resource } from "../resource.ts";
import { createSetPower } from "../set-power.ts";
import { powerStateOf } from "../shelf/layouts.ts";
import type { OpenSwitch, Switches } from "./switch.ts";

/** Redfish's words for each wish, the best first; the first that the switch offers is sent. */
const RESET_TYPES = {
  on: ["On", "ForceOn"],
  off: ["ForceOff", "GracefulShutdown"],
  graceful: ["GracefulRestart", "ForceRestart", "PowerCycle"],
  forced: ["PowerCycle", "ForceRestart"],
} as const satisfies Record<"on" | "off" | ResetMode, readonly string[]>;

export interface SwitchPowerOptions {
  readonly clock: Clock;
  /** How long an accepted command is given to show before it is sent again. */
  readonly commandSettles?: Duration;
}

export function createSwitchPower(switches: Switches, options: SwitchPowerOptions): PowerControl & Reset {
  const { clock, commandSettles = seconds(20) } = options;
  const commands = new PowerCommands(clock, commandSettles);
  return {
    readPower: async (target, call) => powerOf(await switches.open(target, call)),

    setPower: createSetPower<OpenSwitch>({
      open: (target, call) => switches.open(target, call),
      powerOf,
      commandFor: findCommand,
      commands,
    }),

    async resetPower(target, mode, call) {
      const opened = await switches.open(target, call);
      const power = await powerOf(opened);
      const send = await findCommand(opened, power === "off" || power === "powering_off" ? "on" : mode);
      await send();
      commands.forget(deviceKeyOf(target));
    },
  };
}

/** The chassis' own word, else that of the system on the switch. */
const powerOf = async (opened: OpenSwitch): Promise<PowerState> =>
  powerStateOf(opened.chassis) ?? powerStateOf((await firstSystem(opened)) ?? {}) ?? "unknown";

async function findCommand(opened: OpenSwitch, wish: keyof typeof RESET_TYPES): Promise<() => Promise<unknown>> {
  const { client, target, call } = opened;
  const offered = (owner: Resource | undefined, action: string) => {
    for (const ResetType of RESET_TYPES[wish]) {
      const path = actionOffered(owner, action, { name: "ResetType", value: ResetType });
      if (path !== undefined) return () => client.post(target, path, { ResetType }, call);
    }
    return undefined;
  };
  const command =
    offered(opened.chassis, "#Chassis.Reset") ?? offered(await firstSystem(opened), "#ComputerSystem.Reset");
  if (command !== undefined) return command;
  const wanted = RESET_TYPES[wish].join(", ");
  throw bmcFailure(
    "unsupported",
    target,
    `${nameOf(target)}: this switch offers no reset of the kinds ${wanted}. Do it at the rack`,
  );
}

async function firstSystem({ client, target, call, places }: OpenSwitch): Promise<Resource | undefined> {
  if (places.systems === undefined) return undefined;
  const [first] = membersOf(await client.find(target, places.systems, call));
  return first === undefined ? undefined : client.find(target, first.path, call);
}
