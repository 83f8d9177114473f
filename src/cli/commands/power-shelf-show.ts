import { type PowerShelf, PowerShelfService } from "../../../contract/millwright/v1/power_shelf_pb.js";
import { EXIT, isConnectError, UsageError } from "../errors.ts";
import { followEvents } from "../events.ts";
import { createLiveView } from "../live-view.ts";
import { renderChange, renderOne } from "../output.ts";
import { printOne } from "../printing.ts";
import type { Session } from "../session.ts";
import { goneLine, listPowerShelves, readShelf } from "./power-shelf-list.ts";
import { columnsFor, shelfJson, shelfThing } from "./power-shelf-view.ts";

/** One shelf by id or name; without either, all of them. */
export async function showPowerShelf(
  session: Session,
  idOrName: string | undefined,
  options: { readonly watch?: boolean },
): Promise<number | undefined> {
  if (idOrName === undefined) return listPowerShelves(session, { ...options, deleted: "include" });
  const shelf = await findShelf(session, idOrName);
  if (options.watch) return watchShelf(session, shelf.id);
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
    const named = await findByName(session, idOrName);
    if (named) return named;
    throw error;
  }
  throw new Error(`the server answered without the power shelf ${idOrName}`);
}

async function findByName(session: Session, name: string): Promise<PowerShelf | undefined> {
  const { Forge } = await import("../../../contract/forge/forge_pb.js");
  const forge = await session.client(Forge);
  const { powerShelves } = await forge.findPowerShelves({ name }, { signal: session.signal });
  const ids = powerShelves.map((shelf) => shelf.id?.id ?? "");
  if (ids.length > 1)
    throw new UsageError(
      `${ids.length} power shelves are named ${JSON.stringify(name)}`,
      `give the id: ${ids.join(", ")}`,
    );
  return ids[0] === undefined ? undefined : readShelf(session, ids[0]);
}

async function watchShelf(session: Session, id: string): Promise<number> {
  let shelf: PowerShelf | undefined;
  const view = createLiveView(session, async (style) =>
    shelf ? renderOne(shelfThing(shelf, style), style) : goneLine(id, style.format),
  );
  for await (const followed of followEvents(
    session,
    { kinds: ["power_shelf"], ids: [id], from: "now" },
    session.signal,
  )) {
    shelf = await readShelf(session, id);
    if (followed.type === "ready") await view.start();
    else
      await view.change(async (style) =>
        shelf
          ? renderChange({ columns: columnsFor(style), json: shelfJson }, shelf, style)
          : goneLine(id, style.format),
      );
    if (!shelf) {
      await view.stop();
      return EXIT.notFound;
    }
  }
  await view.stop();
  return EXIT.interrupted;
}
