import { type MaasMachine, type ObservedMaasState, observedStateOf } from "../../../capabilities/fleet/maas-machine.ts";
import { AppError, StepFailure } from "../../../kernel/errors.ts";
import type { FleetPolicy } from "../../../lifecycles/fleet-node/policy.ts";
import { findMachineOfNode } from "../../../runs/steps/fleet/onboarding/create-or-find-in-maas.ts";
import { notUsable, reachedBy } from "../../../runs/steps/fleet/onboarding/maas-status.ts";
import type { KnownIdentity } from "../../../runs/steps/fleet/onboarding/on-onboarding.ts";
import { findOtherOnSystem } from "../../../store/fleet/nodes.ts";
import type { FleetSite } from "../../../store/fleet/sites.ts";
import type { ServiceDeps } from "../../call/deps.ts";
import type { CheckedIdentity } from "../node-input.ts";
import { callOf, maasOf, targetOfSite } from "../site-target.ts";

/**
 * create: MAAS has no machine of the node. adopt: it has one that the job would take, and go on from. refuse: the job would fail there. unknown:
 * MAAS was not asked, or has not answered. none: it has no part in the node.
 */
export type InMaas = "create" | "adopt" | "refuse" | "unknown" | "none";

export interface PreviewedInMaas {
  readonly outcome: InMaas;
  readonly message: string;
  /** Of a refusal; empty otherwise. */
  readonly failureClass: string;
  /** The machine that it has; null: none, or not one alone. */
  readonly machine: {
    readonly systemId: string;
    readonly hostname: string;
    readonly state: ObservedMaasState;
    readonly statusName: string;
  } | null;
}

interface Looked {
  readonly node: CheckedIdentity;
  readonly site: FleetSite;
  readonly policy: FleetPolicy;
  readonly known: KnownIdentity;
}

const said = (outcome: InMaas, message: string, failureClass = ""): PreviewedInMaas => ({
  ...{ outcome, message, failureClass, machine: null },
});

export const noPart = said("none", "a manual node: MAAS has no part in it");
export const notAsked = said("unknown", "MAAS was not asked: the site or the profile is in the way");

/** What MAAS has for the node now, as the onboarding itself would look for it. A MAAS that cannot be asked is an answer as well. */
export async function previewInMaas(deps: ServiceDeps, looked: Looked): Promise<PreviewedInMaas> {
  try {
    const machine = await search(deps, looked);
    if (machine === undefined) return said("create", "MAAS has no machine of the node: one would be created");
    const { systemId, hostname, statusName } = machine;
    return { ...adoption(machine), machine: { systemId, hostname, state: observedStateOf(machine), statusName } };
  } catch (error) {
    if (error instanceof StepFailure && REFUSALS.has(error.code)) return said("refuse", error.message, error.code);
    if (error instanceof StepFailure || error instanceof AppError) return said("unknown", error.message);
    throw error;
  }
}

const REFUSALS: ReadonlySet<string> = new Set(["conflicting_candidates", "identity_mismatch"]);

async function search(deps: ServiceDeps, { node, site, policy, known }: Looked): Promise<MaasMachine | undefined> {
  const place = { maas: maasOf(deps), target: await targetOfSite(deps, site), retainsMachines: site.retainInMaas };
  return findMachineOfNode({
    maas: async () => place,
    knownIdentity: async () => known,
    otherNodeOn: (systemId) => findOtherOnSystem(deps.db, { site: site.name, systemId, exceptId: "" }),
    call: callOf("preview"),
    target: { hostname: node.hostname, facts: { systemId: null } },
    payload: { policy: { ...policy } },
  });
}

/** What the stages after the search would do with the machine as it is. */
function adoption(machine: MaasMachine): PreviewedInMaas {
  switch (reachedBy(machine)) {
    case "blank":
      return said("adopt", "it would be taken, commissioned and deployed");
    case "commissioning":
      return said("adopt", "it would be taken: its commissioning is waited for");
    case "editable":
      return said("adopt", "it would be taken as it is commissioned, and deployed");
    case "allocated":
      return said("adopt", "it would be taken as it is, and deployed, if it boots from its BOSS disk already");
    case "moving":
      return said("adopt", "it would be taken: what MAAS does with it is waited for");
    case "deploying":
    case "deployed":
    case "deploy_failed":
      return said(
        "refuse",
        "somebody else has deployed it: the job would not touch it; rerun or adopt-observed-state takes it over then",
        "drift_not_adoptable",
      );
    case "unusable":
      return said("refuse", notUsable(machine).message, "machine_not_usable");
  }
}
