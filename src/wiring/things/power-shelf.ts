import { Forge } from "../../../contract/forge/forge_pb.js";
import { PowerShelfService } from "../../../contract/millwright/v1/power_shelf_pb.js";
import { LARGEST_REPORT_REQUEST } from "../../api/convert/health.ts";
import { forgePowerShelves } from "../../api/forge/power-shelves.ts";
import { powerShelves } from "../../api/millwright/power-shelves.ts";
import { partOf } from "../../api/transport/service-parts.ts";
import { type PowerShelfContext, powerShelfHandlers } from "../../lifecycles/power-shelf/handlers.ts";
import type { PowerShelf } from "../../lifecycles/power-shelf/power-shelf.ts";
import { powerShelfTarget } from "../../runs/targets/power-shelf.ts";
import { explainPowerShelf } from "../../services/explain/power-shelf.ts";
import { powerShelfListing } from "../../store/power-shelf/power-shelf-list.ts";
import { powerShelfStore } from "../../store/power-shelf/power-shelves.ts";
import { devicePartsOf } from "../rack/device-parts.ts";
import type { WiredTarget } from "../run-targets.ts";
import { deviceTarget } from "./device-target.ts";
import { defineThing, type HandlerTools, type TargetTools } from "./thing.ts";
import { withContext } from "./with-context.ts";

const READERS = ["viewer", "ForgeAdminCLI", "Machineatron", "Flow"] as const;

const bmcOf = (signIn: HandlerTools["signIn"]) => (shelf: PowerShelf) => signIn(deviceTarget(shelf), shelf.bmc.mac);

function handlers({ provider, clock, monitorEvery, monitorEveryWithEvents = monitorEvery, signIn }: HandlerTools) {
  return withContext(
    powerShelfHandlers,
    (shelf: PowerShelf): Omit<PowerShelfContext, "call"> => ({
      provider,
      clock,
      monitorEvery: shelf.hasEvents ? monitorEveryWithEvents : monitorEvery,
      target: () => bmcOf(signIn)(shelf),
    }),
  );
}

const runTarget = ({ provider, signIn, ...tools }: TargetTools): WiredTarget<PowerShelf> => ({
  kind: powerShelfTarget,
  providerOf: () => provider,
  bmcOf: bmcOf(signIn),
  partsOf: ({ target }) => devicePartsOf(target, () => bmcOf(signIn)(target.thing), tools),
});

export const powerShelf = defineThing({
  store: powerShelfStore,
  handlers,
  runTarget,
  explain: explainPowerShelf,
  methods: ({ services }) => [
    partOf(Forge, forgePowerShelves(services), { insertPowerShelfHealthReport: LARGEST_REPORT_REQUEST }),
    partOf(PowerShelfService, powerShelves(services)),
  ],
  listing: powerShelfListing,
  words: { short: "ps", idLength: "ps100rss3tnu65mgcq2e4v6rbgpq1a9rmf7eouaoq76dphmnvab8vnemc2g".length },
  methodGroup: "power-shelves",
  // biome-ignore format: a table is read by its columns
  things: {
    "forge.Forge/FindPowerShelvesByIds":                                 "power_shelf power_shelf_ids.id",
    "forge.Forge/DeletePowerShelf":                                      "power_shelf id.id",
    "forge.Forge/AdminForceDeletePowerShelf":                            "power_shelf power_shelf_id.id",
    "forge.Forge/SetPowerShelfMaintenance":                              "power_shelf power_shelf_ids.id",
    "forge.Forge/ListPowerShelfHealthReports":                           "power_shelf power_shelf_id.id",
    "forge.Forge/InsertPowerShelfHealthReport":                          "power_shelf power_shelf_id.id",
    "forge.Forge/RemovePowerShelfHealthReport":                          "power_shelf power_shelf_id.id",
    "forge.Forge/FindPowerShelfStateHistories":                          "power_shelf power_shelf_ids.id",
    "millwright.v1.PowerShelfService/ListPowerShelves":                  "list",
    "millwright.v1.PowerShelfService/GetPowerShelf":                     "power_shelf id",
    "millwright.v1.PowerShelfService/RefreshPowerShelf":                 "power_shelf id",
    "millwright.v1.PowerShelfService/AcceptPowerShelfCertificate":       "power_shelf id",
    "millwright.v1.PowerShelfService/CancelPowerShelfRequest":           "power_shelf id",
    "millwright.v1.PowerShelfService/SetPowerShelfCredentials":          "power_shelf id",
  },
  // The rows of `forge.Forge` are those of its specification, section 5, with Millwright's own roles beside them.
  // biome-ignore format: a table is read by its columns
  roles: {
    "forge.Forge/FindPowerShelves":                       READERS,
    "forge.Forge/FindPowerShelfIds":                      READERS,
    "forge.Forge/FindPowerShelvesByIds":                  READERS,
    "forge.Forge/FindPowerShelfStateHistories":           READERS,
    "forge.Forge/SetPowerShelfMaintenance":               ["operator", "ForgeAdminCLI", "Machineatron", "Flow"],
    "forge.Forge/DeletePowerShelf":                       ["operator", "ForgeAdminCLI", "Machineatron"],
    "forge.Forge/AdminForceDeletePowerShelf":             ["ForgeAdminCLI", "Machineatron"],
    "forge.Forge/UpdatePowerShelfMetadata":               ["operator", "ForgeAdminCLI", "SiteAgent"],
    "forge.Forge/ListPowerShelfHealthReports":            ["viewer", "ForgeAdminCLI", "Health"],
    "forge.Forge/InsertPowerShelfHealthReport":           ["operator", "ForgeAdminCLI", "Health"],
    "forge.Forge/RemovePowerShelfHealthReport":           ["operator", "ForgeAdminCLI", "Health"],
    "millwright.v1.PowerShelfService/ListPowerShelves":   ["viewer"],
    "millwright.v1.PowerShelfService/GetPowerShelf":      ["viewer"],
    "millwright.v1.PowerShelfService/RefreshPowerShelf":  ["operator"],
    "millwright.v1.PowerShelfService/CreatePowerShelf":   ["operator"],
    "millwright.v1.PowerShelfService/SetPowerShelfCredentials": ["operator", "credentials"],
    "millwright.v1.PowerShelfService/AcceptPowerShelfCertificate": ["operator"],
    "millwright.v1.PowerShelfService/CancelPowerShelfRequest": ["operator"],
  },
});
