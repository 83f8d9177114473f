import type { Maas, MaasTarget } from "../../../capabilities/fleet/maas.ts";
import type { FleetNode } from "../../../lifecycles/fleet-node/fleet-node.ts";
import type { On } from "../../model/step.ts";
import type { WithAgent } from "./agent-of-node.ts";
import type { EnrolmentOfNode } from "./enrolment-of-node.ts";

/** The region of a node's site, with what the site says of it. */
export interface MaasOfSite {
  readonly maas: Maas;
  readonly target: MaasTarget;
  /** Whether a machine stays in MAAS when its node is removed. */
  readonly retainsMachines: boolean;
}

/** What steps on fleet nodes work with, beside what all steps do. They only read by it: what they change, they return as effects. */
export interface OnFleetNode extends On<FleetNode>, WithAgent {
  readonly enrolment: EnrolmentOfNode;
  /**
   * What a job has done can be undone at a site that is disabled by now.
   *
   * @throws StepFailure "site_unavailable" where the site is gone or disabled, "credentials_missing" without its key
   */
  maas(options?: { readonly evenDisabled: boolean }): Promise<MaasOfSite>;
}
