import type { BmcTarget } from "../../capabilities/bmc-target.ts";
import { DeviceFailure } from "../../capabilities/device-failure.ts";
import type { PowerControl, PowerState, Told } from "../../capabilities/power-control.ts";
import type { Clock } from "../../kernel/clock.ts";
import { type Duration, seconds } from "../../kernel/duration.ts";
import { StepFailure } from "../../kernel/errors.ts";
import { keyOf, nameOf } from "../bmc-gateway.ts";
import { BoundedMemory } from "../bounded-memory.ts";
import { layoutOf, type PowerCommand, powerStateOf } from "./layouts.ts";
import { judgePower, readOutput } from "./meter.ts";
import { powerOfSupplies, readPowerSubsystem } from "./power-supplies.ts";
import { isLocalPath, listAt, membersOf, type Resource, textAt, valueAt } from "./resource.ts";
import type { Shelf, Shelves } from "./shelf.ts";

type Desired = "on" | "off";

export interface PowerControlOptions {
  readonly clock: Clock;
  /** How long an accepted command is given to show before it is sent again. Seen: up to 11 s without any sign. */
  readonly commandSettles?: Duration;
  /** The same for a command whose answer was lost, which may or may not have arrived. */
  readonly lostCommandSettles?: Duration;
}

interface Commanded {
  readonly desired: Desired;
  /** On the monotonic clock. */
  readonly until: number;
}

const REMEMBERED = 20_000;

export function createPowerControl(shelves: Shelves, options: PowerControlOptions): PowerControl {
  const { clock, commandSettles = seconds(20), lostCommandSettles = seconds(5) } = options;
  // Not needed to be right, only to be quiet: callers ask until they see the state, and the device shall hear it once. It holds
  // what callers cannot keep: commands whose answer was lost, and those that nobody got round to noting.
  const commanded = new BoundedMemory<Commanded>(REMEMBERED);

  const note = (target: BmcTarget, desired: Desired, settles: Duration) =>
    commanded.set(keyOf(target), { desired, until: clock.monotonic() + settles });

  function isAwaited(target: BmcTarget, desired: Desired, told: Told | undefined): boolean {
    const last = commanded.get(keyOf(target));
    if (last !== undefined && last.desired === desired && clock.monotonic() < last.until) return true;
    // Either way: the clock of the replica that noted it may be ahead of ours.
    return told !== undefined && Math.abs(clock.now().getTime() - told.at.getTime()) < commandSettles;
  }

  return {
    async readPower(target, call) {
      return provenPower(await shelves.open(target, call));
    },

    async setPower(target, desired, call, told) {
      const shelf = await shelves.open(target, call);
      if (isReachedOrUnderWay(await provenPower(shelf), desired)) {
        commanded.forget(keyOf(target));
        return { commanded: false };
      }
      if (isAwaited(target, desired, told)) return { commanded: false };
      const { path, body } = await findCommand(shelf, desired);
      try {
        await shelf.client.post(target, path, body, call);
        note(target, desired, commandSettles);
        return { commanded: true };
      } catch (error) {
        if (mayHaveArrived(error)) note(target, desired, lostCommandSettles);
        if (!(error instanceof DeviceFailure) || error.reason !== "refused") throw error;
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

const isReachedOrUnderWay = (power: PowerState, desired: Desired): boolean =>
  power === desired || power === `powering_${desired}`;

/** No answer, half an answer, or nobody waited for it: the command may be on its way to being carried out. */
function mayHaveArrived(error: unknown): boolean {
  if (!(error instanceof DeviceFailure)) return error instanceof StepFailure;
  return error.disposition === "retry" && error.status !== 429;
}

async function findCommand(
  shelf: Shelf,
  desired: Desired,
): Promise<{ readonly path: string; readonly body: Resource }> {
  const layout = layoutOf(shelf.chassis);
  const candidates = layout.commands[desired];
  for (const command of candidates) {
    const owner = command.action.startsWith("#ComputerSystem.") ? await firstSystem(shelf) : shelf.chassis;
    const path = owner === undefined ? undefined : offeredAt(owner, command);
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
  throw new DeviceFailure(
    "fail",
    "refused",
    `${nameOf(shelf.target)}: this shelf offers no way to turn its power ${desired} (looked for ${tried}). Do it at the rack`,
  );
}

/** Where to send the command, if the resource lists it with this value: some answer unknown values with success. */
function offeredAt(owner: Resource, { action, parameter, value }: PowerCommand): string | undefined {
  const target = textAt(owner, "Actions", action, "target");
  if (target === undefined || !isLocalPath(target)) return undefined;
  const allowed = valueAt(owner, "Actions", action, `${parameter}@Redfish.AllowableValues`);
  return allowed === undefined || listAt(allowed).includes(value) ? target : undefined;
}

async function firstSystem({ client, target, call, places }: Shelf): Promise<Resource | undefined> {
  if (places.systems === undefined) return undefined;
  const [first] = membersOf(await client.find(target, places.systems, call));
  return first === undefined ? undefined : client.find(target, first.path, call);
}
