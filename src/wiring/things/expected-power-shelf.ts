import { Forge } from "../../../contract/forge/forge_pb.js";
import { PowerShelfService } from "../../../contract/millwright/v1/power_shelf_pb.js";
import { forgeExpectedPowerShelves } from "../../api/forge/expected-power-shelves.ts";
import { expectedPowerShelves } from "../../api/millwright/expected-power-shelves.ts";
import { partOf } from "../../api/transport/service-parts.ts";
import type { ExplorerContext } from "../../lifecycles/expected-device/explorer.ts";
import type { ExpectedPowerShelf } from "../../lifecycles/expected-power-shelf/expected-power-shelf.ts";
import { expectedPowerShelfHandlers } from "../../lifecycles/expected-power-shelf/handlers.ts";
import { explainExpectedPowerShelf } from "../../services/explain/expected-power-shelf.ts";
import { expectedPowerShelfListing } from "../../store/expected-power-shelf/expected-power-shelf-list.ts";
import { expectedPowerShelfStore } from "../../store/expected-power-shelf/expected-power-shelves.ts";
import { explorerTarget } from "./device-target.ts";
import { defineThing, type HandlerTools } from "./thing.ts";
import { withContext } from "./with-context.ts";

const READERS = ["viewer", "ForgeAdminCLI", "Machineatron", "SiteAgent", "Flow"] as const;
const WRITERS = ["operator", "ForgeAdminCLI", "Machineatron", "SiteAgent"] as const;

function handlers({ provider, clock, exploreEvery, signIn }: HandlerTools) {
  return withContext(
    expectedPowerShelfHandlers,
    (expected: ExpectedPowerShelf): Omit<ExplorerContext, "call"> => ({
      provider,
      clock,
      exploreEvery,
      target: () => signIn(explorerTarget(expected), expected.bmc.mac),
    }),
  );
}

export const expectedPowerShelf = defineThing({
  store: expectedPowerShelfStore,
  handlers,
  explain: explainExpectedPowerShelf,
  methods: ({ services }) => [
    partOf(Forge, forgeExpectedPowerShelves(services)),
    partOf(PowerShelfService, expectedPowerShelves(services)),
  ],
  listing: expectedPowerShelfListing,
  words: { short: "eps", idLength: "0b7f0c52-6a4e-4d0e-9c1f-3f6d2a1b4c5d".length },
  methodGroup: "expected",
  // biome-ignore format: a table is read by its columns
  things: {
    "millwright.v1.PowerShelfService/ListExpectedPowerShelves":          "list",
  },
  // biome-ignore format: a table is read by its columns
  roles: {
    "forge.Forge/GetExpectedPowerShelf":                  READERS,
    "forge.Forge/GetAllExpectedPowerShelves":             READERS,
    "forge.Forge/GetAllExpectedPowerShelvesLinked":       READERS,
    "forge.Forge/AddExpectedPowerShelf":                  [...WRITERS, "Flow"],
    "forge.Forge/UpdateExpectedPowerShelf":               WRITERS,
    "forge.Forge/DeleteExpectedPowerShelf":               WRITERS,
    "forge.Forge/ReplaceAllExpectedPowerShelves":         ["ForgeAdminCLI", "Machineatron", "SiteAgent"],
    "forge.Forge/DeleteAllExpectedPowerShelves":          ["ForgeAdminCLI", "Machineatron", "SiteAgent"],
    "millwright.v1.PowerShelfService/ListExpectedPowerShelves": ["viewer"],
  },
});
