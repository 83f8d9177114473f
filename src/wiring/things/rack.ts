import { explainAnyThing } from "../../services/explain/any-thing.ts";
import { rackListing } from "../../store/rack/rack-list.ts";
import { rackStore } from "../../store/rack/racks.ts";
import { defineThing } from "./thing.ts";

export const rack = defineThing({
  store: rackStore,
  explain: (deps, id) => explainAnyThing(deps, rackStore.lifecycle.kind, id, "millwright rack list"),
  listing: rackListing,
});
