import { randomUUID } from "node:crypto";
import type { JsonObject } from "../../kernel/lifecycle.ts";
import type { Transaction } from "../postgres/database.ts";
import { failPoint } from "../postgres/fail-points.ts";
import * as journal from "./journal.ts";
import type { ThingStore } from "./things.ts";
import * as work from "./work.ts";

/**
 * Records one wish on many things and wakes them; the caller holds their locks and has checked them.
 *
 * A request that was still pending ends as superseded: it is not lost, it is answered. One that is being carried out goes
 * on to its own end, and the new one waits behind it.
 */
export async function recordRequest(
  tx: Transaction,
  store: ThingStore,
  request: {
    readonly field: string;
    readonly ids: readonly string[];
    readonly initiator: string;
    readonly address?: string | null;
    readonly wish: JsonObject;
  },
): Promise<string> {
  const columns = store.requests[request.field];
  if (!columns) throw new Error(`${store.lifecycle.kind} has no request ${request.field}`);
  const { column, lastColumn } = columns;
  const { kind } = store.lifecycle;
  const id = randomUUID();
  const rows = await tx.query<{ id: string; version: number; displaced: JsonObject | null }>(
    `update ${store.table} t
        set version = t.version + case when old.pending is null then 1 else 2 end,
            basis = t.basis + 1,
            ${lastColumn} = case when old.pending is null then t.${lastColumn} else
              old.pending || jsonb_build_object('outcome', 'superseded', 'ended_at', now(), 'message', 'superseded by a request of ' || $2::text) end,
            ${column} = $3::jsonb || jsonb_build_object('id', $4::text, 'initiator', $2::text, 'requested_at', now())
       from (select id, case when ${column} ->> 'id' is distinct from state_data -> 'request' ->> 'id' then ${column} end as pending
               from ${store.table} where id = any($1)) as old
      where t.id = old.id
     returning t.id, t.version, old.pending as displaced`,
    [request.ids, request.initiator, JSON.stringify(request.wish), id],
  );
  const told = {
    kind,
    from: null,
    to: null,
    owner: "caller",
    actor: request.initiator,
    address: request.address ?? null,
  } as const;
  await journal.append(
    tx,
    rows.flatMap((row) => [
      ...(row.displaced
        ? [
            {
              ...told,
              id: row.id,
              version: row.version - 1,
              type: "request_ended",
              reason: `superseded by a request of ${request.initiator}`,
              data: { ...row.displaced, outcome: "superseded" },
            },
          ]
        : []),
      {
        ...told,
        id: row.id,
        version: row.version,
        type: "requested",
        reason: null,
        data: { ...request.wish, request_id: id },
      },
    ]),
  );
  failPoint("requests:recorded", [{ kind }]);
  await work.wake(
    tx,
    request.ids.map((thing) => ({ kind, id: thing })),
  );
  await journal.announce(tx);
  return id;
}
