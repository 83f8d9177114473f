import type { SharedClock } from "../../kernel/time/shared-clock.ts";
import { countParked } from "../../store/restore/parked.ts";
import { findLiveReview } from "../../store/restore/reviews.ts";
import type { ServiceDeps } from "../call/deps.ts";

/** Which server this is. */
export interface SystemInfo {
  readonly version: string;
  /** The commit it was made from; empty where nobody knows. */
  readonly commit: string;
  /** The number of the newest migration that it knows. */
  readonly schema: string;
  readonly startedAt: Date;
  /** Tells replicas apart. */
  readonly replica: string;
  /** The one that replicas share, for how this host's own compares with it. */
  readonly clock: Pick<SharedClock, "localIsAheadBy" | "trouble">;
}

/** The pause after a restored backup; undefined when there is none. */
export async function readRestore({
  db,
}: ServiceDeps): Promise<{ readonly review: string; readonly parked: number } | undefined> {
  const review = await findLiveReview(db);
  return review && { review: review.id, parked: await countParked(db) };
}

export async function readDatabaseVersion({ db }: ServiceDeps): Promise<string> {
  const [row] = await db.query<{ version: string }>("select current_setting('server_version') as version");
  return row?.version ?? "";
}
