import type { ValidationPayloads } from "../../../lifecycles/rack/payloads.ts";
import { defineWorkflow } from "../workflow.ts";
import { skipAsPlanned } from "./skip-as-planned.ts";
import { RACK_VALIDATION } from "./words.ts";

/** Reads every device that a maintenance worked on, and the fabric: each is a row of the outcome. */
export const rackValidation = defineWorkflow<keyof ValidationPayloads>({
  kind: RACK_VALIDATION,
  doc: "Validate the devices of a rack and its fabric",
  onlyCancel: true,
  stages: [
    { name: "validate_devices", compensation: "nothing" },
    { name: "validate_fabric", compensation: "nothing" },
  ],
  next: skipAsPlanned,
});
