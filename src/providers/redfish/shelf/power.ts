import type { PowerControl, PowerState } from "../../../capabilities/power-control.ts";
import type { Clock } from "../../../kernel/time/clock.ts";
import { type Duration, seconds } from "../../../kernel/time/duration.ts";
import { bmcFailure } from "../../transport/bmc-failure.ts";
import { nameOf } from "../../transport/bmc-gateway.ts";
import { PowerCommands } from "../../transport/power-commands.ts";
import { actionOffered } from "../action-offered.ts";
import { membersOf, type Resource } from "../resource.ts";
import { createSetPower } from "../set-power.ts";
import { layoutOf, powerStateOf } from "./layouts.ts";
import { checkedByMeter, readOutput } from "./meter.ts";
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

    setPower: createSetPower<Shelf>({
      open: (target, call) => shelves.open(target, call),
      powerOf: provenPower,
      async commandFor(shelf, desired) {
        const { path, body } = await findCommand(shelf, desired);
        return () => shelf.client.post(shelf.target, path, body, shelf.call);
      },
      commands,
      lostCommandSettles,
    }),
  };
}

/** The chassis' own word (a shelf's computer system shows a wrong one), else the supplies'; checked against the meter. */
async function provenPower(shelf: Shelf): Promise<PowerState> {
  const reported = powerStateOf(shelf.chassis) ?? powerOfSupplies((await readPowerSubsystem(shelf)).supplies);
  return reported === "on" || reported === "off" ? checkedByMeter(reported, await readOutput(shelf)) : reported;
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
