import type { JsonObject } from "../../../kernel/lifecycle.ts";
import type { RackPayloads, ValidationPayloads } from "../../../lifecycles/rack/payloads.ts";
import type { Plan } from "../../model/plan/plan.ts";
import type { StepShapes } from "../../model/step.ts";
import { configureManagedFabric, validateManagedFabric } from "../../steps/rack/managed/managed-fabric.ts";
import { submitFirmware } from "../../steps/rack/managed/submit-firmware.ts";
import { planOfWorkflow } from "../workflow.ts";
import { rackMaintenance } from "./rack-maintenance.ts";
import { rackValidation } from "./rack-validation.ts";

/** The kinds of steps by which a rack manager does what devices would do by themselves otherwise. */
const MANAGED = {
  firmware_upgrade: submitFirmware.kind,
  configure_nmx_cluster: configureManagedFabric.kind,
  validate_fabric: validateManagedFabric.kind,
} as const;

/** By the payload of each stage: who does it was settled with all else of it. */
function kindsFor<S extends string>(payloads: { readonly [name in S]: JsonObject }) {
  const isManaged = ([name]: [string, string]) => payloads[name as S]?.via === "rack_manager";
  return Object.fromEntries(Object.entries(MANAGED).filter(isManaged)) as { readonly [name in S]?: string };
}

/** What the maintenance of a rack is, frozen like every plan of a run. */
export const planOfMaintenance = (payloads: RackPayloads, steps: StepShapes): Plan =>
  planOfWorkflow(rackMaintenance, steps, { payloads, kinds: kindsFor(payloads) });

export const planOfValidation = (payloads: ValidationPayloads, steps: StepShapes): Plan =>
  planOfWorkflow(rackValidation, steps, { payloads, kinds: kindsFor(payloads) });
