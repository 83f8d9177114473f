import { LRUCache } from "lru-cache";
import type { Ailment } from "../../../capabilities/vitals.ts";
import type { Clock } from "../../../kernel/time/clock.ts";
import { type Duration, minutes, seconds } from "../../../kernel/time/duration.ts";
import { deviceKeyOf } from "../../transport/bmc-gateway.ts";
import { healthAt, isResource, linkAt, listAt, membersOf, type Resource, textAt, valueAt } from "../resource.ts";
import type { OpenMachine } from "./machine.ts";

/** What leads from a computer system, its chassis and their parts to more parts: a link, a list of links, or parts in place. */
const LEADS_TO_PARTS = [
  "Processors",
  "Memory",
  "Storage",
  "SimpleStorage",
  "Controllers",
  "StorageControllers",
  "Drives",
  "Volumes",
  "EthernetInterfaces",
  "PCIeDevices",
  "Sensors",
  "Thermal",
  "Temperatures",
  "ThermalSubsystem",
  "Fans",
  "Power",
  "Voltages",
  "PowerSubsystem",
  "PowerSupplies",
] as const;

/** More than any machine has; a BMC that lists more is not followed. */
const MOST_VISITED = 256;
const MOST_AILMENTS = 32;
/** A check of a machine has a few seconds in all: what is not read by then is read by the next check. */
const EACH_CALL: Duration = seconds(2);
/** Of a BMC that has no sum of its parts' health the parts are read again after so long. */
const AGAIN_AFTER: Duration = minutes(10);
const REMEMBERED = 20_000;

/** One walk over all parts of a machine. It may take several calls. */
interface Survey {
  readonly queue: string[];
  readonly visited: Set<string>;
  readonly found: Map<string, Ailment[]>;
}

interface Known {
  survey?: Survey | undefined;
  /** Of the last survey that came to its end, and when the next is due, on the monotonic clock. */
  complete?: { readonly ailments: readonly Ailment[]; readonly until: number } | undefined;
  underWay?: Promise<readonly Ailment[]> | undefined;
}

/** Why the parts are looked at: something is known to be ill, or the BMC has no sum of their health. */
export type SurveyReason = "ill" | "no_sum";

/** Reads the health of a machine's parts one by one, a few at each call, and names those that are not well. */
export class PartSurveys {
  readonly #known = new LRUCache<string, Known>({ max: REMEMBERED });
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** All is well: what was found before is over. */
  forget({ target }: OpenMachine): void {
    this.#known.delete(deviceKeyOf(target));
  }

  async read(machine: OpenMachine, chassis: Resource | undefined, why: SurveyReason): Promise<readonly Ailment[]> {
    const key = deviceKeyOf(machine.target);
    const known = this.#known.get(key) ?? {};
    this.#known.set(key, known);
    if (known.underWay !== undefined) return known.underWay;
    const { complete } = known;
    const isWell = complete?.ailments.length === 0;
    if (why === "no_sum" && isWell && this.#clock.monotonic() < complete.until) return [];
    known.underWay = this.#goOn(machine, chassis, known).finally(() => {
      known.underWay = undefined;
    });
    return known.underWay;
  }

  async #goOn(machine: OpenMachine, chassis: Resource | undefined, known: Known): Promise<readonly Ailment[]> {
    const { client, target, call } = machine;
    const survey = known.survey ?? begin(machine.system, chassis);
    known.survey = survey;
    const until = this.#clock.monotonic() + EACH_CALL;
    for (let path = survey.queue.shift(); path !== undefined; path = survey.queue.shift()) {
      const part = await client.find(target, path, call);
      if (part !== undefined) visit(survey, path, part);
      if (this.#clock.monotonic() >= until) break;
    }
    const found = [...survey.found.values()].flat().slice(0, MOST_AILMENTS);
    if (survey.queue.length > 0)
      return [...new Map([...(known.complete?.ailments ?? []), ...found].map(named)).values()];
    known.survey = undefined;
    known.complete = { ailments: found, until: this.#clock.monotonic() + AGAIN_AFTER };
    return found;
  }
}

const named = (ailment: Ailment) => [ailment.name, ailment] as const;

function begin(system: Resource, chassis: Resource | undefined): Survey {
  const survey: Survey = { queue: [], visited: new Set(), found: new Map() };
  for (const whole of [system, chassis]) if (whole !== undefined) follow(survey, linkAt(whole) ?? "", whole);
  return survey;
}

function visit(survey: Survey, path: string, part: Resource): void {
  const members = membersOf(part);
  for (const member of members) take(survey, member.path, member.resource);
  const ailments = ailmentOf(part);
  if (ailments.length > 0) survey.found.set(path, ailments);
  follow(survey, path, part);
}

/** What is written out in place is judged at once; what is only named is read later. */
function follow(survey: Survey, path: string, whole: Resource): void {
  for (const member of LEADS_TO_PARTS) {
    const value = valueAt(whole, member);
    if (!Array.isArray(value)) {
      const link = linkAt(value);
      if (link !== undefined) take(survey, link, undefined);
      continue;
    }
    for (const [index, part] of listAt(whole, member).entries()) {
      const link = linkAt(part);
      const isInPlace = isResource(part) && Object.keys(part).length > 1;
      if (isInPlace) visit(survey, `${path}/${member}/${index}`, part);
      else if (link !== undefined) take(survey, link, undefined);
    }
  }
}

function take(survey: Survey, path: string, resource: Resource | undefined): void {
  if (survey.visited.has(path) || survey.visited.size >= MOST_VISITED) return;
  survey.visited.add(path);
  if (resource === undefined) survey.queue.push(path);
  else visit(survey, path, resource);
}

/** A place where nothing is plugged in has no health. */
function ailmentOf(part: Resource): Ailment[] {
  const health = healthAt(part, "Status", "Health");
  const name = textAt(part, "Name") ?? textAt(part, "Id") ?? textAt(part, "MemberId");
  if (health === undefined || health === "ok" || name === undefined) return [];
  return textAt(part, "Status", "State")?.toLowerCase() === "absent" ? [] : [{ name, health }];
}
