import { move } from "../../../src/kernel/effects.ts";
import { StepFailure } from "../../../src/kernel/errors.ts";
import type { JsonObject } from "../../../src/kernel/lifecycle.ts";
import { fleetNodeLifecycle } from "../../../src/lifecycles/fleet-node/lifecycle.ts";
import { type ActingContext, collectSteps, defineStepOn } from "../../../src/runs/model/step.ts";
import type { OnFleetNode } from "../../../src/runs/steps/fleet/on-fleet-node.ts";
import { serverSteps } from "../../../src/runs/steps/index.ts";
import { FLEET_DECOMMISSION, FLEET_ONBOARDING } from "../../../src/runs/workflows/fleet/words.ts";
import { collectWorkflows, defineWorkflow } from "../../../src/runs/workflows/workflow.ts";

type Acting = ActingContext<JsonObject, JsonObject, never, never, JsonObject, OnFleetNode>;

/** How a job goes on a node: as the first word of its host name says. A set lets a test change its mind. */
export const obeyed = new Set<string>();

function judge({ target }: Acting): void {
  const [word] = target.hostname.split("-");
  if (obeyed.has(target.hostname)) return;
  if (word === "flaky") throw new StepFailure("busy", "MAAS is busy", { disposition: "fail", facts: { at: "bmc" } });
  if (word === "broken") throw new StepFailure("children_failed", "no BOSS disk", { disposition: "intervene" });
}

const stage = (kind: string, effects: (context: Acting) => readonly ReturnType<typeof move>[] = () => []) =>
  defineStepOn<OnFleetNode>()({
    kind,
    needs: [],
    defaults: { maxRetries: 0 },
    parse: (payload) => payload,
    before: async () => ({}),
    act: async (context: Acting) => {
      judge(context);
      return { receipt: { done: true }, effects: effects(context) };
    },
    probe: async ({ target, receipt }: Acting) => {
      if (target.hostname.startsWith("slow") && !obeyed.has(target.hostname)) return "in_progress";
      return receipt === null ? "not_done" : "done";
    },
  });

const moves = (cause: Parameters<typeof move<typeof fleetNodeLifecycle>>[2]) => (context: Acting) => [
  move(fleetNodeLifecycle, context.target.id, cause, { ifPossible: true }),
];

export const stagedSteps = collectSteps([
  ...serverSteps.values(),
  stage("bring_up"),
  stage("empty_node", moves("drain_begun")),
  stage("take_out", moves("drained")),
]);

/** The two workflows of fleet nodes with a stage or two each, for what surrounds them. */
export const stagedWorkflows = collectWorkflows(
  [
    defineWorkflow({
      kind: FLEET_ONBOARDING,
      doc: "Brings a node up.",
      stages: [{ name: "bring_up", compensation: "nothing", isSafe: true }],
    }),
    defineWorkflow({
      kind: FLEET_DECOMMISSION,
      doc: "Takes a node out.",
      stages: [
        { name: "empty_node", compensation: "nothing", isSafe: true },
        { name: "take_out", compensation: "nothing" },
      ],
    }),
  ],
  stagedSteps,
);
