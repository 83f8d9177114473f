import type { MaintenanceStage } from "../../../lifecycles/rack/payloads.ts";
import { defineWorkflow } from "../workflow.ts";
import { skipAsPlanned } from "./skip-as-planned.ts";
import { RACK_MAINTENANCE } from "./words.ts";

/**
 * The maintenance of a rack: firmware, then the fabric, then power. What is skipped and why was settled when the maintenance began. There
 * are no rounds: a second one would flash again. A new request is the retry.
 */
// biome-ignore format: a table is read by its columns
export const rackMaintenance = defineWorkflow<MaintenanceStage>({
  kind: RACK_MAINTENANCE,
  doc: "Upgrade the firmware of a rack, configure its fabric and switch its devices on",
  onlyCancel: true,
  stages: [
    { name: "firmware_upgrade",      step: "rack_firmware",    compensation: { stays: "the firmware that was flashed" } },
    { name: "configure_nmx_cluster", step: "configure_fabric", compensation: { stays: "the configuration of the fabric" } },
    { name: "power_off_compute",     step: "rack_power",       compensation: { stays: "compute trays that were switched off" } },
    { name: "power_off_switches",    step: "rack_power",       compensation: { stays: "switches that were switched off" } },
    { name: "power_on_shelves",      step: "rack_power",       compensation: "nothing" },
    { name: "power_on_switches",     step: "rack_power",       compensation: "nothing" },
    { name: "power_on_compute",      step: "rack_power",       compensation: "nothing" },
  ],
  next: skipAsPlanned,
});
