import { AppError } from "../../kernel/errors.ts";
import type { RestoreReview } from "../../lifecycles/restore-review/restore-review.ts";
import { lockThings } from "../../store/lifecycle/locks.ts";
import { storeOf, type ThingKey } from "../../store/lifecycle/things.ts";
import type { Transaction } from "../../store/postgres/database.ts";
import { isDatabaseTrouble } from "../../store/postgres/database-errors.ts";
import { findVerdict, findWaiting, releaseParked, type Verdict } from "../../store/restore/parked.ts";
import type { Caller } from "../call/caller.ts";
import { doneBy } from "../call/initiator.ts";
import type { RunDeps } from "../run/deps.ts";
import { abandonThing, adoptThing, partsOf } from "./endings.ts";
import { REVIEW_COMMAND } from "./gate.ts";
import { probeParked } from "./probe.ts";
import { liveReview, stillSorting } from "./reviews.ts";

export interface SettleThings {
  readonly things: readonly ThingKey[];
  readonly verdict: Ending;
  /** Resume also what the probe speaks against. */
  readonly force?: boolean;
}

/** What came of one thing: each is answered for itself. */
export interface SettledThing extends ThingKey {
  /** What was seen of its machine; empty where none was asked. */
  readonly seen: string;
  /** Null: it is settled. */
  readonly refused: AppError | null;
}

export type Ending = Exclude<Verdict, "gone">;

/**
 * resumed: parked things go on, once their machines were asked. adopted: runs only look, and end by what they see. abandoned: they end without a
 * word to any device.
 */
export async function settleParked(
  deps: RunDeps,
  caller: Caller,
  { things, verdict, force = false }: SettleThings,
  signal: AbortSignal,
): Promise<SettledThing[]> {
  checkThings(deps, things);
  const review = await liveReview(deps.db);
  if (review.state.name === "sorting") throw stillSorting(review);
  return Promise.all(
    things.map(async (thing): Promise<SettledThing> => {
      try {
        return {
          ...thing,
          ...(await settleOne(deps, caller, { review, thing, verdict, force }, signal)),
          refused: null,
        };
      } catch (error) {
        if (!(error instanceof AppError) || isDatabaseTrouble(error)) throw error;
        return { ...thing, seen: "", refused: error };
      }
    }),
  );
}

function checkThings({ maxFindByIds, stores }: RunDeps, things: readonly ThingKey[]): void {
  if (things.length === 0 || things.length > maxFindByIds)
    throw new AppError("invalid_argument", `things: 1 to ${maxFindByIds} are required, got ${things.length}`, {
      field: "things",
    });
  const odd = things.find(({ kind }) => !stores.has(kind));
  if (odd) {
    const kinds = [...stores.keys()].join(", ");
    throw new AppError(
      "invalid_argument",
      `things: ${JSON.stringify(odd.kind.slice(0, 40))} is no kind; kinds are ${kinds}`,
      {
        field: "things",
      },
    );
  }
}

interface One {
  readonly review: RestoreReview;
  readonly thing: ThingKey;
  readonly verdict: Ending;
  readonly force: boolean;
}

async function settleOne(
  deps: RunDeps,
  caller: Caller,
  { review, thing, verdict, force }: One,
  signal: AbortSignal,
): Promise<{ readonly seen: string }> {
  const earlier = await findVerdict(deps.db, review.id, thing);
  if (earlier === undefined) throw notParked(review, thing);
  if (earlier === verdict || earlier === "gone") return { seen: "" }; // perhaps together with what it works for
  if (earlier !== null) throw new AppError("failed_precondition", `${thing.kind} ${thing.id} was ${earlier} already`);
  const probe = verdict === "resumed" ? await probeParked(deps, review, thing, signal) : null;
  if (probe?.objection && !force)
    throw new AppError("failed_precondition", `${thing.kind} ${thing.id} was not resumed: ${probe.objection}`, {
      next: `millwright restore adopt|abandon ${thing.kind}/${thing.id}, or resume --force once somebody has looked`,
    });
  await deps.db.transaction((tx) => settle(tx, deps, caller, { review, thing, verdict }));
  return { seen: probe?.seen ?? "" };
}

/** The thing and what works for it, all in one commit. */
async function settle(
  tx: Transaction,
  deps: RunDeps,
  caller: Caller,
  { review, thing, verdict }: Omit<One, "force">,
): Promise<void> {
  if (verdict !== "resumed") await refuseUnreadable(tx, deps, thing, verdict);
  const parts = await partsOf(tx, thing);
  await lockThings(tx, [thing, ...parts]);
  const waiting = await findWaiting(tx, review.id, [thing, ...parts]);
  const found = await existing(tx, deps, [thing, ...parts]);
  if (verdict === "abandoned") await abandonThing(tx, deps, caller, found);
  if (verdict === "adopted") await adoptThing(tx, deps, caller, found);
  for (const [kind, ofKind] of Map.groupBy(waiting, (one) => one.kind)) {
    const [there, gone] = [ofKind.filter(isIn(found)), ofKind.filter((one) => !isIn(found)(one))];
    const by = { reviewId: review.id, ...doneBy(caller), reason: `restore review ${review.id}` };
    const ids = (some: readonly ThingKey[]) => some.map(({ id }) => id);
    if (there.length > 0) await releaseParked(tx, storeOf(deps.stores, kind), ids(there), { ...by, verdict });
    if (gone.length > 0) await releaseParked(tx, storeOf(deps.stores, kind), ids(gone), { ...by, verdict: "gone" });
  }
}

/**
 * What it was doing cannot be told. A run ends all the same: no version touches a device for it any more. Anything is released by a resume; what
 * cannot be read then stays set aside, and does nothing.
 */
async function refuseUnreadable(tx: Transaction, deps: RunDeps, thing: ThingKey, verdict: Ending): Promise<void> {
  const { kind, id } = thing;
  if (kind === "run" && verdict === "abandoned") return;
  const [unreadable] = (await storeOf(deps.stores, kind).load(tx, [id])).unreadable;
  if (!unreadable) return;
  const instead = kind === "run" ? "abandon" : "resume";
  throw new AppError(
    "failed_precondition",
    `${kind} ${id} cannot be ${verdict}: it cannot be read: ${unreadable.error}`,
    {
      field: "things",
      next: `millwright restore ${instead} ${kind}/${id}`,
    },
  );
}

const isIn =
  (some: readonly ThingKey[]) =>
  ({ kind, id }: ThingKey): boolean =>
    some.some((one) => one.kind === kind && one.id === id);

async function existing(tx: Transaction, { stores }: RunDeps, keys: readonly ThingKey[]): Promise<readonly ThingKey[]> {
  const found: ThingKey[] = [];
  for (const [kind, ofKind] of Map.groupBy(keys, (one) => one.kind)) {
    const rows = await tx.query<{ id: string }>(`select id from ${storeOf(stores, kind).table} where id = any($1)`, [
      ofKind.map(({ id }) => id),
    ]);
    const ids = new Set(rows.map(({ id }) => id));
    found.push(...ofKind.filter(({ id }) => ids.has(id)));
  }
  return found;
}

const notParked = ({ id }: RestoreReview, thing: ThingKey): AppError =>
  new AppError("not_found", `${thing.kind} ${thing.id.slice(0, 80)} does not wait in restore review ${id}`, {
    field: "things",
    next: REVIEW_COMMAND,
  });
