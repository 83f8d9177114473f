import type { CauseCode } from "../../../kernel/causes.ts";
import { isJsonObject } from "../../../kernel/lifecycle.ts";
import { type Choice, type Given, giveUp, type PastVisit, skip } from "../workflow.ts";

/** The stages one after the other, but for those whose payload says why they have nothing to do, or cannot be done. */
export function skipAsPlanned<S extends string>(
  _: readonly PastVisit<S>[],
  { onwards, payloads }: Given<S>,
): Choice<S> {
  if (onwards.type !== "go") return onwards;
  const { stage } = onwards;
  const { skip: why, refuse } = payloads[stage] ?? {};
  if (typeof why === "string") return skip(stage, why);
  if (!isJsonObject(refuse)) return onwards;
  return giveUp(String(refuse.message), { stage, cause: { code: refuse.code as CauseCode }, needsPerson: false });
}
