import { AccessService } from "../../contract/millwright/v1/access_pb.js";
import { AuditService } from "../../contract/millwright/v1/audit_pb.js";
import { CloudInitService } from "../../contract/millwright/v1/cloud_init_pb.js";
import { ClusterService, ImageService } from "../../contract/millwright/v1/cluster_pb.js";
import { ExplainService } from "../../contract/millwright/v1/explain_pb.js";
import { FleetService } from "../../contract/millwright/v1/fleet_pb.js";
import { HealthReportService } from "../../contract/millwright/v1/health_report_pb.js";
import { HistoryService } from "../../contract/millwright/v1/history_pb.js";
import { LifecycleService } from "../../contract/millwright/v1/lifecycle_pb.js";
import { OverviewService } from "../../contract/millwright/v1/overview_pb.js";
import { SavedViewService } from "../../contract/millwright/v1/saved_view_pb.js";
import { SearchService } from "../../contract/millwright/v1/search_pb.js";
import { SecretKeyService } from "../../contract/millwright/v1/secret_key_pb.js";
import { SessionService } from "../../contract/millwright/v1/session_pb.js";
import { SystemService } from "../../contract/millwright/v1/system_pb.js";
import { TokenService } from "../../contract/millwright/v1/token_pb.js";
import { WatchService } from "../../contract/millwright/v1/watch_pb.js";
import type { Access, RolesTable } from "../api/auth/access.ts";
import { LARGEST_REPORT_REQUEST } from "../api/convert/health.ts";
import { myAccess } from "../api/millwright/access/my-access.ts";
import { secretKeys } from "../api/millwright/access/secret-keys.ts";
import { sessions } from "../api/millwright/access/sessions.ts";
import { audit } from "../api/millwright/audit.ts";
import { cloudInit, clusters, images } from "../api/millwright/catalogs.ts";
import { explain } from "../api/millwright/explain.ts";
import { fleet } from "../api/millwright/fleet/fleet.ts";
import { healthReports } from "../api/millwright/health-reports.ts";
import { history } from "../api/millwright/history.ts";
import { lifecycles } from "../api/millwright/lifecycles.ts";
import { overview } from "../api/millwright/overview/overview.ts";
import { savedViews } from "../api/millwright/overview/saved-views.ts";
import { search } from "../api/millwright/overview/search.ts";
import { system } from "../api/millwright/system.ts";
import { tokens } from "../api/millwright/tokens.ts";
import { watch } from "../api/millwright/watch.ts";
import { partOf, type ServicePart } from "../api/transport/service-parts.ts";
import { ROLES } from "../services/call/roles.ts";
import type { Explainers } from "../services/explain/explain.ts";
import type { Listings } from "../services/overview/listings.ts";
import type { SystemInfo } from "../services/system/system.ts";
import type { MethodDeps } from "./things/thing.ts";

export interface SharedServiceDeps extends MethodDeps {
  readonly explainers: Explainers;
  readonly access: Access;
  readonly listings: Listings;
  readonly system: SystemInfo;
  /** Told of each token and session that was revoked. */
  readonly onTokenRevoked: (id: string) => void;
}

/** The services that belong to no thing, or to all of them. */
export const sharedServices = (deps: SharedServiceDeps): readonly ServicePart[] => {
  const { services, events } = deps;
  return [
    partOf(ClusterService, clusters(services)),
    partOf(ImageService, images(services)),
    partOf(CloudInitService, cloudInit(services)),
    partOf(FleetService, fleet(services)),
    partOf(LifecycleService, lifecycles(services)),
    partOf(ExplainService, explain({ ...services, explainers: deps.explainers })),
    partOf(OverviewService, overview({ ...services, listings: deps.listings })),
    partOf(SavedViewService, savedViews({ ...services, listings: deps.listings })),
    partOf(SearchService, search({ ...services, listings: deps.listings })),
    partOf(HealthReportService, healthReports(services), { putHealthReport: LARGEST_REPORT_REQUEST }),
    partOf(HistoryService, history(services)),
    partOf(AuditService, audit(services)),
    partOf(WatchService, watch(services, events)),
    partOf(AccessService, myAccess(services, deps.access)),
    partOf(TokenService, tokens(services, deps.onTokenRevoked)),
    partOf(SessionService, sessions(services, deps.onTokenRevoked)),
    partOf(SecretKeyService, secretKeys(services)),
    partOf(SystemService, system(services, deps.system)),
  ];
};

/** Who may call what no thing brings, by what a scope must name for it. */
// biome-ignore format: a table is read by its columns
export const SHARED_ROLES: readonly RolesTable[] = [
  // No scope keeps anybody from what is for everybody.
  { group: null, roles: {
    "millwright.v1.LifecycleService/ListLifecycles":      ROLES,
    "millwright.v1.LifecycleService/GetLifecycle":        ROLES,
    "millwright.v1.SystemService/GetSystem":              ROLES,
    "millwright.v1.AccessService/GetMyAccess":            ROLES,
    "millwright.v1.AccessService/CanI":                   ROLES,
    // What a list can be filtered by is in the reference of filters, and views that somebody kept are their own.
    "millwright.v1.OverviewService/DescribeList":         ROLES,
    "millwright.v1.SavedViewService/ListSavedViews":      ROLES,
    "millwright.v1.SavedViewService/SaveView":            ROLES,
    "millwright.v1.SavedViewService/DeleteSavedView":     ROLES,
    // Probes carry no credentials, and the schemas that reflection shows are public.
    "grpc.health.v1.Health/Check":                        "anyone",
    "grpc.health.v1.Health/Watch":                        "anyone",
    "grpc.reflection.v1.ServerReflection/ServerReflectionInfo":      "anyone",
    "grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo": "anyone",
    "GET /healthz":                                       "anyone",
    "GET /readyz":                                        "anyone",
    // The console's page and what it loads hold no data; who signs in shows a credential, and who signs out a session.
    "GET /":                                              "anyone",
    "GET /assets/{name}":                                 "anyone",
    "POST /auth/session":                                 "anyone",
    "DELETE /auth/session":                               "anyone",
    // Who signs in at the issuer brings its proof back; before that nobody knows who it is.
    "GET /auth/methods":                                  "anyone",
    "GET /auth/login":                                    "anyone",
    "GET /auth/callback":                                 "anyone",
    // Firmware that boots from the network has no credentials.
    "GET /files/*":                                       "anyone",
    // Neither have BMCs and installers: what they fetch is found by a way that nobody can guess.
    "GET /seeds/{place}/{key}/{file}":                    "anyone",
    "POST /seeds/{place}/{key}/phone-home":               "anyone",
    "GET /api/v1/openapi.json":                           "anyone",
    "GET /api/v1/docs":                                   "anyone",
  } },
  { group: "health", things: {
    "millwright.v1.HealthReportService/ListHealthReports": "{kind} id",
    "millwright.v1.HealthReportService/PutHealthReport": "{kind} id",
    "millwright.v1.HealthReportService/RemoveHealthReport": "{kind} id",
  }, roles: {
    "millwright.v1.HealthReportService/ListHealthReports": ["viewer", "Health"],
    "millwright.v1.HealthReportService/PutHealthReport": ["operator", "Health"],
    "millwright.v1.HealthReportService/RemoveHealthReport": ["operator", "Health"],
  } },
  { group: "history", things: {
    "millwright.v1.HistoryService/ListHistory":           "{kind} id",
    "millwright.v1.WatchService/Watch":                   "list",
    "millwright.v1.ExplainService/Explain":               "{kind} id",
    "millwright.v1.HistoryService/ListEvents":            "list",
    "millwright.v1.HistoryService/CountEvents":           "list",
    "millwright.v1.OverviewService/GetOverview":          "list",
    "millwright.v1.OverviewService/CountThings":          "list",
    "millwright.v1.SearchService/Search":                 "list",
  }, roles: {
    "millwright.v1.HistoryService/ListHistory":           ["viewer", "auditor"],
    "millwright.v1.HistoryService/GetReport":             ["viewer", "auditor"],
    "millwright.v1.HistoryService/ListEvents":            ["viewer", "auditor"],
    "millwright.v1.HistoryService/GetEventCursor":        ["viewer", "auditor"],
    "millwright.v1.HistoryService/CountEvents":           ["viewer", "auditor"],
    "millwright.v1.WatchService/Watch":                   ["viewer"],
    "millwright.v1.ExplainService/Explain":               ["viewer"],
    "millwright.v1.OverviewService/GetOverview":          ["viewer"],
    "millwright.v1.OverviewService/CountThings":          ["viewer"],
    "millwright.v1.SearchService/Search":                 ["viewer"],
  } },
  { group: "audit", roles: {
    "millwright.v1.AuditService/ListRefusedCalls":        ["auditor"],
    "GET /api/v1/audit/refused-calls":                   ["auditor"],
    "millwright.v1.AuditService/VerifyJournal":           ["auditor"],
    "millwright.v1.AuditService/ExportJournal":           ["auditor"],
    "millwright.v1.TokenService/ListTokens":              ["admin", "auditor"],
    "millwright.v1.SessionService/ListSessions":          ["admin", "auditor"],
  } },
  { group: "catalogs", roles: {
    "millwright.v1.ClusterService/CreateCluster":         ["admin"],
    "millwright.v1.ClusterService/UpdateCluster":         ["admin"],
    "millwright.v1.ClusterService/ListClusters":          ["viewer"],
    "millwright.v1.ClusterService/DeleteCluster":         ["admin"],
    "millwright.v1.ImageService/CreateImage":             ["admin"],
    "millwright.v1.ImageService/ListImages":              ["viewer"],
    "millwright.v1.ImageService/DeleteImage":             ["admin"],
    "millwright.v1.CloudInitService/CreateCloudInit":     ["admin"],
    "millwright.v1.CloudInitService/GetCloudInit":        ["operator"],
    "millwright.v1.CloudInitService/ListCloudInit":       ["viewer"],
    "millwright.v1.CloudInitService/DeleteCloudInit":     ["admin"],
  } },
  { group: "fleet", roles: {
    "millwright.v1.FleetService/AddSite":                 ["admin"],
    "millwright.v1.FleetService/UpdateSite":              ["admin"],
    "millwright.v1.FleetService/GetSite":                 ["viewer"],
    "millwright.v1.FleetService/ListSites":               ["viewer"],
    "millwright.v1.FleetService/RemoveSite":              ["admin"],
    // These call MAAS.
    "millwright.v1.FleetService/PreflightSite":           ["operator"],
    "millwright.v1.FleetService/ListCandidates":          ["operator"],
    "millwright.v1.FleetService/SetProfile":              ["admin"],
    "millwright.v1.FleetService/ListProfiles":            ["viewer"],
    "millwright.v1.FleetService/RemoveProfile":           ["admin"],
    "GET /api/v1/fleet/sites":                            ["viewer"],
    "POST /api/v1/fleet/sites":                           ["admin"],
    "GET /api/v1/fleet/sites/{site}":                     ["viewer"],
    "PATCH /api/v1/fleet/sites/{site}":                   ["admin"],
    "DELETE /api/v1/fleet/sites/{site}":                  ["admin"],
    "GET /api/v1/fleet/sites/{site}/preflight":           ["operator"],
    "GET /api/v1/fleet/sites/{site}/candidates":          ["operator"],
    "GET /api/v1/fleet/sites/{site}/profiles":            ["viewer"],
    "GET /api/v1/fleet/sites/{site}/profiles/{profile}":  ["viewer"],
    "PUT /api/v1/fleet/sites/{site}/profiles/{profile}":  ["admin"],
    "DELETE /api/v1/fleet/sites/{site}/profiles/{profile}": ["admin"],
  } },
  { group: "metrics", roles: {
    "millwright.v1.SystemService/ListReplicas":           ["viewer"],
    "GET /metrics":                                       ["viewer", "Health"],
    "GET /version":                                       ["viewer", "Health"],
  } },
  // With tokens one could get out of a scope, and secret keys are the whole server's.
  { group: null, roles: {
    "millwright.v1.TokenService/CreateToken":             ["admin"],
    "millwright.v1.TokenService/RevokeToken":             ["admin"],
    "millwright.v1.SessionService/RevokeSession":         ["admin"],
    "millwright.v1.SystemService/DrainReplicas":          ["admin"],
    "millwright.v1.SystemService/ResumeReplicas":         ["admin"],
    "millwright.v1.SystemService/SetLogLevel":            ["admin"],
    "millwright.v1.SecretKeyService/ListSecretKeys":      ["admin"],
    "millwright.v1.SecretKeyService/RotateSecretKey":     ["admin"],
  } },
];
