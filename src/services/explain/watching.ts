import type { CauseCode } from "../../kernel/causes.ts";
import { findWatching } from "../../store/device/event-streams.ts";
import type { ThingKey } from "../../store/lifecycle/things.ts";
import type { Queryable } from "../../store/postgres/database.ts";
import { iso } from "./next-pass.ts";

/** Reasons that say more in words. */
const WHY: { readonly [reason in CauseCode | "silent"]?: string } = {
  unsupported: "its BMC offers no events",
  busy: "its BMC serves no further stream of events",
  silent: "nothing came over the stream of its events",
};

/** How a change that is made outside is noticed; empty where events were never asked for. */
export async function describeWatching(db: Queryable, key: ThingKey): Promise<string> {
  const [watched] = await findWatching(db, [key]);
  if (watched === undefined) return "";
  const { liveSince, reason } = watched;
  if (liveSince !== null) return `being watched by its events since ${iso(liveSince)}, and polled rarely`;
  const why =
    reason === null ? "" : `: ${WHY[reason as CauseCode | "silent"] ?? `its events cannot be followed (${reason})`}`;
  return `being polled${why}`;
}
