import type { ValidationPayloads } from "../../../lifecycles/rack/payloads.ts";
import { defineWorkflow } from "../workflow.ts";
import { skipAsPlanned } from "./skip-as-planned.ts";

/** Reads every device that a maintenance worked on, and the fabric: each is a row of the outcome. */
export const rackValidation = defineWorkflow<keyof ValidationPayloads>({
  kind: "rack_validation",
  doc: "Validate the devices of a rack and its fabric",
  onlyCancel: true,
  stages: [
    { name: "validate_devices", compensation: "nothing" },
    { name: "validate_fabric", compensation: "nothing" },
  ],
  next: skipAsPlanned,
});
