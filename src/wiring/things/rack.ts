import { explainAnyThing } from "../../services/explain/any-thing.ts";
import { rackListing } from "../../store/rack/rack-list.ts";
import { rackStore } from "../../store/rack/racks.ts";
import { rackMethods, rackRoles } from "./rack-methods.ts";
import { defineThing } from "./thing.ts";

export const rack = defineThing({
  store: rackStore,
  explain: (deps, id) => explainAnyThing(deps, rackStore.lifecycle.kind, id, "millwright rack list"),
  methods: rackMethods,
  roles: rackRoles,
  listing: rackListing,
});
