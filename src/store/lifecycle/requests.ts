import { randomUUID } from "node:crypto";
import type { JsonObject } from "../../kernel/lifecycle.ts";
import type { Transaction } from "../postgres/database.ts";
import { failPoint } from "../postgres/fail-points.ts";
import { toJsonText } from "../postgres/json-text.ts";
import * as journal from "./journal.ts";
import type { ThingKey, ThingStore } from "./things.ts";
import * as work from "./work.ts";

/** A wish as it is recorded on one thing. */
export interface NewRequest {
  /** Of the thing. */
  readonly id: string;
  readonly requestId: string;
  /** Who asked, in words. */
  readonly initiator: string;
  /** The thing that asked. Callers have none, and whatever they call themselves gives them none. */
  readonly origin?: ThingKey;
  readonly address?: string | null;
  readonly wish: JsonObject;
}

/** A thing that asks, as people read it. */
export const describeOrigin = ({ kind, id }: ThingKey): string => `${kind}-${id}`;

/** Records one wish of a caller on many things and wakes them; the caller holds their locks and has checked them. */
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
  const { field, ids, ...asked } = request;
  const requestId = randomUUID();
  await writeRequests(
    tx,
    store,
    field,
    ids.map((id) => ({ id, requestId, ...asked })),
  );
  await work.wake(
    tx,
    ids.map((id) => ({ kind: store.lifecycle.kind, id })),
  );
  journal.announce(tx);
  return requestId;
}

/**
 * Writes wishes on things, one each, in one statement; the caller holds their locks and wakes them. Returns the things that there are.
 *
 * A request that was still pending ends as superseded: it is not lost, it is answered. One that is being carried out goes
 * on to its own end, and the new one waits behind it.
 */
export async function writeRequests(
  tx: Transaction,
  store: ThingStore,
  field: string,
  requests: readonly NewRequest[],
): Promise<ReadonlySet<string>> {
  const columns = store.requests[field];
  if (!columns) throw new Error(`${store.lifecycle.kind} has no request ${field}`);
  const { column, lastColumn } = columns;
  const rows = await tx.query<Recorded>({
    hot: true,
    text: `update ${store.table} t
        set version = t.version + case when old.pending is null then 1 else 2 end,
            basis = t.basis + 1,
            ${lastColumn} = case when old.pending is null then t.${lastColumn} else
              old.pending || jsonb_build_object('outcome', 'superseded', 'ended_at', now(), 'message', 'superseded by a request of ' || i.initiator) end,
            ${column} = i.request || jsonb_build_object('requested_at', now())
       from jsonb_to_recordset($1) as i(id text, initiator text, request jsonb)
            join (select id, case when ${column} ->> 'id' is distinct from state_data -> 'request' ->> 'id' then ${column} end as pending
                    from ${store.table} where id = any($2)) as old using (id)
      where t.id = i.id
     returning t.id, t.version, old.pending as displaced`,
    values: [
      toJsonText(requests.map((request) => ({ ...request, request: pendingOf(request) }))),
      requests.map(({ id }) => id),
    ],
  });
  const recorded = new Map(rows.map((row) => [row.id, row]));
  const { kind } = store.lifecycle;
  await journal.append(
    tx,
    requests.flatMap((request) => {
      const row = recorded.get(request.id);
      return row ? entriesOf(kind, request, row) : [];
    }),
  );
  failPoint("requests:recorded", [{ kind }]);
  return new Set(recorded.keys());
}

interface Recorded {
  readonly id: string;
  readonly version: number;
  readonly displaced: JsonObject | null;
}

/** Who asked comes last: no wish can say it of itself. */
function pendingOf({ requestId, initiator, origin, wish }: NewRequest): JsonObject {
  const { origin: _, ...wished } = wish;
  return { ...wished, id: requestId, initiator, ...(origin && { origin: { kind: origin.kind, id: origin.id } }) };
}

function entriesOf(kind: string, request: NewRequest, { id, version, displaced }: Recorded): journal.JournalEntry[] {
  const { initiator, origin, wish, requestId } = request;
  const told = { kind, id, from: null, to: null, owner: "caller", actor: initiator, address: request.address ?? null };
  const asked = { ...wish, request_id: requestId, ...(origin && { origin: { kind: origin.kind, id: origin.id } }) };
  const recorded = { ...told, version, type: "requested", reason: null, data: asked };
  if (!displaced) return [recorded];
  const reason = `superseded by a request of ${initiator}`;
  const data = { ...displaced, outcome: "superseded" };
  return [{ ...told, version: version - 1, type: "request_ended", reason, data }, recorded];
}
