import type { Finding } from "../../lifecycles/restore-review/restore-review.ts";
import { compareCursors } from "../lifecycle/journal.ts";
import type { DatabaseIdentity, Standing } from "./standing.ts";

/** What somebody remembers of a database: a replica that lives, or the file that one has left. */
export interface Memory {
  readonly databaseId: string;
  readonly generation: number;
  /** Its row in the database, which nobody else writes. */
  readonly witness: string;
  /** The last beat that the database has confirmed; 0: none yet. */
  readonly beat: number;
  /** The newest entry of the journal that it has seen; null: none. */
  readonly cursor: string | null;
  /** When. */
  readonly at: string;
}

/**
 * How the database shows that it was restored; empty where it was not. A crash, an outage however long, a failover that lost nothing and a
 * move of the server keep everything that was confirmed, so that none of them counts.
 */
export function judge(standing: Standing, memory: Memory | null): readonly Finding[] {
  const { recorded, actual, isAhead } = standing;
  const findings: Finding[] = [];
  const changed = recorded === null ? [] : differences(recorded, actual);
  if (changed.length > 0)
    findings.push({
      sign: "identity_changed",
      message: `the database has another ${changed.join(" and ")} than before`,
    });
  if (isAhead)
    findings.push({
      sign: "future_entries",
      message: "the journal has entries of transactions that this database server has not had yet",
    });
  const lost = recorded === null ? lostIdentity(standing, memory) : lostOf(standing, recorded, memory);
  if (lost !== null) findings.push({ sign: "behind", message: lost });
  return findings;
}

/**
 * A database that has a journal and does not know itself, though somebody remembers one: the backup was made by a version that wrote down no
 * identity. Before the first start of a version that does, nobody remembers anything.
 */
function lostIdentity({ newest }: Standing, memory: Memory | null): string | null {
  if (memory === null || newest === null) return null;
  return `the database does not say which one it is, as the one did that a server saw ${memory.at}`;
}

const lostOf = (
  standing: Standing,
  recorded: NonNullable<Standing["recorded"]>,
  memory: Memory | null,
): string | null => (memory?.databaseId === recorded.databaseId ? lostSince(standing, recorded, memory) : null);

function differences(recorded: DatabaseIdentity, actual: DatabaseIdentity): string[] {
  const { systemIdentifier: before } = recorded;
  const { systemIdentifier: now } = actual;
  return [
    ...(before !== null && now !== null && before !== now ? ["system identifier"] : []),
    ...(recorded.databaseOid !== actual.databaseOid ? ["database oid"] : []),
    ...(recorded.journalOid !== actual.journalOid ? ["oid of the journal"] : []),
  ];
}

/** What the database has lost of what somebody remembers; null where it has all of it. */
function lostSince(
  { beat, newest, witnessesSince }: Standing,
  { generation }: { readonly generation: number },
  memory: Memory,
): string | null {
  // Somebody else has found a later restore: what was seen before it says nothing any more.
  if (generation > memory.generation) return null;
  const seen = `a server saw ${memory.at}`;
  if (generation < memory.generation)
    return `the database does not know of its restore number ${memory.generation - 1}, which ${seen}`;
  if (memory.cursor !== null && (newest === null || compareCursors(newest, memory.cursor) < 0))
    return `the journal ends at ${newest ?? "its beginning"}, before the entry ${memory.cursor} that ${seen}`;
  if (memory.beat === 0) return null;
  const isForgotten = beat === null && witnessesSince !== null && new Date(memory.at) <= witnessesSince;
  if (isForgotten || (beat !== null && beat >= memory.beat)) return null;
  return `the database does not have what ${seen} committed`;
}
