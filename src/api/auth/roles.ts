import { AppError } from "../../kernel/errors.ts";
import type { Caller } from "../../services/call/caller.ts";
import { expandRoles, ROLES, type Role } from "../../services/call/roles.ts";

/** Roles that may call, or `anyone`: also without credentials. */
export type Allowed = readonly Role[] | "anyone";

const SHELF_READERS = ["viewer", "ForgeAdminCLI", "Machineatron", "Flow"] as const;
const EXPECTED_READERS = ["viewer", "ForgeAdminCLI", "Machineatron", "SiteAgent", "Flow"] as const;
const EXPECTED_WRITERS = ["operator", "ForgeAdminCLI", "Machineatron", "SiteAgent"] as const;

/**
 * Who may do what: every method and every route, once. What has no row is denied to everybody, and a test compares the rows
 * with the contracts both ways.
 *
 * The rows of `forge.Forge` are those of its specification, section 5, with Millwright's own roles beside them.
 */
// biome-ignore format: a table is read by its columns
export const METHOD_ROLES: Readonly<Record<string, Allowed>> = {
  "forge.Forge/FindPowerShelves":                       SHELF_READERS,
  "forge.Forge/FindPowerShelfIds":                      SHELF_READERS,
  "forge.Forge/FindPowerShelvesByIds":                  SHELF_READERS,
  "forge.Forge/FindPowerShelfStateHistories":           SHELF_READERS,
  "forge.Forge/SetPowerShelfMaintenance":               ["operator", "ForgeAdminCLI", "Machineatron", "Flow"],
  "forge.Forge/DeletePowerShelf":                       ["operator", "ForgeAdminCLI", "Machineatron"],
  "forge.Forge/AdminForceDeletePowerShelf":             ["ForgeAdminCLI", "Machineatron"],
  "forge.Forge/UpdatePowerShelfMetadata":               ["operator", "ForgeAdminCLI", "SiteAgent"],
  "forge.Forge/ListPowerShelfHealthReports":            ["viewer", "ForgeAdminCLI", "Health"],
  "forge.Forge/InsertPowerShelfHealthReport":           ["operator", "ForgeAdminCLI", "Health"],
  "forge.Forge/RemovePowerShelfHealthReport":           ["operator", "ForgeAdminCLI", "Health"],
  "forge.Forge/GetExpectedPowerShelf":                  EXPECTED_READERS,
  "forge.Forge/GetAllExpectedPowerShelves":             EXPECTED_READERS,
  "forge.Forge/GetAllExpectedPowerShelvesLinked":       EXPECTED_READERS,
  "forge.Forge/AddExpectedPowerShelf":                  [...EXPECTED_WRITERS, "Flow"],
  "forge.Forge/UpdateExpectedPowerShelf":               EXPECTED_WRITERS,
  "forge.Forge/DeleteExpectedPowerShelf":               EXPECTED_WRITERS,
  "forge.Forge/ReplaceAllExpectedPowerShelves":         ["ForgeAdminCLI", "Machineatron", "SiteAgent"],
  "forge.Forge/DeleteAllExpectedPowerShelves":          ["ForgeAdminCLI", "Machineatron", "SiteAgent"],

  "baremetal.v1.MachineService/RegisterMachine":        ["operator"],
  "baremetal.v1.MachineService/GetMachine":             ["viewer"],
  "baremetal.v1.MachineService/ListMachines":           ["viewer"],
  "baremetal.v1.MachineService/UpdateMachine":          ["operator"],
  "baremetal.v1.PlanService/GetPlan":                   ["viewer"],
  "baremetal.v1.PlanService/ListPlans":                 ["viewer"],
  "baremetal.v1.RunService/StartRun":                   ["operator"],
  "baremetal.v1.RunService/GetRun":                     ["viewer"],
  "baremetal.v1.RunService/ListRuns":                   ["viewer"],
  "baremetal.v1.RunService/CancelRun":                  ["operator"],
  "baremetal.v1.RunService/WatchRuns":                  ["viewer"],
  "baremetal.v1.RunService/StreamRunLogs":              ["viewer"],

  "millwright.v1.LifecycleService/ListLifecycles":      ROLES,
  "millwright.v1.LifecycleService/GetLifecycle":        ROLES,
  "millwright.v1.SystemService/GetSystem":              ROLES,
  "millwright.v1.HistoryService/ListHistory":           ["viewer"],
  "millwright.v1.WatchService/Watch":                   ["viewer"],
  "millwright.v1.PowerShelfService/ListPowerShelves":   ["viewer"],
  "millwright.v1.PowerShelfService/GetPowerShelf":      ["viewer"],
  "millwright.v1.PowerShelfService/ListExpectedPowerShelves": ["viewer"],
  "millwright.v1.PowerShelfService/RefreshPowerShelf":  ["operator"],
  "millwright.v1.PowerShelfService/CreatePowerShelf":   ["operator"],
  "millwright.v1.PowerShelfService/SetPowerShelfCredentials": ["operator"],
  "millwright.v1.MachineLifecycleService/AcceptMachine":    ["operator"],
  "millwright.v1.MachineLifecycleService/EnterMaintenance": ["operator"],
  "millwright.v1.MachineLifecycleService/ExitMaintenance":  ["operator"],
  "millwright.v1.MachineLifecycleService/ReturnMachine":    ["operator"],
  "millwright.v1.MachineLifecycleService/RetireMachine":    ["admin"],
  "millwright.v1.MachineLifecycleService/SetMachineCredentials": ["admin"],
  "millwright.v1.PlanCatalogService/CreatePlan":        ["operator"],
  "millwright.v1.PlanCatalogService/DeletePlan":        ["admin"],
  "millwright.v1.RunActionsService/PreviewRun":         ["viewer"],
  "millwright.v1.RunActionsService/RetryRun":           ["operator"],
  "millwright.v1.RunActionsService/ResumeRun":          ["operator"],
  "millwright.v1.RunActionsService/RerunRun":           ["operator"],
  "millwright.v1.RunActionsService/RestartRunClean":    ["operator"],
  "millwright.v1.RunActionsService/AdoptRun":           ["operator"],
  "millwright.v1.RunActionsService/MarkRunManual":      ["operator"],
  "millwright.v1.ClusterService/CreateCluster":         ["admin"],
  "millwright.v1.ClusterService/ListClusters":          ["viewer"],
  "millwright.v1.ClusterService/DeleteCluster":         ["admin"],
  "millwright.v1.ImageService/CreateImage":             ["admin"],
  "millwright.v1.ImageService/ListImages":              ["viewer"],
  "millwright.v1.ImageService/DeleteImage":             ["admin"],
  "millwright.v1.ScriptService/ListScripts":            ["viewer"],
  "millwright.v1.ScriptService/GetScript":              ["viewer"],
  "millwright.v1.ExplainService/Explain":               ["viewer"],
  "millwright.v1.TokenService/CreateToken":             ["admin"],
  "millwright.v1.TokenService/ListTokens":              ["admin"],
  "millwright.v1.TokenService/RevokeToken":             ["admin"],

  // Probes carry no credentials, and the schemas that reflection shows are public.
  "grpc.health.v1.Health/Check":                        "anyone",
  "grpc.health.v1.Health/Watch":                        "anyone",
  "grpc.reflection.v1.ServerReflection/ServerReflectionInfo":      "anyone",
  "grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo": "anyone",

  "GET /healthz":                                       "anyone",
  "GET /readyz":                                        "anyone",
  "GET /metrics":                                       ["viewer", "Health"],

  // Network installs. Firmware and installers have no credentials: who may report is the tokens' affair.
  "GET /api/v1/boot":                                   "anyone",
  "GET /api/v1/boot.ipxe":                              "anyone",
  "GET /files/*":                                       "anyone",
  "POST /api/v1/report":                                "anyone",
  "POST /api/v1/nodes/{id}/installation-status":        "anyone",
  "GET /api/v1/nodes":                                  ["viewer"],
  "POST /api/v1/nodes":                                 ["operator"],
  "GET /api/v1/nodes/stats":                            ["viewer"],
  "GET /api/v1/nodes/stalled":                          ["viewer"],
  "POST /api/v1/nodes/bulk/change-state":               ["operator"],
  "GET /api/v1/nodes/{id}":                             ["viewer"],
  "PATCH /api/v1/nodes/{id}":                           ["operator"],
  "DELETE /api/v1/nodes/{id}":                          ["operator"],
  "PATCH /api/v1/nodes/{id}/state":                     ["operator"],
  "GET /api/v1/nodes/{id}/history":                     ["viewer"],
  "GET /api/v1/nodes/{id}/events":                      ["viewer"],
  "POST /api/v1/nodes/{id}/tags":                       ["operator"],
  "DELETE /api/v1/nodes/{id}/tags/{tag}":               ["operator"],
  "GET /api/v1/groups":                                 ["viewer"],
  "POST /api/v1/groups":                                ["operator"],
  "GET /api/v1/groups/{id}":                            ["viewer"],
  "PATCH /api/v1/groups/{id}":                          ["operator"],
  "DELETE /api/v1/groups/{id}":                         ["operator"],
  "GET /api/v1/groups/{id}/nodes":                      ["viewer"],
  "GET /api/v1/groups/{id}/ancestors":                  ["viewer"],
  "GET /api/v1/groups/{id}/descendants":                ["viewer"],
  "GET /api/v1/workflows":                              ["viewer"],
  "POST /api/v1/workflows":                             ["operator"],
  "GET /api/v1/workflows/{id}":                         ["viewer"],
  "PUT /api/v1/workflows/{id}":                         ["operator"],
  "DELETE /api/v1/workflows/{id}":                      ["operator"],
  "GET /api/v1/openapi.json":                           "anyone",
  "GET /api/v1/docs":                                   "anyone",
};

/** The row of a method (`package.Service/Method`) or route (`GET /path`); nobody where there is none. */
export const allowedFor = (method: string): Allowed =>
  Object.hasOwn(METHOD_ROLES, method) ? (METHOD_ROLES[method] ?? []) : [];

export const isPublic = (method: string): boolean => allowedFor(method) === "anyone";

/** Throws `permission_denied` unless one of the caller's roles, or of those that they carry, may call the method. */
export function authorize(caller: Caller, method: string): void {
  const allowed = allowedFor(method);
  if (allowed === "anyone") return;
  const held = expandRoles(caller.roles);
  if (allowed.some((role) => held.has(role))) return;
  const who = caller.name === null ? "the caller" : `"${caller.name}"`;
  const has = caller.roles.length === 0 ? "no role" : `role ${caller.roles.join(", ")}`;
  const may = allowed.length === 0 ? "nobody may call it" : `it takes one of ${rolesThatMay(allowed).join(", ")}`;
  throw new AppError("permission_denied", `${method} is not allowed to ${who} with ${has}: ${may}`, {
    next: "ask an administrator for a token or a mapping with one of these roles",
  });
}

/** With those that carry an allowed role: an administrator is told that `admin` will do. */
function rolesThatMay(allowed: readonly Role[]): Role[] {
  return ROLES.filter((role) => [...expandRoles([role])].some((carried) => allowed.includes(carried)));
}
