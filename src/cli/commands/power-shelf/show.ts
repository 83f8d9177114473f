import { type PowerShelf, PowerShelfService } from "../../../../contract/millwright/v1/power_shelf_pb.js";
import { CliError, EXIT, isConnectError } from "../../client/errors.ts";
import type { Session } from "../../client/session.ts";
import { printOne } from "../../terminal/printing.ts";
import { clockTime } from "../../terminal/times.ts";
import { watchOne } from "../device/watch.ts";
import { listPowerShelves, readShelf, watchedShelves } from "./list.ts";
import { findIdByName } from "./names.ts";
import { shelfThing } from "./view.ts";

/** One shelf by id or name; without either, all of them. */
export async function showPowerShelf(
  session: Session,
  idOrName: string | undefined,
  options: { readonly watch?: boolean },
): Promise<number | undefined> {
  if (idOrName === undefined) return listPowerShelves(session, { ...options, deleted: "include" });
  const shelf = await findShelf(session, idOrName);
  if (options.watch) return watchOne(session, watchedShelves, { id: shelf.id, thing: shelfThing });
  await printOne(session, shelfThing(shelf, session.style()));
  return undefined;
}

/** The id is tried first; what cannot be an id, or is none, may be a name. */
async function findShelf(session: Session, idOrName: string): Promise<PowerShelf> {
  const client = await session.client(PowerShelfService);
  try {
    const { powerShelf } = await client.getPowerShelf({ id: idOrName }, { signal: session.signal });
    if (powerShelf) return powerShelf;
  } catch (error) {
    const { Code } = await import("@connectrpc/connect");
    if (!isConnectError(error) || (error.code !== Code.NotFound && error.code !== Code.InvalidArgument)) throw error;
    const id = await findIdByName(session, idOrName);
    const named = id === undefined ? undefined : await readShelf(session, id);
    if (named) return named;
    throw (await goneError(session, idOrName)) ?? error;
  }
  throw new Error(`the server answered without the power shelf ${idOrName}`);
}

/** A shelf that was here once has a history, which says what became of it. */
async function goneError(session: Session, id: string): Promise<CliError | undefined> {
  const { HistoryService } = await import("../../../../contract/millwright/v1/history_pb.js");
  const client = await session.client(HistoryService);
  const request = { kind: "power_shelf", id, pageSize: 1, newestFirst: true };
  const last = await client.listHistory(request, { signal: session.signal }).then(
    ({ events }) => events[0],
    // Whoever may not read it, or asked with what cannot be an id, has the first error to go by.
    () => undefined,
  );
  if (!last) return undefined;
  const how = last.type === "deleted" ? `was deleted ${clockTime(last.at)}`.trimEnd() : "is gone";
  return new CliError(
    EXIT.notFound,
    `power shelf ${id} does not exist any more: it ${how}`,
    `\`millwright power-shelf history ${id}\` tells what happened to it`,
  );
}
