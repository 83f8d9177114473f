import { Forge } from "../../../contract/forge/forge_pb.js";
import { RackFirmwareService } from "../../../contract/millwright/v1/rack_firmware_pb.js";
import { forgeComponents } from "../../api/forge/components.ts";
import { forgeRackFirmware } from "../../api/forge/rack-firmware.ts";
import { rackFirmware as rackFirmwareMethods } from "../../api/millwright/rack-firmware/rack-firmware.ts";
import { partOf } from "../../api/transport/service-parts.ts";
import { type RackFirmwareContext, rackFirmwareHandlers } from "../../lifecycles/rack-firmware/handlers.ts";
import type { CataloguedFirmware } from "../../lifecycles/rack-firmware/rack-firmware.ts";
import { explainRackFirmware } from "../../services/explain/rack/rack-firmware.ts";
import { tokenSecret } from "../../services/rack-firmware/rack-firmware.ts";
import { rackFirmwareStore } from "../../store/rack-firmware/rack-firmware.ts";
import { defineThing, type HandlerTools } from "./thing.ts";
import { withContext } from "./with-context.ts";

const handlers = ({ db, secrets, artifacts }: HandlerTools) =>
  withContext(
    rackFirmwareHandlers,
    ({ id }: CataloguedFirmware): Omit<RackFirmwareContext, "call"> => ({
      artifacts,
      token: () => secrets.get(db, tokenSecret(id)),
    }),
  );

/** A document of firmware names every file of a rack's devices. */
const LARGEST_CONFIG_REQUEST = 5 * 1_024 * 1_024;

const COMPONENT_CALLERS = ["ForgeAdminCLI", "Flow"] as const;

/** The ways to the ids of what a request is about, of which it has one. */
const COMPONENTS = "machine machine_ids.machine_ids.id, switch switch_ids.ids.id, power_shelf power_shelf_ids.ids.id";
const RACKS = "rack rack_ids.rack_ids.id";

export const rackFirmware = defineThing({
  store: rackFirmwareStore,
  handlers,
  explain: explainRackFirmware,
  methods: ({ services, runs }) => [
    partOf(Forge, forgeRackFirmware(services), { createRackFirmware: LARGEST_CONFIG_REQUEST }),
    partOf(Forge, forgeComponents({ ...services, ...runs })),
    partOf(RackFirmwareService, rackFirmwareMethods(services)),
  ],
  words: { short: "rfw" },
  methodGroup: "firmware",
  things: {
    "forge.Forge/ComponentPowerControl": COMPONENTS,
    "forge.Forge/GetComponentInventory": COMPONENTS,
    "forge.Forge/GetComponentFirmwareStatus": `${COMPONENTS}, ${RACKS}`,
    "forge.Forge/ListComponentFirmwareVersions": `${COMPONENTS}, ${RACKS}`,
    "forge.Forge/UpdateComponentFirmware":
      "machine compute_trays.machine_ids.machine_ids.id, switch switches.switch_ids.ids.id, " +
      "power_shelf power_shelves.power_shelf_ids.ids.id, rack racks.rack_ids.rack_ids.id",
  },
  // biome-ignore format: a table is read by its columns
  roles: {
    "forge.Forge/CreateRackFirmware":                     ["ForgeAdminCLI"],
    "forge.Forge/GetRackFirmware":                        ["ForgeAdminCLI"],
    "forge.Forge/ListRackFirmware":                       ["ForgeAdminCLI"],
    "forge.Forge/DeleteRackFirmware":                     ["ForgeAdminCLI"],
    "forge.Forge/RackFirmwareSetDefault":                 ["ForgeAdminCLI"],
    "forge.Forge/ApplyRackFirmware":                      ["ForgeAdminCLI"],
    "forge.Forge/GetRackFirmwareJobStatus":               ["ForgeAdminCLI"],
    "forge.Forge/GetRackFirmwareHistory":                 ["ForgeAdminCLI"],
    "forge.Forge/ComponentPowerControl":                  COMPONENT_CALLERS,
    "forge.Forge/GetComponentInventory":                  COMPONENT_CALLERS,
    "forge.Forge/UpdateComponentFirmware":                COMPONENT_CALLERS,
    "forge.Forge/GetComponentFirmwareStatus":             COMPONENT_CALLERS,
    "forge.Forge/ListComponentFirmwareVersions":          COMPONENT_CALLERS,
    "millwright.v1.RackFirmwareService/ListRackFirmware": ["viewer"],
    "millwright.v1.RackFirmwareService/GetRackFirmware":  ["viewer"],
    "millwright.v1.RackFirmwareService/DownloadRackFirmware": ["ForgeAdminCLI"],
  },
});
