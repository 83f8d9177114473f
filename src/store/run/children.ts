import type { ChildRun } from "../../runs/children/child-run.ts";
import { RUN_PHASES } from "../../runs/model/run.ts";
import { isFlag, isNumber, isText, oneOf, REQUIRED, readerOf } from "../postgres/stored-json.ts";

interface StoredChild extends Omit<ChildRun, "target"> {
  readonly kind: string;
  readonly target: string;
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
});

/** As the database gives them with their parent; null where there are none. */
export const parseChildren = (stored: unknown): readonly ChildRun[] =>
  Array.isArray(stored)
    ? stored.map((each) => {
        const { kind, target, ...child } = readChild(each);
        return { ...child, target: { kind, id: target } };
      })
    : [];
