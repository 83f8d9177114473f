import type { MessageInitShape } from "@bufbuild/protobuf";
import type { HealthReportSchema } from "../../../../contract/health/health_pb.js";

type Template = (message: string) => MessageInitShape<typeof HealthReportSchema>;

const alert =
  (source: string, id: string, said: string, classifications: string[]): Template =>
  (message) => ({ source, alerts: [{ id, message: message || said, classifications }] });

/** Reports that operators put on devices again and again; --message says it in their own words. */
export const HEALTH_TEMPLATES: { readonly [name: string]: Template } = {
  "internal-maintenance": alert("internal-maintenance", "InternalMaintenance", "under maintenance", [
    "PreventAllocations",
  ]),
  "out-for-repair": alert("out-for-repair", "OutForRepair", "out for repair", ["PreventAllocations"]),
  degraded: alert("degraded", "Degraded", "works with less than its full capacity", []),
  // Without alerts; put on with --replace it outweighs all other reports.
  "mark-healthy": () => ({ source: "mark-healthy" }),
};
