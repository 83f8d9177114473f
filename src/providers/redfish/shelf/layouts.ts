import type { PowerState } from "../../../capabilities/power-control.ts";
import { isResource, lastSegment, type Resource, textAt, valueAt } from "../resource.ts";

/** An action and the one parameter that it takes: `{"OnType":"On"}`. */
export interface PowerCommand {
  readonly action: `#${string}`;
  readonly parameter: string;
  readonly value: string;
}

/** How one maker arranges a power shelf, where it differs from the standard. */
export interface ShelfLayout {
  readonly name: "liteon" | "delta" | "standard";
  readonly manufacturer: RegExp;
  /** Tried in this order; the first that the shelf offers is used. */
  readonly commands: Readonly<Record<"on" | "off", readonly PowerCommand[]>>;
  /** The first command exists even where the chassis does not list it. */
  readonly unlisted: boolean;
}

const STANDARD_COMMANDS: ShelfLayout["commands"] = {
  on: [
    { action: "#Chassis.Reset", parameter: "ResetType", value: "On" },
    { action: "#ComputerSystem.Reset", parameter: "ResetType", value: "On" },
  ],
  off: [
    { action: "#Chassis.Reset", parameter: "ResetType", value: "ForceOff" },
    { action: "#ComputerSystem.Reset", parameter: "ResetType", value: "ForceOff" },
  ],
};

/** First match wins; the last one matches all. */
const SHELF_LAYOUTS: readonly ShelfLayout[] = [
  {
    name: "liteon",
    manufacturer: /lite-?on/i,
    // Its Chassis.Reset knows "Reset" alone, hence actions of its own.
    commands: {
      on: [{ action: "#Chassis.On", parameter: "OnType", value: "On" }, ...STANDARD_COMMANDS.on],
      off: [{ action: "#Chassis.ForceOff", parameter: "ForceOffType", value: "ForceOff" }, ...STANDARD_COMMANDS.off],
    },
    unlisted: true,
  },
  // Has no power action in public documents; should a firmware list a standard one, it is used.
  { name: "delta", manufacturer: /delta/i, commands: STANDARD_COMMANDS, unlisted: false },
  { name: "standard", manufacturer: /(?:)/, commands: STANDARD_COMMANDS, unlisted: false },
];

export function layoutOf(chassis: Resource): ShelfLayout {
  const manufacturer = textAt(chassis, "Manufacturer") ?? "";
  const layout = SHELF_LAYOUTS.find((candidate) => candidate.manufacturer.test(manufacturer));
  if (layout === undefined) throw new Error("the last layout must match every manufacturer");
  return layout;
}

/** Among several chassis (the shelf, its controller, …) the shelf is the one that says so in its id. */
export const SHELF_CHASSIS_ID = /powershelf/i;

/** A chassis that says itself that it is a shelf. */
export const isCalledShelf = (path: string, chassis: Resource): boolean =>
  SHELF_CHASSIS_ID.test(lastSegment(path)) || /shelf/i.test(textAt(chassis, "ChassisType") ?? "");

const POWER_WORDS: Readonly<Record<string, PowerState>> = {
  on: "on",
  off: "off",
  poweringon: "powering_on",
  poweringoff: "powering_off",
};

/** `undefined` where the resource does not speak of power; "unknown" where it does, in a word that we do not know. */
export function powerStateOf(resource: Resource): PowerState | undefined {
  const word = textAt(resource, "PowerState");
  if (word === undefined) return undefined;
  const known = word.toLowerCase();
  return Object.hasOwn(POWER_WORDS, known) ? POWER_WORDS[known] : "unknown";
}

/** Where makers write whether a supply gives power, best first. */
const SUPPLY_POWER_PLACES: readonly (readonly string[])[] = [
  ["PowerState"],
  ["Oem", "deltaenergysystems", "Power"],
  ["Status", "State"],
];

const SUPPLY_POWER_WORDS: Readonly<Record<string, boolean>> = {
  true: true,
  on: true,
  enabled: true,
  false: false,
  off: false,
  disabled: false,
  standbyoffline: false,
  unavailableoffline: false,
};

export function isSupplyOn(supply: Resource): boolean | null {
  for (const place of SUPPLY_POWER_PLACES) {
    const value = valueAt(supply, ...place);
    if (typeof value !== "boolean" && typeof value !== "string") continue;
    const word = String(value).trim().toLowerCase();
    if (Object.hasOwn(SUPPLY_POWER_WORDS, word)) return SUPPLY_POWER_WORDS[word] ?? null;
  }
  return null;
}

export const isSupplyPresent = (supply: unknown): supply is Resource =>
  isResource(supply) && textAt(supply, "Status", "State")?.toLowerCase() !== "absent";
