import type { Move, RequestEnd } from "../../../kernel/decide.ts";
import type { Json, JsonObject } from "../../../kernel/lifecycle.ts";
import type { Transaction } from "../../postgres/database.ts";
import { failPoint } from "../../postgres/fail-points.ts";
import * as journal from "../journal.ts";
import { storeOf, type ThingStore, type ThingStores } from "../things.ts";
import { type Change, changesOf, type Unit } from "./unit.ts";

/**
 * Adds, to moves that withdraw or supersede requests or let them expire, the ends of those that there are: the one that the state carries and one
 * that waits behind it. Read here and not where the move was planned, since a request has the same form in the column and in the
 * journal.
 */
export async function endUnheard(tx: Transaction, stores: ThingStores, units: readonly Unit[]): Promise<Unit[]> {
  const ending = units.filter((unit) => unheardIn(unit).length > 0);
  if (ending.length === 0) return [...units];
  const pending = new Map<string, JsonObject>();
  for (const [kind, ofKind] of Map.groupBy(ending, (unit) => unit.kind)) {
    const store = storeOf(stores, kind);
    for (const field of new Set(ofKind.flatMap(unheardIn))) {
      const rows = await tx.query<{ id: string; request: JsonObject }>(
        `select id, ${columnsOf(store, field).column} as request from ${store.table}
          where id = any($1) and ${columnsOf(store, field).column} is not null`,
        [ofKind.map(({ thing }) => thing.id)],
      );
      for (const { id, request } of rows) pending.set(`${kind} ${id} ${field}`, request);
    }
  }
  const withEnds = <C extends Change>(change: C, { kind, actor }: Unit): C => {
    const { move, thing } = change;
    if (!move || unheardBy(change).length === 0) return change;
    const waiting = (field: string) => {
      const name = `${kind} ${thing.id} ${field}`;
      const request = pending.get(name);
      pending.delete(name); // a second row of the same commit finds it ended
      return request;
    };
    const withdrawn = (move.withdraws ?? []).flatMap((field): RequestEnd[] =>
      requestsOf(carriedFor(move, thing.state.request), waiting(field)).map((request) => ({
        field,
        request,
        outcome: "withdrawn",
        message: `withdrawn by ${actor} (${move.trigger})`,
      })),
    );
    const superseded = (move.supersedes ?? []).flatMap((field): RequestEnd[] =>
      requestsOf(undefined, waiting(field)).map((request) => ({
        field,
        request,
        outcome: "superseded",
        message: `superseded by a request of ${initiatorOf(move.carried.request) ?? actor}`,
      })),
    );
    const asBefore = (fields: readonly string[] | undefined, outcome: RequestEnd["outcome"]) =>
      (fields ?? []).flatMap((field): RequestEnd[] =>
        requestsOf(undefined, waiting(field)).map((request) => ({
          field,
          request,
          outcome,
          message: thing.outcome?.reason,
        })),
      );
    const [expired, refused] = [asBefore(move.expires, "expired"), asBefore(move.refuses, "failed")];
    return { ...change, move: { ...move, ends: [...move.ends, ...withdrawn, ...superseded, ...expired, ...refused] } };
  };
  return units.map((unit) => {
    const { further } = unit;
    return { ...withEnds(unit, unit), ...(further && { further: further.map((change) => withEnds(change, unit)) }) };
  });
}

const unheardBy = ({ move }: Change): readonly string[] => [
  ...(move?.withdraws ?? []),
  ...(move?.supersedes ?? []),
  ...(move?.expires ?? []),
  ...(move?.refuses ?? []),
];
const unheardIn = (unit: Unit): readonly string[] => changesOf(unit).flatMap(unheardBy);

/** Of several fields nobody can say whose request the state carries; a thing that has several keeps each in its column until it ends. */
const carriedFor = ({ withdraws = [] }: Move, carried: Json | undefined): Json | undefined =>
  withdraws.length === 1 ? carried : undefined;

function requestsOf(carried: Json | undefined, waiting: JsonObject | undefined): JsonObject[] {
  const pending = waiting === undefined ? [] : [waiting];
  return isRequest(carried) && carried.id !== waiting?.id ? [carried, ...pending] : pending;
}

const isRequest = (value: Json | undefined): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value) && "id" in value;

const initiatorOf = (request: Json | undefined): string | undefined =>
  isRequest(request) && typeof request.initiator === "string" ? request.initiator : undefined;

function columnsOf(store: ThingStore, field: string) {
  const columns = store.requests[field];
  if (!columns) throw new Error(`${store.lifecycle.kind} has no request ${field}`);
  return columns;
}

/**
 * Ends the request that waits on a thing, since the caller has made it pointless; the caller holds the thing's lock. One that is
 * being carried out is seen through.
 */
export async function withdrawPending(
  tx: Transaction,
  store: ThingStore,
  { field, id, actor, address }: { field: string; id: string; actor: string; address: string | null },
): Promise<void> {
  const { column, lastColumn } = columnsOf(store, field);
  const message = `withdrawn by ${actor}`;
  const [row] = await tx.query<{ version: number; request: JsonObject }>(
    `update ${store.table} t
        set version = t.version + 1, basis = t.basis + 1, ${column} = null,
            ${lastColumn} = old.request || jsonb_build_object('outcome', 'withdrawn', 'ended_at', now(), 'message', $2::text)
       from (select id, ${column} as request from ${store.table}
              where id = $1 and ${column} ->> 'id' is distinct from state_data -> 'request' ->> 'id') as old
      where t.id = old.id and old.request is not null
     returning t.version, old.request`,
    [id, message],
  );
  if (!row) return;
  failPoint("withdrawals:written", [{ kind: store.lifecycle.kind }]);
  await journal.append(tx, [
    {
      kind: store.lifecycle.kind,
      id,
      version: row.version,
      type: "request_ended",
      from: null,
      to: null,
      owner: "caller",
      actor,
      address,
      reason: message,
      data: { ...row.request, outcome: "withdrawn" },
    },
  ]);
  journal.announce(tx);
}
