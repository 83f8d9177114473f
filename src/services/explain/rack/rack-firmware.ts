import { whyUnavailable } from "../../../lifecycles/rack-firmware/rack-firmware.ts";
import { listRackFirmware } from "../../../store/rack-firmware/rack-firmware.ts";
import type { ServiceDeps } from "../../call/deps.ts";
import { explainAnyThing } from "../any-thing.ts";
import { type Explanation, inOrder, type NextCommand, say } from "../explanation.ts";

/** Whether racks get it, and what to do where they do not. */
export async function explainRackFirmware(deps: ServiceDeps, id: string): Promise<Explanation> {
  const plain = await explainAnyThing(deps, "rack_firmware", id, "millwright rack-firmware list");
  const [firmware] = await listRackFirmware(deps.db, { ids: [id] });
  if (!firmware) return plain;
  const { state, isDefault, hardwareType } = firmware;
  const unreadable = firmware.unreadable && whyUnavailable(firmware);
  if (unreadable) {
    const remove = say(`rack-firmware delete ${id}`, "removes the record, so that it can be created again");
    return { ...plain, headline: unreadable, nextCommands: inOrder([remove, ...plain.nextCommands]) };
  }
  const cause = typeof state.cause === "string" ? `: ${state.cause}` : "";
  const role = isDefault ? `; it is the default of hardware type ${hardwareType}` : "";
  return {
    ...plain,
    headline: `${plain.headline}${state.name === "failed" ? cause : ""}${role}`,
    nextCommands: inOrder([...commandsFor(state.name, id), ...plain.nextCommands]),
  };
}

function commandsFor(state: string, id: string): NextCommand[] {
  const get = say(`rack-firmware get ${id}`, "shows its files, and how far their download has come");
  if (state !== "failed") return [get];
  return [say(`rack-firmware download ${id}`, "downloads its files again, once the reason is mended"), get];
}
