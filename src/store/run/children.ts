import { parseCause } from "../../kernel/stored-cause.ts";
import type { ChildRun } from "../../runs/children/child-run.ts";
import { RUN_PHASES, STEP_STATES } from "../../runs/model/run.ts";
import type { StepLeft } from "../../runs/targets/left-by-steps.ts";
import {
  isFlag,
  isNumber,
  isText,
  listOf,
  oneOf,
  orNull,
  REQUIRED,
  readerOf,
  shapeOf,
} from "../postgres/stored-json.ts";

interface StoredChild extends Omit<ChildRun, "target" | "cause" | "left"> {
  readonly kind: string;
  readonly target: string;
  readonly cause: string | null;
  readonly left: readonly StepLeft[] | null;
}

const isStepLeft = shapeOf<StepLeft>({
  kind: isText,
  component: orNull(isText),
  version: orNull(isText),
  activation: orNull(isText),
  state: orNull(oneOf(STEP_STATES)),
  isBegun: isFlag,
  verdict: isText,
});

const readChild = readerOf<StoredChild>({
  id: [isText, REQUIRED],
  step: [isText, REQUIRED],
  round: [isNumber, REQUIRED],
  kind: [isText, REQUIRED],
  target: [isText, REQUIRED],
  phase: [oneOf(RUN_PHASES), REQUIRED],
  message: [isText, ""],
  isCanceling: [isFlag, false],
  isUnproven: [isFlag, false],
  cause: [orNull(isText), null],
  left: [orNull(listOf(isStepLeft)), null],
});

/** As the database gives them with their parent; null where there are none. */
export const parseChildren = (stored: unknown): readonly ChildRun[] =>
  Array.isArray(stored)
    ? stored.map((each) => {
        const { kind, target, cause, left, ...child } = readChild(each);
        const why = parseCause(cause === null ? null : { code: cause });
        return { ...child, target: { kind, id: target }, cause: why, left: left ?? [] };
      })
    : [];
