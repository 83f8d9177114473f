import type { JournalRow } from "../../src/store/lifecycle/journal.ts";
import { listPowerShelves, type PowerShelfRecord } from "../../src/store/power-shelf/power-shelves.ts";
import type { TestDatabase } from "./database.ts";
import { eventually } from "./eventually.ts";

type Shelves = readonly PowerShelfRecord[];

const describeShelves = (shelves: Shelves): string =>
  shelves
    .map(({ id, name, state, facts, outcome, lastError, maintenanceRequest }) =>
      [
        name,
        id,
        JSON.stringify(state),
        facts.powerState,
        JSON.stringify(outcome),
        lastError,
        maintenanceRequest?.operation,
      ].join(" · "),
    )
    .join("\n");

/** Waits until the shelves, all of them together, satisfy the condition; fails with how they are. */
export async function untilShelves(
  { db }: TestDatabase,
  condition: (shelves: Shelves) => boolean,
  { what, within = 60_000, transcript = () => "" }: { what: string; within?: number; transcript?: () => string },
): Promise<Shelves> {
  let last: Shelves = [];
  return eventually(
    async () => {
      last = await listPowerShelves(db);
      return condition(last) ? last : undefined;
    },
    { what, within, seen: () => `${describeShelves(last)}\n${transcript()}` },
  );
}

/** Nothing is asked of it, and the last that was has ended: it rests with its power as wanted. */
export const isDone = (shelf: PowerShelfRecord, power: "on" | "off"): boolean =>
  shelf.state.name === "ready" &&
  shelf.maintenanceRequest === null &&
  shelf.lastMaintenanceRequest?.operation === `power_${power}` &&
  shelf.facts.powerState === power;

/** The whole journal of one thing, oldest first. */
export async function journalOf({ db }: Pick<TestDatabase, "db">, id: string): Promise<JournalRow[]> {
  return db.query<JournalRow>(
    `select version, type, from_state as "from", to_state as "to", actor, reason, data
       from journal where id = $1 order by epoch, xid, seq`,
    [id],
  );
}

interface Ended {
  readonly outcome: string;
  readonly request: { readonly id: string };
}

/** How the request ended, as often as the journal says so. */
export const endsOf = (journal: readonly JournalRow[], requestId: string): string[] =>
  journal.flatMap(({ data }) =>
    ((data.ended ?? []) as unknown as Ended[])
      .filter(({ request }) => request.id === requestId)
      .map(({ outcome }) => outcome),
  );
