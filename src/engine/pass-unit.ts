import type { Move } from "../kernel/decide.ts";
import { isSameOutcome, type Thing } from "../kernel/lifecycle.ts";
import type { Unit } from "../store/lifecycle/commit/unit.ts";
import type { PassResult } from "./pass.ts";

/** What of a pass must be written; undefined when it changed nothing. */
export function unitOf(
  kind: string,
  thing: Thing,
  pass: PassResult,
  lease: { readonly epoch: number },
): Unit | undefined {
  const sameOutcome = isSameOutcome(pass.outcome, thing.outcome);
  const noFacts = pass.facts === undefined || Object.keys(pass.facts).length === 0;
  if (!pass.move && sameOutcome && noFacts && pass.effects.length === 0) return undefined;
  return {
    kind,
    thing,
    ...(pass.move && { move: pass.move }),
    ...(pass.further && { further: pass.further }),
    ...(pass.facts && { facts: pass.facts }),
    outcome: pass.outcome,
    effects: pass.effects,
    actor: pass.move?.owner === "handler" ? `handler of ${thing.state.name}` : "controller",
    lease,
  };
}

/** In the order in which they were made. */
export const movesOf = ({ move, further = [] }: PassResult): readonly Move[] =>
  [move, ...further.map((change) => change.move)].filter((each) => each !== undefined);

/** For metrics. */
export function nameOutcome(pass: PassResult): "moved" | "waiting" | "nothing" | "failed" {
  if (pass.error !== null) return "failed";
  if (pass.move) return "moved";
  return pass.outcome?.type === "waiting" ? "waiting" : "nothing";
}
