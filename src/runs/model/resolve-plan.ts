import { AppError, messageOf } from "../../kernel/errors.ts";
import type { JsonObject } from "../../kernel/lifecycle.ts";
import { type Machine, ownClusterOf, targetClusterOf } from "../../lifecycles/machine/machine.ts";
import type { Plan, Step } from "./plan.ts";
import type { AnyStep } from "./step.ts";

export interface ResolvedFor {
  readonly machine: Machine;
  /** What the caller of StartRun gave. */
  readonly params: Readonly<Record<string, string>>;
  readonly steps: ReadonlyMap<string, Pick<AnyStep, "parse" | "takesParams">>;
}

/**
 * The plan as it is carried out on this machine: which cluster is meant and what the caller gave are settled when the run is
 * started, so that what was checked then is what is done later, whatever the machine's spec says by that time.
 */
export function resolvePlan(plan: Plan, { machine, params, steps }: ResolvedFor): Plan {
  const clusters = new ClustersOnTheWay(machine);
  return {
    ...plan,
    steps: plan.steps.map((step, index): Step => {
      const { parse, takesParams } = steps.get(step.kind) ?? {};
      if (parse) checkPayload(plan, () => parse(step.payload, `steps[${index}].${step.kind}`, step.timeoutSeconds));
      const taken = takesParams?.(step.payload, params, step.timeoutSeconds) ?? step.payload;
      return { ...step, payload: clusters.settle({ ...step, payload: taken }) };
    }),
  };
}

/** Older servers kept payloads that their kind makes no sense of: that is the plan's fault, and not that of what the caller gave. */
function checkPayload({ planId }: Plan, parse: () => unknown): void {
  try {
    parse();
  } catch (error) {
    throw new AppError("invalid_argument", `plan_id: plan ${planId} makes no sense: ${messageOf(error)}`, {
      field: "plan_id",
      next: `millwright plan show ${planId}`,
    });
  }
}

/**
 * Which cluster is the machine's own at each step: the one that it is in, until the plan makes its system anew or joins it to one.
 * A join that names none is to the one that the owner says, wherever the machine is.
 */
class ClustersOnTheWay {
  readonly #target: string;
  #own: string;

  constructor(machine: Machine) {
    this.#target = targetClusterOf(machine);
    this.#own = ownClusterOf(machine);
  }

  /** The payload with its cluster named; the steps are asked for in their order. */
  settle({ kind, payload }: Step): JsonObject {
    if (kind === "repave") this.#own = this.#target;
    const { cluster_ref: named } = payload;
    if (typeof named !== "string") return payload;
    const cluster = named || (kind === "join" ? this.#target : this.#own);
    if (kind === "join") this.#own = cluster;
    return { ...payload, cluster_ref: cluster };
  }
}
