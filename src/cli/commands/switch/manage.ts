import { Forge } from "../../../../contract/forge/forge_pb.js";
import { type Switch, SwitchService } from "../../../../contract/millwright/v1/switch_pb.js";
import { isConnectError } from "../../client/errors.ts";
import type { Session } from "../../client/session.ts";
import { type ConfirmOptions, confirm } from "../../terminal/confirm.ts";
import { printDone, printOne } from "../../terminal/printing.ts";
import { printDeviceLog } from "../device/log.ts";
import { watchOne } from "../device/watch.ts";
import { listSwitches, watchedSwitches } from "./list.ts";
import { findSwitchByName } from "./names.ts";
import { switchThing } from "./view.ts";

export interface ForceDeleteOptions extends ConfirmOptions {
  readonly deleteInterfaces?: boolean;
}

/** One switch by id or name; without either, all of them. */
export async function showSwitch(
  session: Session,
  idOrName: string | undefined,
  options: { readonly watch?: boolean },
): Promise<number | undefined> {
  if (idOrName === undefined) return listSwitches(session, { ...options, deleted: "include" });
  const found = await findSwitch(session, idOrName);
  if (options.watch) return watchOne(session, watchedSwitches, { id: found.id, thing: switchThing });
  await printOne(session, switchThing(found, session.style()));
  return undefined;
}

/** The id is tried first; what cannot be an id, or is none, may be a name. */
async function findSwitch(session: Session, idOrName: string): Promise<Switch> {
  const client = await session.client(SwitchService);
  const get = async (id: string) => (await client.getSwitch({ id }, { signal: session.signal })).switch;
  try {
    const found = await get(idOrName);
    if (found) return found;
  } catch (error) {
    const { Code } = await import("@connectrpc/connect");
    if (!isConnectError(error) || (error.code !== Code.NotFound && error.code !== Code.InvalidArgument)) throw error;
    const id = await findSwitchByName(session, idOrName);
    const named = id === undefined ? undefined : await get(id);
    if (named) return named;
    throw error;
  }
  throw new Error(`the server answered without the switch ${idOrName}`);
}

export async function showSwitchLog(session: Session, id: string): Promise<undefined> {
  const client = await session.client(SwitchService);
  const { logEntries } = await client.getSwitch({ id }, { signal: session.signal });
  await printDeviceLog(session, logEntries);
}

export async function refreshSwitch(session: Session, id: string): Promise<undefined> {
  const client = await session.client(SwitchService);
  await client.refreshSwitch({ id }, { signal: session.signal });
  await printDone(session, `Switch ${id} will be read now.`, { switch: id });
}

/** Of its BMC, or of its operating system. */
export async function acceptCertificate(
  session: Session,
  id: string,
  { fingerprint, nvos = false }: { readonly fingerprint: string; readonly nvos?: boolean },
): Promise<undefined> {
  const client = await session.client(SwitchService);
  await client.acceptSwitchCertificate({ id, fingerprint, os: nvos }, { signal: session.signal });
  const whose = nvos ? "the operating system of switch" : "switch";
  await printDone(session, `Certificate of ${whose} ${id} accepted.`, { switch: id, of: nvos ? "nvos" : "bmc" });
}

export async function deleteSwitch(session: Session, id: string, { yes }: ConfirmOptions): Promise<undefined> {
  if (!yes) await confirm(session, { what: `Delete switch ${id}?` });
  const forge = await session.client(Forge);
  await forge.deleteSwitch({ id: { id } }, { signal: session.signal });
  await printDone(session, `Switch ${id} is marked for deletion.`, { switch: id });
}

export async function forceDeleteSwitch(session: Session, id: string, options: ForceDeleteOptions): Promise<undefined> {
  if (!options.yes) await confirm(session, { what: `Remove switch ${id} at once?` });
  const forge = await session.client(Forge);
  const { interfacesDeleted } = await forge.adminForceDeleteSwitch(
    { switchId: { id }, deleteInterfaces: options.deleteInterfaces ?? false },
    { signal: session.signal },
  );
  await printDone(session, `Switch ${id} removed.`, { switch: id, interfaces_deleted: interfacesDeleted });
}
