import { isRefusal } from "../../../capabilities/device-failure.ts";
import type { PowerControl, PowerState } from "../../../capabilities/power-control.ts";
import type { Clock } from "../../../kernel/time/clock.ts";
import { type Duration, seconds } from "../../../kernel/time/duration.ts";
import { bmcFailure } from "../../transport/bmc-failure.ts";
import { keyOf, nameOf } from "../../transport/bmc-gateway.ts";
import { isReachedOrUnderWay, mayHaveArrived, PowerCommands } from "../../transport/power-commands.ts";
import { actionOffered } from "../action-offered.ts";
import { membersOf, type Resource } from "../resource.ts";
import { layoutOf, powerStateOf } from "./layouts.ts";
import { judgePower, readOutput } from "./meter.ts";
import { powerOfSupplies, readPowerSubsystem } from "./power-supplies.ts";
import type { Shelf, Shelves } from "./shelf.ts";

type Desired = "on" | "off";

export interface PowerControlOptions {
  readonly clock: Clock;
  /** How long an accepted command is given to show before it is sent again. Seen: up to 11 s without any sign. */
  readonly commandSettles?: Duration;
  /** The same for a command whose answer was lost, which may or may not have arrived. */
  readonly lostCommandSettles?: Duration;
}

export function createPowerControl(shelves: Shelves, options: PowerControlOptions): PowerControl {
  const { clock, commandSettles = seconds(20), lostCommandSettles = seconds(5) } = options;
  const commands = new PowerCommands(clock, commandSettles);

  return {
    async readPower(target, call) {
      return provenPower(await shelves.open(target, call));
    },

    async setPower(target, desired, call, told) {
      const shelf = await shelves.open(target, call);
      const key = keyOf(target);
      if (isReachedOrUnderWay(await provenPower(shelf), desired)) {
        commands.forget(key);
        return { commanded: false };
      }
      if (commands.isAwaited(key, desired, told)) return { commanded: false };
      const { path, body } = await findCommand(shelf, desired);
      try {
        await shelf.client.post(target, path, body, call);
        commands.note(key, desired);
        return { commanded: true };
      } catch (error) {
        if (mayHaveArrived(error)) commands.note(key, desired, lostCommandSettles);
        if (!isRefusal(error)) throw error;
        // Some refuse a command for the state that they have just reached by themselves.
        const now = await provenPower(await shelves.open(target, call));
        if (!isReachedOrUnderWay(now, desired)) throw error;
        return { commanded: false };
      }
    },
  };
}

/** The chassis' own word (a shelf's computer system shows a wrong one), else the supplies'; checked against the meter. */
async function provenPower(shelf: Shelf): Promise<PowerState> {
  const reported = powerStateOf(shelf.chassis) ?? powerOfSupplies((await readPowerSubsystem(shelf)).supplies);
  return reported === "on" || reported === "off" ? judgePower(reported, await readOutput(shelf)) : reported;
}

async function findCommand(
  shelf: Shelf,
  desired: Desired,
): Promise<{ readonly path: string; readonly body: Resource }> {
  const layout = layoutOf(shelf.chassis);
  const candidates = layout.commands[desired];
  for (const command of candidates) {
    const owner = command.action.startsWith("#ComputerSystem.") ? await firstSystem(shelf) : shelf.chassis;
    const path = actionOffered(owner, command.action, { name: command.parameter, value: command.value });
    if (path !== undefined) return { path, body: { [command.parameter]: command.value } };
  }
  const [own] = candidates;
  if (layout.unlisted && own !== undefined) {
    const path = `${shelf.places.chassis}/Actions/${own.action.slice(1)}`;
    return { path, body: { [own.parameter]: own.value } };
  }
  const tried = candidates
    .map(({ action, parameter, value }) => `${action.slice(1)} with ${parameter} ${value}`)
    .join(", ");
  throw bmcFailure(
    "unsupported",
    shelf.target,
    `${nameOf(shelf.target)}: this shelf offers no way to turn its power ${desired} (looked for ${tried}). Do it at the rack`,
  );
}

async function firstSystem({ client, target, call, places }: Shelf): Promise<Resource | undefined> {
  if (places.systems === undefined) return undefined;
  const [first] = membersOf(await client.find(target, places.systems, call));
  return first === undefined ? undefined : client.find(target, first.path, call);
}
