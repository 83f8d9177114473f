import { Forge } from "../../../contract/forge/forge_pb.js";
import { forgeExpectedSwitches } from "../../api/forge/expected-switches.ts";
import { partOf } from "../../api/transport/service-parts.ts";
import type { ExplorerContext } from "../../lifecycles/expected-device/explorer.ts";
import type { ExpectedSwitch } from "../../lifecycles/expected-switch/expected-switch.ts";
import { expectedSwitchHandlers } from "../../lifecycles/expected-switch/handlers.ts";
import { explainAnyThing } from "../../services/explain/any-thing.ts";
import { expectedSwitchListing } from "../../store/expected-switch/expected-switch-list.ts";
import { expectedSwitchStore } from "../../store/expected-switch/expected-switches.ts";
import { explorerTarget } from "./device-target.ts";
import { defineThing, type HandlerTools } from "./thing.ts";
import { withContext } from "./with-context.ts";

const READERS = ["viewer", "ForgeAdminCLI", "Machineatron", "SiteAgent", "Flow"] as const;
const WRITERS = ["operator", "ForgeAdminCLI", "Machineatron", "SiteAgent"] as const;
const REPLACERS = ["ForgeAdminCLI", "Machineatron", "SiteAgent"] as const;

function handlers({ switches: provider, clock, exploreEvery, signIn }: HandlerTools) {
  if (!provider) return undefined;
  return withContext(
    expectedSwitchHandlers,
    (expected: ExpectedSwitch): Omit<ExplorerContext, "call"> => ({
      provider,
      clock,
      exploreEvery,
      target: () => signIn(explorerTarget(expected), expected.bmc.mac),
    }),
  );
}

export const expectedSwitch = defineThing({
  store: expectedSwitchStore,
  handlers,
  explain: (deps, id) =>
    explainAnyThing(deps, expectedSwitchStore.lifecycle.kind, id, "millwright expected-switch list"),
  methods: ({ services }) => [partOf(Forge, forgeExpectedSwitches(services))],
  listing: expectedSwitchListing,
  words: { short: "esw", idLength: "0b7f0c52-6a4e-4d0e-9c1f-3f6d2a1b4c5d".length },
  methodGroup: "expected",
  // biome-ignore format: a table is read by its columns
  roles: {
    "forge.Forge/GetExpectedSwitch":             READERS,
    "forge.Forge/GetAllExpectedSwitches":        READERS,
    "forge.Forge/GetAllExpectedSwitchesLinked":  READERS,
    "forge.Forge/AddExpectedSwitch":             [...WRITERS, "Flow"],
    "forge.Forge/UpdateExpectedSwitch":          WRITERS,
    "forge.Forge/DeleteExpectedSwitch":          WRITERS,
    "forge.Forge/ReplaceAllExpectedSwitches":    REPLACERS,
    "forge.Forge/DeleteAllExpectedSwitches":     REPLACERS,
  },
});
