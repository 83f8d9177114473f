import { hostReprovisionStore } from "../../../store/host-reprovision/host-reprovisions.ts";
import type { ServiceDeps } from "../../call/deps.ts";
import { explainAnyThing } from "../any-thing.ts";
import { NO_TROUBLE } from "../causes.ts";
import { type Explanation, inOrder, type NextCommand, say } from "../explanation.ts";
import type { MachineNote } from "../machine-notes.ts";

/** That the firmware of a machine could not be renewed is no condition of the machine; who asks about the machine has to know it. */
export async function failedUpgradeNote({ db }: ServiceDeps, id: string): Promise<readonly MachineNote[]> {
  const [host] = (await hostReprovisionStore.load(db, [id])).things;
  if (host?.state.name !== "failed_firmware_upgrade") return [];
  return [
    {
      type: null,
      words: "its firmware upgrade failed",
      trouble: NO_TROUBLE,
      why: typeof host.state.cause === "string" ? host.state.cause : "",
      since: host.stateSince,
      commands: [
        say(`explain host_reprovision ${id}`, "says why, and what helps"),
        say(`run list --machine ${id} --children`, "lists what was done with it, also for its rack"),
      ],
    },
  ];
}

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
