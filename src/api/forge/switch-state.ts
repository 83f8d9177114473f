import type { Json, JsonObject } from "../../kernel/lifecycle.ts";
import type { ReprovisioningStep, SwitchState } from "../../services/switch/switches.ts";

/** How the contract spells the states of a switch; also the words of its state filter. */
const WORDS = {
  created: "created",
  initializing: "initializing",
  configuring: "configuring",
  validating: "validating",
  bom_validating: "bomvalidating",
  ready: "ready",
  reprovisioning: "reprovisioning",
  error: "error",
  deleting: "deleting",
} as const satisfies Record<SwitchState, string>;

/** The one sub-state that a state has there. */
const SUB_STATES: Readonly<Partial<Record<SwitchState, JsonObject>>> = {
  initializing: { initializing_state: "WaitForOsMachineInterface" },
  configuring: { configuring_state: "RotateOsPassword" },
  validating: { validating_state: "ValidationComplete" },
  bom_validating: { bom_validating_state: "BomValidationComplete" },
};

const STEPS = {
  waiting_for_rack_firmware_upgrade: "WaitingForRackFirmwareUpgrade",
  waiting_for_nmxc_configure: "WaitingForNMXCConfigure",
} as const satisfies Record<ReprovisioningStep, string>;

/** Our word for a state word of the contract; undefined for a word that no state of ours has. */
export const switchStateForWord = (word: string): string | undefined =>
  Object.entries(WORDS).find(([, spelt]) => spelt === word)?.[0];

/** The state as the contract's JSON, its tag first. Of a word that a newer row may hold, a spelling is made. */
export function switchStateJson(name: string, carried: { readonly [key: string]: Json | undefined }): JsonObject {
  const known = name as SwitchState;
  const state = WORDS[known] ?? name.replaceAll("_", "");
  const { cause, step } = carried;
  if (name === "error") return { state, ...(typeof cause === "string" && { cause }) };
  if (name === "reprovisioning")
    return {
      state,
      reprovisioning_state: STEPS[step as ReprovisioningStep] ?? STEPS.waiting_for_rack_firmware_upgrade,
    };
  return { state, ...SUB_STATES[known] };
}
