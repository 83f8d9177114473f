import type { Json, JsonObject } from "../../kernel/lifecycle.ts";
import type { RackActivity, RackPhase, RackState } from "../../services/rack/racks.ts";

type Carried = { readonly [key: string]: Json | undefined };

/** A nested state of the contract: how it is written as text, and as JSON. */
interface Nested {
  readonly text: string;
  readonly json: Json;
}

const nested =
  (variant: string, field: string, words: Readonly<Partial<Record<RackPhase, string>>>, first: string) =>
  (phase: RackPhase | undefined): Nested => {
    const word = (phase && words[phase]) ?? first;
    return { text: `${variant}(${word})`, json: { [variant]: { [field]: word } } };
  };

/** Each activity with its phases. A phase that an activity does not have is shown as its first. */
// biome-ignore format: a table is read by its columns
const ACTIVITIES: Readonly<Record<RackActivity, (phase: RackPhase | undefined) => Nested>> = {
  firmware_upgrade:      nested("FirmwareUpgrade", "rack_firmware_upgrade", { start: "Start", wait_for_complete: "WaitForComplete" }, "Start"),
  configure_nmx_cluster: nested("ConfigureNmxCluster", "configure_nmx_cluster", { start: "Start", wait_for_fabric_status: "WaitForFabricStatus" }, "Start"),
  power_sequence:        nested("PowerSequence", "rack_power", { powering_off: "PoweringOff", powering_on: "PoweringOn" }, "PoweringOn"),
  completed:             () => ({ text: "Completed", json: "Completed" }),
};

/** How each state is written; the nested part is a function of what the state carries. */
const STATES: Readonly<
  Record<
    RackState,
    { readonly text: string; readonly nested?: (carried: Carried) => Nested & { readonly field: string } }
  >
> = {
  created: { text: "Created" },
  discovering: { text: "Discovering" },
  maintenance: {
    text: "Maintenance",
    nested({ activity, phase }) {
      const of = ACTIVITIES[activity as RackActivity] ?? ACTIVITIES.firmware_upgrade;
      return { field: "maintenance_state", ...of(phase as RackPhase | undefined) };
    },
  },
  validating: {
    text: "Validating",
    nested: ({ run }) =>
      typeof run === "string"
        ? { field: "validating_state", text: "InProgress", json: { InProgress: { run_id: run } } }
        : { field: "validating_state", text: "Pending", json: "Pending" },
  },
  ready: { text: "Ready" },
  error: {
    text: "Error",
    nested: ({ cause }) => {
      const text = typeof cause === "string" ? cause : "unknown";
      return { field: "cause", text, json: text };
    },
  },
  deleting: { text: "Deleting" },
};

/** The state as the contract's JSON, its tag first. */
export function rackStateJson(name: string, carried: Carried): JsonObject {
  const inner = STATES[name as RackState]?.nested?.(carried);
  return { state: name, ...(inner && { [inner.field]: inner.json }) };
}

/** The state as the contract's text, such as Maintenance(FirmwareUpgrade(Start)). */
export function rackStateText(name: string, carried: Carried): string {
  const { text = name, nested: within } = STATES[name as RackState] ?? {};
  const inner = within?.(carried);
  return inner ? `${text}(${inner.text})` : text;
}

/** Words that older clients have for states. */
const ALIASES: Readonly<Record<string, RackState>> = {
  expected: "created",
  unknown: "created",
  validation: "validating",
};

export const rackStateOfAlias = (word: string): RackState | undefined =>
  word in STATES ? (word as RackState) : ALIASES[word];
