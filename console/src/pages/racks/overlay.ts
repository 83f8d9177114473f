import type { RackMember } from "../../../../contract/millwright/v1/rack_pb.js";
import type { Tone } from "../../tone/tone.ts";

/** What the elevation shows of each device. */
export const OVERLAYS = [
  ["state", "State"],
  ["power", "Power"],
  ["firmware", "Firmware"],
] as const;
export type Overlay = (typeof OVERLAYS)[number][0];

export interface Shown {
  readonly text: string;
  readonly tone: Tone;
}

/** Components that are not as they should be; what nobody has read counts as unknown, and not as wrong. */
function staleComponents({ firmware }: Pick<RackMember, "firmware">): readonly string[] {
  return firmware.flatMap(({ component, installed, wanted }) =>
    installed !== "" && wanted !== "" && installed !== wanted ? [`${component} ${installed}, wanted ${wanted}`] : [],
  );
}

export function firmwareShown(member: Pick<RackMember, "firmware">): Shown {
  const { firmware } = member;
  if (firmware.length === 0) return { text: "", tone: "calm" };
  const stale = staleComponents(member);
  if (stale.length > 0) return { text: `${stale.length} of ${firmware.length} stale`, tone: "waiting" };
  const unknown = firmware.filter(({ installed }) => installed === "").length;
  return { text: unknown > 0 ? `${unknown} not read` : "as wanted", tone: "calm" };
}

/** A device that is not on is said, and is no trouble by itself: its state says what is. */
export const powerShown = ({ powerState }: Pick<RackMember, "powerState">): Shown => ({
  text: powerState,
  tone: powerState === "on" || powerState === "unknown" ? "calm" : powerState === "off" ? "waiting" : "working",
});

/** The number in it: `tray 7` stands below `tray 8`. */
export const placeOf = ({ slot }: Pick<RackMember, "slot">): number => Number(/\d+/.exec(slot)?.[0] ?? -1);
const titleOf = ({ name, id }: Pick<RackMember, "name" | "id">): string => name || id;

/** In a rack the highest slot is on top; what stands nowhere comes last. */
export function byPlace(members: readonly RackMember[]): RackMember[] {
  return members.toSorted(
    (a, b) => placeOf(b) - placeOf(a) || titleOf(b).localeCompare(titleOf(a), "en", { numeric: true }),
  );
}
