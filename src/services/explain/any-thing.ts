import type { Cause } from "../../kernel/causes.ts";
import { AppError } from "../../kernel/errors.ts";
import { storeOf } from "../../store/lifecycle/things.ts";
import { nowOf, type ServiceDeps } from "../call/deps.ts";
import { explainByRun } from "./active-run.ts";
import { nameTrouble, troubleOf } from "./causes.ts";
import { findClaimsInTheWay } from "./claims-in-the-way.ts";
import { type Explanation, explainHolder, say } from "./explanation.ts";
import { causeOfPass, findNextPass } from "./next-pass.ts";

const QUARANTINED: Cause = { code: "quarantined" };

/**
 * What can be said of a thing of any kind: from its lifecycle, the last pass, the next one and its claims. `listCommand` shows
 * which things there are.
 */
export async function explainAnyThing(
  deps: ServiceDeps,
  kind: string,
  id: string,
  listCommand?: string,
): Promise<Explanation> {
  const { lifecycle, load } = storeOf(deps.stores, kind);
  const { things, unreadable } = await load(deps.db, [id]);
  const [thing] = things;
  const [broken] = unreadable;
  const history = say(`history ${kind} ${id}`, "shows what happened to it, and who did what");
  if (!thing && !broken)
    throw new AppError("not_found", `${kind} ${id.slice(0, 80)} does not exist`, {
      field: "id",
      next: listCommand ?? history.command,
    });
  const byRun = thing && (await explainByRun(deps, { kind, id }, `${kind} ${id} is ${thing.state.name}`));
  if (byRun) return { ...byRun, nextCommands: [...byRun.nextCommands, history] };
  const state = lifecycle.states[thing?.state.name ?? ""];
  const isAtWork = thing !== undefined && !state?.rest && !state?.terminal;
  const pass = await findNextPass(deps.db, { kind, id }, { now: nowOf(deps), isAtWork });
  const claims = await findClaimsInTheWay(deps.db, deps.stores, { kind, id });
  const trouble = broken ? `its row cannot be read: ${broken.error}` : (pass.lastError ?? thing?.outcome?.reason ?? "");
  const cause = broken ? QUARANTINED : causeOfPass(pass, thing?.outcome ?? null);
  const failed = broken !== undefined || pass.lastError !== null || (thing?.outcome?.type ?? "waiting") !== "waiting";
  const [holder] = claims;
  return {
    headline: `${kind} ${id} is ${thing?.state.name ?? "unreadable"}${trouble === "" ? "" : `: ${nameTrouble(troubleOf(trouble, cause))}`}`,
    doing: isAtWork ? (state?.doc ?? "") : "",
    waitingFor: [
      ...claims.map((link) => `${link.holder.kind} ${link.holder.id}, which ${link.reason}`),
      ...(claims.length === 0 && !failed && trouble !== "" ? [trouble] : []),
      ...(pass.waits === "" ? [] : [pass.waits]),
    ],
    since: thing?.outcome?.since === undefined ? (thing?.stateSince ?? null) : new Date(thing.outcome.since),
    claims,
    lastFailure: failed
      ? { at: null, runId: "", step: thing?.state.name ?? "", attempt: Math.max(1, pass.failures), message: trouble }
      : null,
    nextCommands: [
      ...explainHolder(deps.stores, holder?.holder),
      history,
      say(`lifecycle show ${kind}`, "shows its states, and what leads from one to the other"),
    ],
  };
}
