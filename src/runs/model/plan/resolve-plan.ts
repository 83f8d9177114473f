import { AppError, messageOf } from "../../../kernel/errors.ts";
import type { Thing } from "../../../kernel/lifecycle.ts";
import type { StepKinds, TargetKind } from "../../targets/target-kind.ts";
import type { Plan, Step } from "./plan.ts";

export interface ResolvedFor<T extends Thing> {
  readonly target: T;
  readonly kind: Pick<TargetKind<T>, "settling">;
  /** What the caller of StartRun gave. */
  readonly params: Readonly<Record<string, string>>;
  readonly steps: StepKinds;
}

/**
 * The plan as it is carried out on this target: what payloads leave open and what the caller gave are settled when the run is
 * started, so that what was checked then is what is done later, whatever the target's owner says by that time.
 */
export function resolvePlan<T extends Thing>(plan: Plan, { target, kind, params, steps }: ResolvedFor<T>): Plan {
  const settle = kind.settling?.(target, steps) ?? (({ payload }: Step) => payload);
  return {
    ...plan,
    steps: plan.steps.map((step, index): Step => {
      const { parse, takesParams } = steps.get(step.kind) ?? {};
      if (parse) checkPayload(plan, () => parse(step.payload, `steps[${index}].${step.kind}`, step.timeoutSeconds));
      const taken = takesParams?.(step.payload, params, step.timeoutSeconds) ?? step.payload;
      return { ...step, payload: settle({ ...step, payload: taken }) };
    }),
  };
}

/** Older servers kept payloads that their kind makes no sense of: that is the plan's fault, and not that of what the caller gave. */
function checkPayload({ planId }: Plan, parse: () => unknown): void {
  try {
    parse();
  } catch (error) {
    throw new AppError("invalid_argument", `plan_id: plan ${planId} is not valid: ${messageOf(error)}`, {
      field: "plan_id",
      next: `millwright plan show ${planId}`,
    });
  }
}
