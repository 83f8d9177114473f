import { Forge } from "../../../contract/forge/forge_pb.js";
import { SwitchService } from "../../../contract/millwright/v1/switch_pb.js";
import { LARGEST_REPORT_REQUEST } from "../../api/convert/health.ts";
import { forgeSwitches } from "../../api/forge/switches.ts";
import { switches } from "../../api/millwright/switch/switches.ts";
import { partOf } from "../../api/transport/service-parts.ts";
import type { MonitorContext } from "../../lifecycles/device/monitoring.ts";
import { switchHandlers } from "../../lifecycles/switch/handlers.ts";
import type { Switch } from "../../lifecycles/switch/switch.ts";
import { switchTarget } from "../../runs/targets/switch.ts";
import { explainAnyThing } from "../../services/explain/any-thing.ts";
import { switchListing } from "../../store/switch/switch-list.ts";
import { switchStore } from "../../store/switch/switches.ts";
import { devicePartsOf } from "../rack/device-parts.ts";
import type { WiredTarget } from "../run-targets.ts";
import { deviceTarget } from "./device-target.ts";
import { defineThing, type HandlerTools, type TargetTools } from "./thing.ts";
import { withContext } from "./with-context.ts";

const READERS = ["viewer", "ForgeAdminCLI", "Machineatron", "Flow", "Health"] as const;

const bmcOf = (signIn: HandlerTools["signIn"]) => (device: Switch) => signIn(deviceTarget(device), device.bmc.mac);

function handlers({ switches: provider, clock, monitorEvery, signIn }: HandlerTools) {
  if (!provider) return undefined;
  return withContext(
    switchHandlers,
    (device: Switch): Omit<MonitorContext, "call"> => ({
      provider,
      clock,
      monitorEvery,
      target: () => bmcOf(signIn)(device),
    }),
  );
}

const runTarget = ({ switches, signIn, ...tools }: TargetTools): WiredTarget<Switch> => ({
  kind: switchTarget,
  providerOf: () => switches ?? { name: "switch", can: {} },
  bmcOf: bmcOf(signIn),
  partsOf: ({ target }) => devicePartsOf(target, () => bmcOf(signIn)(target.thing), tools),
});

export const switchThing = defineThing({
  store: switchStore,
  handlers,
  runTarget,
  explain: (deps, id) => explainAnyThing(deps, switchStore.lifecycle.kind, id, "millwright switch list"),
  methods: ({ services }) => [
    partOf(Forge, forgeSwitches(services), { insertSwitchHealthReport: LARGEST_REPORT_REQUEST }),
    partOf(SwitchService, switches(services)),
  ],
  listing: switchListing,
  words: { short: "sw", idLength: "sw100nss3tnu65mgcq2e4v6rbgpq1a9rmf7eouaoq76dphmnvab8vnemc2g".length },
  methodGroup: "switches",
  // biome-ignore format: a table is read by its columns
  things: {
    "forge.Forge/FindSwitchesByIds":                                     "switch switch_ids.id",
    "forge.Forge/DeleteSwitch":                                          "switch id.id",
    "forge.Forge/AdminForceDeleteSwitch":                                "switch switch_id.id",
    "forge.Forge/ListSwitchHealthReports":                               "switch switch_id.id",
    "forge.Forge/InsertSwitchHealthReport":                              "switch switch_id.id",
    "forge.Forge/RemoveSwitchHealthReport":                              "switch switch_id.id",
    "forge.Forge/FindSwitchStateHistories":                              "switch switch_ids.id",
    "millwright.v1.SwitchService/ListSwitches":                          "list",
    "millwright.v1.SwitchService/GetSwitch":                             "switch id",
    "millwright.v1.SwitchService/RefreshSwitch":                         "switch id",
    "millwright.v1.SwitchService/AcceptSwitchCertificate":               "switch id",
  },
  // The rows of `forge.Forge` are those of its specification, section 5, with Millwright's own roles beside them.
  // biome-ignore format: a table is read by its columns
  roles: {
    "forge.Forge/FindSwitches":              READERS,
    "forge.Forge/FindSwitchIds":             READERS,
    "forge.Forge/FindSwitchesByIds":         READERS,
    "forge.Forge/FindSwitchStateHistories":  ["viewer", "ForgeAdminCLI", "Machineatron", "Flow"],
    "forge.Forge/DeleteSwitch":              ["operator", "ForgeAdminCLI", "Machineatron"],
    "forge.Forge/AdminForceDeleteSwitch":    ["ForgeAdminCLI", "Machineatron"],
    "forge.Forge/UpdateSwitchMetadata":      ["operator", "ForgeAdminCLI", "SiteAgent"],
    "forge.Forge/ListSwitchHealthReports":   ["viewer", "ForgeAdminCLI", "Health"],
    "forge.Forge/InsertSwitchHealthReport":  ["operator", "ForgeAdminCLI", "Health"],
    "forge.Forge/RemoveSwitchHealthReport":  ["operator", "ForgeAdminCLI", "Health"],
    "millwright.v1.SwitchService/ListSwitches":  ["viewer"],
    "millwright.v1.SwitchService/GetSwitch":     ["viewer"],
    "millwright.v1.SwitchService/RefreshSwitch": ["operator"],
    "millwright.v1.SwitchService/AcceptSwitchCertificate": ["operator"],
    // Nobody compares it with what the system shows. With the address, it decides who gets the password of NVOS.
    "millwright.v1.SwitchService/AcceptSwitchCertificate os": ["admin"],
    "millwright.v1.SwitchService/ListExpectedSwitchOsAddresses": ["viewer", "ForgeAdminCLI", "Machineatron", "SiteAgent"],
    // As the addresses of BMCs: where a password is sent.
    "millwright.v1.SwitchService/SetExpectedSwitchOsAddress": ["operator", "ForgeAdminCLI", "Machineatron", "SiteAgent"],
  },
});
