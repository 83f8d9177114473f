import { minutes } from "../../kernel/duration.ts";
import { type Handlers, nothingToDo } from "../../kernel/outcome.ts";
import type { machineLifecycle } from "./lifecycle.ts";
import type { Machine } from "./machine.ts";

const RECHECK = minutes(15);

/** Runs work on machines and reconcilers look at them; a machine by itself does nothing. */
export const machineHandlers: Handlers<typeof machineLifecycle, Machine, object> = {
  // At work by its run, so that the sweep must find a wake-up here.
  PROVISIONING: async () => nothingToDo(RECHECK),
};
