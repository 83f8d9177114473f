import { Forge } from "../../../contract/forge/forge_pb.js";
import { RackService } from "../../../contract/millwright/v1/rack_pb.js";
import type { MethodRoles, MethodThings } from "../../api/auth/access.ts";
import { LARGEST_REPORT_REQUEST } from "../../api/convert/health.ts";
import { forgeRacks } from "../../api/forge/racks.ts";
import { rackMaintenance } from "../../api/millwright/rack/maintenance.ts";
import { racks } from "../../api/millwright/rack/racks.ts";
import { partOf, type ServicePart } from "../../api/transport/service-parts.ts";
import type { MethodDeps } from "./thing.ts";

export const rackMethods = ({ services, runs }: MethodDeps): readonly ServicePart[] => [
  partOf(Forge, forgeRacks(services), { insertRackHealthReport: LARGEST_REPORT_REQUEST }),
  partOf(RackService, racks(services)),
  partOf(RackService, rackMaintenance({ steps: new Map(), ...services, ...runs })),
];

/** The rows of `forge.Forge` are those of its specification, section 5, with Millwright's own roles beside them. */
// biome-ignore format: a table is read by its columns
export const rackRoles: MethodRoles = {
  "forge.Forge/FindRackIds":                   ["viewer", "ForgeAdminCLI", "SiteAgent", "Flow"],
  "forge.Forge/FindRacksByIds":                ["viewer", "ForgeAdminCLI", "SiteAgent", "Flow"],
  "forge.Forge/GetRack":                       ["viewer", "ForgeAdminCLI", "Flow"],
  "forge.Forge/DeleteRack":                    ["operator", "ForgeAdminCLI", "Flow"],
  "forge.Forge/OnDemandRackMaintenance":       ["ForgeAdminCLI"],
  "forge.Forge/GetRackProfile":                ["viewer", "ForgeAdminCLI"],
  "forge.Forge/FindRackStateHistories":        ["viewer", "ForgeAdminCLI", "Machineatron"],
  "forge.Forge/UpdateRackMetadata":            ["operator", "ForgeAdminCLI", "SiteAgent"],
  "forge.Forge/ListRackHealthReports":         ["viewer", "ForgeAdminCLI", "Health", "DsxExchangeConsumer"],
  "forge.Forge/InsertRackHealthReport":        ["operator", "ForgeAdminCLI", "Health", "DsxExchangeConsumer"],
  "forge.Forge/RemoveRackHealthReport":        ["operator", "ForgeAdminCLI", "Health", "DsxExchangeConsumer"],
  "millwright.v1.RackService/ListRacks":         ["viewer"],
  "millwright.v1.RackService/GetRack":           ["viewer"],
  "millwright.v1.RackService/RefreshRack":       ["operator"],
  "millwright.v1.RackService/ForceDeleteRack":   ["ForgeAdminCLI"],
  "millwright.v1.RackService/StartRackMaintenance":     ["ForgeAdminCLI"],
  "millwright.v1.RackService/PreviewRackMaintenance":   ["viewer"],
  "millwright.v1.RackService/PreviewRackMaintenance include_assigned": ["admin"],
  "millwright.v1.RackService/StartRackMaintenance include_assigned": ["admin"],
  "millwright.v1.RackService/TerminateRackMaintenance": ["operator"],
  "millwright.v1.RackService/ResumeRackMaintenance":    ["ForgeAdminCLI"],
  "millwright.v1.RackService/ReprovisionRack":          ["ForgeAdminCLI"],
  "millwright.v1.RackService/ClearRackError":           ["operator"],
  "millwright.v1.RackService/DeleteRack":               ["operator"],
  "millwright.v1.RackService/ListRackProfiles":  ["viewer"],
  "millwright.v1.RackService/PutRackProfile":    ["operator"],
  "millwright.v1.RackService/DeleteRackProfile": ["operator"],
};

/** Which of them name racks. */
// biome-ignore format: a table is read by its columns
export const rackThings: MethodThings = {
  "forge.Forge/FindRacksByIds":                                "rack rack_ids.id",
  "forge.Forge/GetRack":                                       "rack id",
  "forge.Forge/DeleteRack":                                    "rack id",
  "forge.Forge/GetRackProfile":                                "rack rack_id.id",
  "forge.Forge/OnDemandRackMaintenance":                       "rack rack_id.id",
  "forge.Forge/ListRackHealthReports":                         "rack rack_id.id",
  "forge.Forge/InsertRackHealthReport":                        "rack rack_id.id",
  "forge.Forge/RemoveRackHealthReport":                        "rack rack_id.id",
  "forge.Forge/FindRackStateHistories":                        "rack rack_ids.id",
  "millwright.v1.RackService/ListRacks":                       "list",
  "millwright.v1.RackService/GetRack":                         "rack id",
  "millwright.v1.RackService/RefreshRack":                     "rack id",
  "millwright.v1.RackService/DeleteRack":                      "rack id",
  "millwright.v1.RackService/ForceDeleteRack":                 "rack id",
  "millwright.v1.RackService/StartRackMaintenance":            "rack rack_id",
  "millwright.v1.RackService/PreviewRackMaintenance":          "rack rack_id",
  "millwright.v1.RackService/TerminateRackMaintenance":        "rack rack_id",
  "millwright.v1.RackService/ReprovisionRack":                 "rack rack_id",
  "millwright.v1.RackService/ClearRackError":                  "rack rack_id",
};
