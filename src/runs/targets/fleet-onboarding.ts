import { type Effect, move } from "../../kernel/effects.ts";
import type { FleetNode } from "../../lifecycles/fleet-node/fleet-node.ts";
import { fleetNodeLifecycle } from "../../lifecycles/fleet-node/lifecycle.ts";
import { machineLifecycle } from "../../lifecycles/machine/lifecycle.ts";
import type { RunEnd, RunOn } from "./target-kind.ts";

/** A node that waited for its bundle to be used is enrolling from the start of its onboarding on. */
export const onboardingStarted = ({ target }: RunOn<FleetNode>): readonly Effect[] => [
  move(fleetNodeLifecycle, target.id, "onboarding_started", { ifPossible: true }),
];

/**
 * A node whose onboarding may be retried stays where it is. One that takes a person, or was canceled, is quarantined. Only a success
 * says anything of the machine: it is as ready as one that was inspected.
 */
export function onboardingEnded(run: RunOn<FleetNode>, end: RunEnd): readonly Effect[] {
  const { id, thing: node } = run.target;
  const { phase, message, cause, needsPerson } = end;
  const said = message === "" ? {} : { message };
  switch (phase) {
    case "SUCCEEDED":
      return [
        move(fleetNodeLifecycle, id, "onboarding_completed", { ifPossible: true, ...said }),
        move(machineLifecycle, node.machineId, "onboarded", { ifPossible: true }),
      ];
    case "CANCELED":
      return [move(fleetNodeLifecycle, id, "onboarding_canceled", quarantining(said, "its onboarding was canceled"))];
    case "FAILED":
      return needsPerson
        ? [
            move(
              fleetNodeLifecycle,
              id,
              "onboarding_failed",
              quarantining(said, cause?.code ?? "its onboarding failed"),
            ),
          ]
        : [];
  }
}

const quarantining = (said: { readonly message?: string }, reason: string) => ({
  ...said,
  ifPossible: true as const,
  data: { reason: said.message ?? reason },
});
