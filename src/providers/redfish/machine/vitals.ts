import type { Ailment, Health, Vitals } from "../../../capabilities/vitals.ts";
import { healthAt, linkAt, listAt, membersOf, type Resource, textAt } from "../resource.ts";
import type { Machines, OpenMachine } from "./machine.ts";
import { machinePowerOf } from "./power.ts";

/** More than any machine has; a BMC that lists more is not followed. */
const MOST_SENSORS = 64;
const WORST = ["critical", "warning", "ok"] as const;

/** Summaries that a computer system gives of its parts. */
const PARTS = [
  ["processors", "ProcessorSummary"],
  ["memory", "MemorySummary"],
] as const;

/**
 * Two requests while all is well: the computer system and its chassis, whose rollups cover all that is below them, sensors too.
 * Only when one of them is not well are the sensors read, to name what is wrong.
 */
export function createMachineVitals(machines: Machines): Vitals {
  return {
    async readVitals(target, call) {
      const machine = await machines.open(target, call);
      const { system, certificateFingerprint } = machine;
      const chassis = await findChassis(machine);
      const own = healthOf(system);
      const around = healthOf(chassis);
      const health: Health = WORST.find((each) => each === own || each === around) ?? "unknown";
      const isWell = health === "ok" || health === "unknown";
      return {
        serial: textAt(system, "SerialNumber") ?? null,
        systemUuid: textAt(system, "UUID")?.toLowerCase() ?? null,
        power: machinePowerOf(machine),
        health,
        ailments: isWell ? [] : [...partsNotWell(system), ...(await sensorsNotWell(machine, chassis))],
        ...(certificateFingerprint === undefined ? {} : { certificateFingerprint }),
      };
    },
  };
}

const healthOf = (resource: Resource | undefined) =>
  healthAt(resource, "Status", "HealthRollup") ?? healthAt(resource, "Status", "Health");

async function findChassis({ client, target, call, system }: OpenMachine): Promise<Resource | undefined> {
  const path = linkAt(listAt(system, "Links", "Chassis")[0]);
  return path === undefined ? undefined : client.find(target, path, call);
}

const ailment = (name: string, health: ReturnType<typeof healthAt>): Ailment[] =>
  health === undefined || health === "ok" ? [] : [{ name, health }];

const partsNotWell = (system: Resource): Ailment[] =>
  PARTS.flatMap(([name, member]) => ailment(name, healthAt(system, member, "Status", "Health")));

/** One after the other: whoever works on the machine shall get through as well. */
async function sensorsNotWell(
  { client, target, call }: OpenMachine,
  chassis: Resource | undefined,
): Promise<readonly Ailment[]> {
  const link = linkAt(chassis, "Sensors");
  if (link === undefined) return [];
  const found: Ailment[] = [];
  for (const { path, resource } of membersOf(await client.find(target, link, call)).slice(0, MOST_SENSORS)) {
    const sensor = resource ?? (await client.find(target, path, call));
    const name = textAt(sensor, "Name") ?? textAt(sensor, "Id");
    if (name !== undefined) found.push(...ailment(name, healthAt(sensor, "Status", "Health")));
  }
  return found;
}
