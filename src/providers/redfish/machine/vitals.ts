import type { Ailment, Health, Vitals } from "../../../capabilities/vitals.ts";
import type { Clock } from "../../../kernel/time/clock.ts";
import { healthAt, linkAt, listAt, type Resource, textAt } from "../resource.ts";
import type { Machines, OpenMachine } from "./machine.ts";
import { PartSurveys } from "./part-survey.ts";
import { machinePowerOf } from "./power.ts";

const WORST = ["critical", "warning", "ok"] as const;
type Told = (typeof WORST)[number];

/** Summaries that a computer system gives of its parts. */
const SUMMARIES = [
  ["processors", "ProcessorSummary"],
  ["memory", "MemorySummary"],
] as const;

/**
 * Two requests while all is well: the computer system and its chassis, whose rollups cover all that is below them, sensors too.
 * The parts are read one by one only when something is not well, to name it, and now and then where a BMC has no rollups: what it
 * says of the whole then says nothing of the parts.
 */
export function createMachineVitals(machines: Machines, clock: Clock): Vitals {
  const surveys = new PartSurveys(clock);

  async function ailmentsOf(machine: OpenMachine, chassis: Resource | undefined, told: Health) {
    const isIll = told === "warning" || told === "critical";
    if (!isIll && hasRollup(machine.system) && (chassis === undefined || hasRollup(chassis))) {
      surveys.forget(machine);
      return [];
    }
    const parts = await surveys.read(machine, chassis, isIll ? "ill" : "no_sum");
    return parts.length > 0 ? parts : summariesNotWell(machine.system);
  }

  return {
    async readVitals(target, call) {
      const machine = await machines.open(target, call);
      const { system, certificateFingerprint } = machine;
      const chassis = await findChassis(machine);
      const told = worst([
        ...toldBy(system),
        ...toldBy(chassis),
        ...summariesNotWell(system).map(({ health }) => health),
      ]);
      const ailments = await ailmentsOf(machine, chassis, told);
      return {
        serial: textAt(system, "SerialNumber") ?? null,
        systemUuid: textAt(system, "UUID")?.toLowerCase() ?? null,
        power: machinePowerOf(machine),
        health: worst([told, ...ailments.map(({ health }) => health)]),
        ailments,
        ...(certificateFingerprint === undefined ? {} : { certificateFingerprint }),
      };
    },
  };
}

const worst = (all: readonly Health[]): Health => WORST.find((each) => all.includes(each)) ?? "unknown";

/** Some keep the one up to date, and some the other. */
const toldBy = (resource: Resource | undefined, ...path: readonly string[]): Told[] =>
  ["HealthRollup", "Health"].flatMap((member) => healthAt(resource, ...path, "Status", member) ?? []);

const hasRollup = (resource: Resource): boolean => healthAt(resource, "Status", "HealthRollup") !== undefined;

async function findChassis({ client, target, call, system }: OpenMachine): Promise<Resource | undefined> {
  const path = linkAt(listAt(system, "Links", "Chassis")[0]);
  return path === undefined ? undefined : client.find(target, path, call);
}

const summariesNotWell = (system: Resource): Ailment[] =>
  SUMMARIES.flatMap(([name, member]) => {
    const health = worst(toldBy(system, member));
    return health === "warning" || health === "critical" ? [{ name, health }] : [];
  });
