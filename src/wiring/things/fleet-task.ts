import { AGENT_ROLES, agentRoutes } from "../../api/rest/fleet/agents.ts";
import { fleetTaskHandlers } from "../../lifecycles/fleet-task/handlers.ts";
import { explainAnyThing } from "../../services/explain/any-thing.ts";
import { fleetTaskListing } from "../../store/fleet/task-list.ts";
import { fleetTaskStore } from "../../store/fleet/tasks.ts";
import { defineThing, type HandlerTools } from "./thing.ts";
import { withContext } from "./with-context.ts";

/** What the agents of fleet nodes are asked to do, and their API. */
export const fleetTask = defineThing({
  store: fleetTaskStore,
  handlers: ({ clock }: HandlerTools) => withContext(fleetTaskHandlers, () => ({ clock })),
  routes: ({ services }) => agentRoutes(services),
  roles: AGENT_ROLES,
  listing: fleetTaskListing,
  explain: (deps, id) => explainAnyThing(deps, fleetTaskStore.lifecycle.kind, id, "millwright fleet list"),
});
