import { hostReprovisionStore } from "../../../store/host-reprovision/host-reprovisions.ts";
import type { ServiceDeps } from "../../call/deps.ts";
import { explainAnyThing } from "../any-thing.ts";
import { type Explanation, inOrder, type NextCommand, say } from "../explanation.ts";

/** Why the firmware of a tray is not renewed, and what helps. */
export async function explainHostReprovision(deps: ServiceDeps, id: string): Promise<Explanation> {
  const plain = await explainAnyThing(deps, "host_reprovision", id, "millwright machine list");
  const [host] = (await hostReprovisionStore.load(deps.db, [id])).things;
  if (!host) return plain;
  const { state } = host;
  const cause =
    state.name === "failed_firmware_upgrade" && typeof state.cause === "string" ? `; it failed: ${state.cause}` : "";
  const commands: NextCommand[] = [];
  if (state.name === "failed_firmware_upgrade")
    commands.push(say(`machine reprovision ${id}`, "tries the firmware upgrade again at once"));
  if (state.name === "waiting_for_rack_firmware_upgrade" && state.rack !== undefined)
    commands.push(say(`explain rack ${state.rack}`, "explains what its rack does and waits for"));
  if (state.run !== undefined) commands.push(say(`run show ${state.run}`, "shows how far its firmware is"));
  if (host.reprovisionRequest && host.assigned !== "no")
    commands.push(say(`machine enter-maintenance ${id}`, "takes it out of use, so that its firmware is upgraded"));
  return {
    ...plain,
    headline: `${plain.headline}${cause}`,
    nextCommands: inOrder([...commands, ...plain.nextCommands]),
  };
}
