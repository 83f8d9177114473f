import { parseCause } from "../../kernel/stored-cause.ts";
import type { ChildRun } from "../../runs/children/child-run.ts";
import { RUN_PHASES } from "../../runs/model/run.ts";
import { isFlag, isNumber, isText, oneOf, orNull, REQUIRED, readerOf } from "../postgres/stored-json.ts";

interface StoredChild extends Omit<ChildRun, "target" | "cause"> {
  readonly kind: string;
  readonly target: string;
  readonly cause: string | null;
}

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
});

/** As the database gives them with their parent; null where there are none. */
export const parseChildren = (stored: unknown): readonly ChildRun[] =>
  Array.isArray(stored)
    ? stored.map((each) => {
        const { kind, target, cause, ...child } = readChild(each);
        return { ...child, target: { kind, id: target }, cause: parseCause(cause === null ? null : { code: cause }) };
      })
    : [];
