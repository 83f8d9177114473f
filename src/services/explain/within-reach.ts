import { type Reach, reachOf } from "../../kernel/access/scope.ts";
import { findOutside } from "../../store/lifecycle/places.ts";
import { nameOf, type ThingKey } from "../../store/lifecycle/things.ts";
import type { Caller } from "../call/caller.ts";
import type { ServiceDeps } from "../call/deps.ts";
import type { ClaimLink, Explanation, NextCommand } from "./explanation.ts";

/** In place of the id of what the caller may not see. */
const HIDDEN = "(outside of your scope)";

/** The explanation for a caller with a scope: that something stands in the way is told, and not what, where that is elsewhere. */
export async function withinReach(
  deps: Pick<ServiceDeps, "db" | "stores">,
  { scope }: Pick<Caller, "scope">,
  explanation: Explanation,
): Promise<Explanation> {
  const reach = reachOf(scope);
  if (!reach) return explanation;
  const hidden = await findHidden(deps, reach, explanation);
  if (hidden.length === 0) return explanation;
  const isHidden = (thing: ThingKey) => hidden.some((one) => nameOf(one) === nameOf(thing));
  const reasons = explanation.claims.filter(({ holder }) => isHidden(holder)).map(({ reason }) => reason);
  const hide = (text: string) =>
    hidden.reduce(
      (said, { id }) => said.replace(wordOf(id), HIDDEN),
      reasons.reduce((said, reason) => said.replaceAll(reason, briefly(reason)), text),
    );
  const { headline, doing, waitingFor, claims, lastFailure, nextCommands } = explanation;
  return {
    ...explanation,
    headline: hide(headline),
    doing: hide(doing),
    waitingFor: waitingFor.map(hide),
    claims: claims.map((claim) => shownClaim(claim, isHidden)),
    lastFailure: lastFailure && { ...lastFailure, message: hide(lastFailure.message) },
    nextCommands: nextCommands
      .filter(({ command }) => hide(command) === command)
      .map(({ command, why }) => ({ command, why: hide(why) })),
  };
}

function shownClaim({ thing, holder, since, reason }: ClaimLink, isHidden: (thing: ThingKey) => boolean): ClaimLink {
  const shown = (key: ThingKey): ThingKey => (isHidden(key) ? { kind: key.kind, id: HIDDEN } : key);
  return { thing: shown(thing), holder: shown(holder), since, reason: isHidden(holder) ? briefly(reason) : reason };
}

/** Without the words of the holder itself, which name whom it works for. */
const briefly = (reason: string): string => reason.replace(/ \(.*\)$/s, "");

/** Whatever the explanation names by its kind and id. */
async function findHidden(
  { db, stores }: Pick<ServiceDeps, "db" | "stores">,
  reach: Reach,
  { claims, nextCommands }: Explanation,
): Promise<ThingKey[]> {
  const named = [...claims.flatMap(({ thing, holder }) => [thing, holder]), ...nextCommands.flatMap(explainedBy)];
  const outside = await findOutside(db, stores, reach, named);
  return [...new Map(outside.map((thing) => [nameOf(thing), thing])).values()];
}

function explainedBy({ command }: NextCommand): ThingKey[] {
  const [, kind, id] = /^millwright explain (\S+) (\S+)$/.exec(command) ?? [];
  return kind !== undefined && id !== undefined ? [{ kind, id }] : [];
}

/** Where it stands by itself: an id may be a part of another word. */
const wordOf = (id: string): RegExp =>
  new RegExp(`(?<![\\w.-])${id.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")}(?![\\w-])`, "g");
