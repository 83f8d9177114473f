import { allSteps } from "../steps/index.ts";
import { collectWorkflows, type Workflows } from "./workflow.ts";

/** All workflows of this server, by their kind. */
export const allWorkflows: Workflows = collectWorkflows([], allSteps);
