import { followOrRefuse } from "../../kernel/decide.ts";
import type { Effect } from "../../kernel/effects.ts";
import { AppError } from "../../kernel/errors.ts";
import type { JsonObject } from "../../kernel/lifecycle.ts";
import type { Transaction } from "../postgres/database.ts";
import { commitOrRefuse } from "./commit/commit-or-refuse.ts";
import { lockThings } from "./locks.ts";
import { storeOf, type ThingStores } from "./things.ts";
import * as work from "./work.ts";

export interface Verb {
  readonly kind: string;
  readonly id: string;
  readonly owner: "caller" | "agent" | "other";
  readonly name: string;
  readonly actor: string;
  readonly address?: string | null;
  readonly message?: string;
  readonly data?: JsonObject;
  readonly facts?: JsonObject;
  readonly effects?: readonly Effect[];
}

/** Applies a caller's or an agent's verb in the caller's own transaction; refused when the state does not know it. */
export async function applyVerb(tx: Transaction, stores: ThingStores, verb: Verb): Promise<void> {
  const store = storeOf(stores, verb.kind);
  await lockThings(tx, [verb, ...(verb.effects ?? [])]);
  const { things, unreadable } = await store.load(tx, [verb.id]);
  const [thing] = things;
  if (!thing) {
    const [broken] = unreadable;
    if (broken) throw new Error(`${verb.kind} ${verb.id} cannot be read: ${broken.error}`);
    throw new AppError("not_found", `${verb.kind} ${verb.id} does not exist`);
  }
  const move = followOrRefuse(store.lifecycle, thing, verb);
  await commitOrRefuse(tx, stores, [
    {
      kind: verb.kind,
      thing,
      move,
      actor: verb.actor,
      address: verb.address ?? null,
      ...(verb.facts && { facts: verb.facts }),
      ...(verb.effects && { effects: verb.effects }),
    },
  ]);
  if (!move.gone) await work.wake(tx, [verb]);
}
