import { NodeService } from "../../../contract/millwright/v1/node_pb.js";
import { nodes } from "../../api/millwright/nodes.ts";
import { installRoutes } from "../../api/rest/install-routes.ts";
import { partOf } from "../../api/transport/service-parts.ts";
import { installHandlers } from "../../lifecycles/install/handlers.ts";
import { explainInstall } from "../../services/explain/install.ts";
import { installListing } from "../../store/install/install-list.ts";
import { installStore } from "../../store/install/installs.ts";
import { defineThing } from "./thing.ts";
import { withContext } from "./with-context.ts";

export const install = defineThing({
  store: installStore,
  handlers: ({ clock, installTimeout }) => withContext(installHandlers, () => ({ clock, installTimeout })),
  explain: explainInstall,
  methods: ({ services }) => [partOf(NodeService, nodes(services))],
  routes: installRoutes,
  listing: installListing,
  words: { short: "node" },
  // Firmware and installers have no credentials: who may report is the tokens' affair.
  methodGroup: "installs",
  // biome-ignore format: a table is read by its columns
  things: {
    "millwright.v1.NodeService/ListNodes":                               "list",
    "millwright.v1.NodeService/ConfirmNodeErased":                       "install id",
    "millwright.v1.NodeService/ChangeNodeState":                         "install id",
    "GET /api/v1/nodes":                                                 "list",
    "GET /api/v1/nodes/{id}":                                            "install params.id",
    "DELETE /api/v1/nodes/{id}":                                         "install params.id",
    "PATCH /api/v1/nodes/{id}/state":                                    "install params.id",
    "POST /api/v1/nodes/{id}/confirm-erased":                            "install params.id",
    "GET /api/v1/nodes/{id}/history":                                    "install params.id",
    "GET /api/v1/nodes/{id}/events":                                     "install params.id",
    "POST /api/v1/nodes/{id}/tags":                                      "install params.id",
    "DELETE /api/v1/nodes/{id}/tags/{tag}":                              "install params.id",
    "GET /api/v1/groups/{id}/nodes":                                     "list",
  },
  // biome-ignore format: a table is read by its columns
  roles: {
    "GET /api/v1/boot":                                   "anyone",
    "GET /api/v1/boot.ipxe":                              "anyone",
    "POST /api/v1/boot/steps":                            "anyone",
    "POST /api/v1/report":                                "anyone",
    "POST /api/v1/nodes/{id}/installation-status":        "anyone",
    "millwright.v1.NodeService/ListNodes":                ["viewer"],
    "millwright.v1.NodeService/ConfirmNodeErased":        ["operator"],
    "millwright.v1.NodeService/ArmNode":                  ["operator"],
    "millwright.v1.NodeService/ChangeNodeState":          ["operator"],
    "millwright.v1.NodeService/ListWorkflows":            ["viewer"],
    "millwright.v1.NodeService/ListNodeGroups":           ["viewer"],
    "GET /api/v1/nodes":                                  ["viewer"],
    "POST /api/v1/nodes":                                 ["operator"],
    "GET /api/v1/nodes/stats":                            ["viewer"],
    "GET /api/v1/nodes/stalled":                          ["viewer"],
    "POST /api/v1/nodes/bulk/change-state":               ["operator"],
    "GET /api/v1/nodes/{id}":                             ["viewer"],
    "PATCH /api/v1/nodes/{id}":                           ["operator"],
    "DELETE /api/v1/nodes/{id}":                          ["operator"],
    "PATCH /api/v1/nodes/{id}/state":                     ["operator"],
    "POST /api/v1/nodes/{id}/confirm-erased":             ["operator"],
    "POST /api/v1/nodes/{id}/arm":                        ["operator"],
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
    // What a workflow says is installed, as an image is: they take the role of ImageService.
    "POST /api/v1/workflows":                             ["admin"],
    "GET /api/v1/workflows/{id}":                         ["viewer"],
    "PUT /api/v1/workflows/{id}":                         ["admin"],
    "DELETE /api/v1/workflows/{id}":                      ["admin"],
  },
});
