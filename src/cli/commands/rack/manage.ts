import { RackService } from "../../../../contract/millwright/v1/rack_pb.js";
import type { Session } from "../../client/session.ts";
import { type ConfirmOptions, confirm } from "../../terminal/confirm.ts";
import { printDone } from "../../terminal/printing.ts";

export interface DeleteRackOptions extends ConfirmOptions {
  readonly detach?: boolean;
}

export async function deleteRack(session: Session, id: string, { yes, detach }: DeleteRackOptions): Promise<undefined> {
  if (!yes) await confirm(session, { what: `Delete rack ${id}${detach ? " and detach its devices" : ""}?` });
  const client = await session.client(RackService);
  await client.deleteRack({ id, detach: detach ?? false }, { signal: session.signal });
  await printDone(session, `Rack ${id} is marked for deletion; it goes once no device names it.`, { rack: id });
}

export async function forceDeleteRack(session: Session, id: string, { yes }: ConfirmOptions): Promise<undefined> {
  if (!yes) await confirm(session, { what: `Remove the record of rack ${id} at once?` });
  const client = await session.client(RackService);
  await client.forceDeleteRack({ id }, { signal: session.signal });
  await printDone(session, `Rack ${id} removed.`, { rack: id });
}

export async function refreshRack(session: Session, id: string): Promise<undefined> {
  const client = await session.client(RackService);
  await client.refreshRack({ id }, { signal: session.signal });
  await printDone(session, `Rack ${id} will be checked now.`, { rack: id });
}
