import { randomUUID } from "node:crypto";
import { PowerShelfService, TlsTrustModeSchema } from "../../../../contract/millwright/v1/power_shelf_pb.js";
import { enumNumber } from "../../client/proto-json.ts";
import type { Session } from "../../client/session.ts";
import { type ConfirmOptions, confirm } from "../../terminal/confirm.ts";
import { printDone, printLine, printOne } from "../../terminal/printing.ts";
import { type PasswordOptions, readBmcPassword } from "../../terminal/secret-input.ts";
import { shelfThing } from "./view.ts";

export interface CreateOptions extends PasswordOptions {
  readonly id?: string;
  readonly name?: string;
  readonly rack?: string;
  readonly bmcEndpoint: string;
  readonly bmcMac: string;
  readonly bmcUsername: string;
  readonly bmcScheme?: string;
  readonly tlsTrust?: string;
  readonly requestId?: string;
}

export async function createPowerShelf(session: Session, options: CreateOptions): Promise<undefined> {
  const bmcPassword = (await readBmcPassword(session, options, "required")) ?? "";
  const client = await session.client(PowerShelfService);
  const { powerShelf } = await client.createPowerShelf(
    {
      id: options.id ?? "",
      name: options.name ?? "",
      rackId: options.rack ?? "",
      bmcEndpoint: options.bmcEndpoint,
      bmcMac: options.bmcMac,
      bmcUsername: options.bmcUsername,
      bmcPassword,
      bmcScheme: options.bmcScheme ?? "",
      tlsTrust: options.tlsTrust === undefined ? 0 : (enumNumber(TlsTrustModeSchema, options.tlsTrust) ?? 0),
      requestId: options.requestId ?? randomUUID(),
    },
    { signal: session.signal },
  );
  if (!powerShelf) throw new Error("the server answered without the power shelf");
  const style = session.style();
  if (style.format === "table")
    printLine(session.terminal.stdout, `Power shelf ${powerShelf.id} created; it is ${powerShelf.state}.`);
  else await printOne(session, shelfThing(powerShelf, style));
}

export async function refreshPowerShelf(
  session: Session,
  id: string,
  options: { readonly forgetCertificate?: boolean },
): Promise<undefined> {
  const client = await session.client(PowerShelfService);
  await client.refreshPowerShelf(
    { id, forgetCertificate: options.forgetCertificate ?? false },
    { signal: session.signal },
  );
  await printDone(session, `Power shelf ${id} will be read now.`, { id });
}

/** The server refuses another fingerprint than the one that the BMC shows. */
export async function acceptCertificate(
  session: Session,
  id: string,
  { fingerprint }: { readonly fingerprint: string },
): Promise<undefined> {
  const client = await session.client(PowerShelfService);
  await client.acceptPowerShelfCertificate({ id, fingerprint }, { signal: session.signal });
  await printDone(session, `Certificate of power shelf ${id} accepted; the shelf will be read now.`, { id });
}

export interface CredentialOptions extends PasswordOptions {
  readonly bmcUsername: string;
}

export async function setCredentials(session: Session, id: string, options: CredentialOptions): Promise<undefined> {
  const bmcPassword = (await readBmcPassword(session, options, "required")) ?? "";
  const client = await session.client(PowerShelfService);
  await client.setPowerShelfCredentials(
    { id, bmcUsername: options.bmcUsername, bmcPassword },
    { signal: session.signal },
  );
  await printDone(session, `Credentials of power shelf ${id} set; they will be tried now.`, { id });
}

export async function deletePowerShelf(session: Session, id: string, { yes }: ConfirmOptions): Promise<undefined> {
  if (!yes) await confirm(session, { what: `Delete power shelf ${id}?` });
  const { Forge } = await import("../../../../contract/forge/forge_pb.js");
  const forge = await session.client(Forge);
  await forge.deletePowerShelf({ id: { id } }, { signal: session.signal });
  await printDone(session, `Power shelf ${id} marked for deletion.`, { id });
}

export interface ForceDeleteOptions extends ConfirmOptions {
  readonly deleteInterfaces?: boolean;
}

export async function forceDeletePowerShelf(
  session: Session,
  id: string,
  options: ForceDeleteOptions,
): Promise<undefined> {
  const what = `Delete power shelf ${id} at once, whatever it is doing?`;
  if (!options.yes) await confirm(session, { what });
  const { Forge } = await import("../../../../contract/forge/forge_pb.js");
  const forge = await session.client(Forge);
  const { interfacesDeleted } = await forge.adminForceDeletePowerShelf(
    { powerShelfId: { id }, deleteInterfaces: options.deleteInterfaces ?? false },
    { signal: session.signal },
  );
  const interfaces = options.deleteInterfaces ? ` with ${interfacesDeleted} network interfaces` : "";
  await printDone(session, `Power shelf ${id} deleted${interfaces}.`, { id, interfaces_deleted: interfacesDeleted });
}
