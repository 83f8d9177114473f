import type { Capability } from "../../capabilities/provider.ts";
import { type MachineSpec, needsEndpoints } from "../../lifecycles/machine/machine.ts";
import type { AnyStep } from "./step.ts";
import { ENDPOINT_NAMES, ENDPOINTS, type Endpoint, REACHED_AT } from "./targets.ts";

export interface StepAccess {
  /** Without which the step is impossible. */
  readonly capabilities: readonly Capability[];
  /** Which must be on record for it. */
  readonly endpoints: readonly Endpoint[];
}

/**
 * Where a step cannot do without credentials: at the endpoints that it needs, and at those that it makes use of wherever they are on
 * record. Steps ask for those through `StepTargets` just as well, and fail where nobody can sign in: a proof that was to be had from
 * there is not left out in silence.
 */
export function signInsOf(
  { mayUse, goesWithout }: Pick<AnyStep, "mayUse" | "goesWithout">,
  { capabilities, endpoints }: StepAccess,
  machine: { readonly spec: MachineSpec; readonly can: ReadonlySet<string> },
): Endpoint[] {
  if (!needsEndpoints(machine.spec)) return [];
  const used = [...capabilities, ...mayUse].filter((one) => machine.can.has(one) && !goesWithout.includes(one));
  const asksAt = (endpoint: Endpoint): boolean =>
    machine.spec[endpoint] !== null && used.some((one) => REACHED_AT[one] === endpoint);
  return ENDPOINTS.filter((endpoint) => endpoints.includes(endpoint) || asksAt(endpoint));
}

export const hasNoCredentials = (machineId: string, endpoint: Endpoint): string =>
  `there are no ${ENDPOINT_NAMES[endpoint]} credentials for machine ${machineId}`;

const GIVEN_BY: Readonly<Record<Endpoint, string>> = {
  bmc: "--bmc-username <name>",
  ssh: "--ssh-username <name> --ssh-key-file <file>",
};

/** The command that gives them. */
export const givesCredentials = (machineId: string, endpoints: readonly Endpoint[]): string =>
  ["millwright machine set-credentials", machineId, ...endpoints.map((one) => GIVEN_BY[one])].join(" ");
