import { Forge } from "../../../contract/forge/forge_pb.js";
import { forgeExpectedRacks } from "../../api/forge/expected-racks.ts";
import { partOf } from "../../api/transport/service-parts.ts";
import { nothingToDo } from "../../kernel/outcome.ts";
import type { ExpectedRack } from "../../lifecycles/expected-rack/expected-rack.ts";
import { explainAnyThing } from "../../services/explain/any-thing.ts";
import { expectedRackStore } from "../../store/expected-rack/expected-racks.ts";
import { defineThing } from "./thing.ts";
import { withContext } from "./with-context.ts";

const READERS = ["viewer", "ForgeAdminCLI", "Machineatron", "SiteAgent", "Flow"] as const;
const WRITERS = ["operator", "ForgeAdminCLI", "Machineatron", "SiteAgent"] as const;
const REPLACERS = ["ForgeAdminCLI", "Machineatron", "SiteAgent"] as const;

export const expectedRack = defineThing({
  store: expectedRackStore,
  // Nothing is to be done; a pass says so, and its row of work is not due for ever.
  handlers: () =>
    withContext<ExpectedRack, object>(
      { expected: async () => nothingToDo(null), linked: async () => nothingToDo(null) },
      () => ({}),
    ),
  explain: (deps, id) => explainAnyThing(deps, expectedRackStore.lifecycle.kind, id, "millwright expected-rack list"),
  methods: ({ services }) => [partOf(Forge, forgeExpectedRacks(services))],
  words: { short: "er" },
  methodGroup: "expected",
  // biome-ignore format: a table is read by its columns
  roles: {
    "forge.Forge/GetExpectedRack":          READERS,
    "forge.Forge/GetAllExpectedRacks":      READERS,
    "forge.Forge/AddExpectedRack":          WRITERS,
    "forge.Forge/UpdateExpectedRack":       WRITERS,
    "forge.Forge/DeleteExpectedRack":       WRITERS,
    "forge.Forge/ReplaceAllExpectedRacks":  REPLACERS,
    "forge.Forge/DeleteAllExpectedRacks":   REPLACERS,
  },
});
