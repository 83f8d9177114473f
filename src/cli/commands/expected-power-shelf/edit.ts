import { create } from "@bufbuild/protobuf";
import {
  type ExpectedPowerShelf,
  type ExpectedPowerShelfList,
  ExpectedPowerShelfSchema,
  Forge,
} from "../../../../contract/forge/forge_pb.js";
import { MetadataSchema } from "../../../../contract/forge/shared_pb.js";
import { PowerShelfService } from "../../../../contract/millwright/v1/power_shelf_pb.js";
import { UsageError } from "../../client/errors.ts";
import { readPages } from "../../client/read-pages.ts";
import type { Session } from "../../client/session.ts";
import { type ConfirmOptions, confirm } from "../../terminal/confirm.ts";
import { printDone } from "../../terminal/printing.ts";
import { type PasswordOptions, readBmcPassword } from "../../terminal/secret-input.ts";
import { nameEntry } from "./expected-entry.ts";
import { parseExpectedFile } from "./expected-file.ts";

export interface ExpectedFields extends PasswordOptions {
  readonly bmcMacAddress?: string;
  readonly bmcUsername?: string;
  readonly shelfSerialNumber?: string;
  readonly bmcIpAddress?: string;
  readonly rackId?: string;
  readonly name?: string;
  readonly description?: string;
  readonly label?: readonly string[];
  readonly retainCredentials?: boolean;
  readonly id?: string;
}

export async function addExpected(session: Session, options: ExpectedFields): Promise<undefined> {
  const expected = create(ExpectedPowerShelfSchema, {
    ...(options.id === undefined ? {} : { expectedPowerShelfId: { value: options.id } }),
  });
  applyFields(expected, options);
  expected.bmcPassword = (await readBmcPassword(session, options, "required")) ?? "";
  const forge = await session.client(Forge);
  await forge.addExpectedPowerShelf(expected, { signal: session.signal });
  await printDone(session, `Expected power shelf ${expected.bmcMacAddress} added.`, {
    bmc_mac_address: expected.bmcMacAddress,
  });
}

/** Only what is given changes; without a password, the stored one stays. */
export async function updateExpected(session: Session, macOrId: string, options: ExpectedFields): Promise<undefined> {
  const password = await readBmcPassword(session, options, "if-given");
  if (password === undefined && Object.values(options).every((given) => given === undefined))
    throw new UsageError("no change is given", "`millwright expected-power-shelf update --help` lists the fields");
  const forge = await session.client(Forge);
  const expected = await forge.getExpectedPowerShelf(nameEntry(macOrId), { signal: session.signal });
  applyFields(expected, options);
  expected.bmcPassword = password ?? "";
  await forge.updateExpectedPowerShelf(expected, { signal: session.signal });
  await printDone(session, `Expected power shelf ${expected.bmcMacAddress} updated.`, {
    bmc_mac_address: expected.bmcMacAddress,
  });
}

export async function deleteExpected(session: Session, macOrId: string, { yes }: ConfirmOptions): Promise<undefined> {
  if (!yes) await confirm(session, { what: `Delete expected power shelf ${macOrId}?` });
  const forge = await session.client(Forge);
  await forge.deleteExpectedPowerShelf(nameEntry(macOrId), { signal: session.signal });
  await printDone(session, `Expected power shelf ${macOrId} deleted.`, { expected_power_shelf: macOrId });
}

export async function replaceAllExpected(
  session: Session,
  { file, yes }: { readonly file: string; readonly yes?: boolean },
): Promise<undefined> {
  const list = await parseExpectedFile(
    file === "-" ? await session.terminal.stdin.readAll() : file,
    file === "-" ? "text" : "path",
  );
  const dropped = yes ? 0 : await countMissing(session, list);
  if (dropped > 0) {
    await confirm(session, {
      what: `Drop ${dropped} expected power shelves that are not in the file?`,
      canAsk: file !== "-",
    });
  }
  const forge = await session.client(Forge);
  await forge.replaceAllExpectedPowerShelves(list, { signal: session.signal });
  const count = list.expectedPowerShelves.length;
  await printDone(session, `Expected power shelves replaced: there are ${count} now.`, { count });
}

/** How many entries on record the file leaves out. */
async function countMissing(session: Session, list: ExpectedPowerShelfList): Promise<number> {
  const bare = (mac: string) => mac.replace(/[:.-]/g, "").toLowerCase();
  const kept = new Set(list.expectedPowerShelves.map(({ bmcMacAddress }) => bare(bmcMacAddress)));
  const client = await session.client(PowerShelfService);
  const missing = await readPages(
    (pageToken) => client.listExpectedPowerShelves({ pageSize: 500, pageToken }, { signal: session.signal }),
    ({ expectedPowerShelves }) => expectedPowerShelves.filter(({ bmcMac }) => !kept.has(bare(bmcMac))),
  );
  return missing.length;
}

export async function deleteAllExpected(session: Session, { yes }: ConfirmOptions): Promise<undefined> {
  if (!yes) await confirm(session, { what: "Delete the whole expected inventory of power shelves?" });
  const forge = await session.client(Forge);
  await forge.deleteAllExpectedPowerShelves({}, { signal: session.signal });
  await printDone(session, "All expected power shelves deleted.", { deleted: "all" });
}

function applyFields(expected: ExpectedPowerShelf, fields: ExpectedFields): void {
  expected.bmcMacAddress = fields.bmcMacAddress ?? expected.bmcMacAddress;
  expected.bmcUsername = fields.bmcUsername ?? expected.bmcUsername;
  expected.shelfSerialNumber = fields.shelfSerialNumber ?? expected.shelfSerialNumber;
  expected.bmcIpAddress = fields.bmcIpAddress ?? expected.bmcIpAddress;
  if (fields.rackId !== undefined) expected.rackId = { $typeName: "common.RackId", id: fields.rackId };
  if (fields.retainCredentials !== undefined) expected.bmcRetainCredentials = fields.retainCredentials;
  if (fields.name === undefined && fields.description === undefined && fields.label === undefined) return;
  expected.metadata ??= create(MetadataSchema);
  expected.metadata.name = fields.name ?? expected.metadata.name;
  expected.metadata.description = fields.description ?? expected.metadata.description;
  if (fields.label !== undefined) expected.metadata.labels = fields.label.map(parseLabel);
}

function parseLabel(text: string) {
  const at = text.indexOf("=");
  if (at === 0 || text === "") throw new UsageError(`--label: ${JSON.stringify(text)} is not KEY or KEY=VALUE`);
  const label = { $typeName: "forge.Label" as const, key: at === -1 ? text : text.slice(0, at) };
  return at === -1 ? label : { ...label, value: text.slice(at + 1) };
}
