import { Forge } from "../../../../contract/forge/forge_pb.js";
import {
  type FirmwareComponent,
  type RackFirmware,
  RackFirmwareSchema,
  RackFirmwareService,
} from "../../../../contract/millwright/v1/rack_firmware_pb.js";
import { readTextFile } from "../../client/discover-server.ts";
import { UsageError } from "../../client/errors.ts";
import { jsonOf } from "../../client/proto-json.ts";
import type { Session } from "../../client/session.ts";
import { type ConfirmOptions, confirm } from "../../terminal/confirm.ts";
import type { Column } from "../../terminal/output.ts";
import { printDone, printList, printOne } from "../../terminal/printing.ts";
import { tableOf } from "../../terminal/table.ts";
import { clockTime, isoTime } from "../../terminal/times.ts";

export interface CreateOptions {
  readonly token?: string;
  readonly artifactTokenFile?: string;
}

export interface ListFirmwareOptions {
  readonly onlyAvailable?: boolean;
}

/** What the contract takes where the files need no token. */
const NO_TOKEN = "NOAUTH";

const columns: readonly Column<RackFirmware>[] = [
  { title: "ID", cell: ({ id }) => id },
  { title: "HARDWARE TYPE", cell: ({ hardwareType }) => hardwareType },
  { title: "DEFAULT", cell: ({ isDefault }) => (isDefault ? "*" : ""), plain: ({ isDefault }) => String(isDefault) },
  { title: "STATE", cell: ({ state }) => state, tone: ({ state }) => toneOf(state) },
  { title: "CREATED", cell: (row) => clockTime(row.createdAt), plain: (row) => isoTime(row.createdAt) },
  { title: "UPDATED", cell: (row) => clockTime(row.updatedAt), plain: (row) => isoTime(row.updatedAt), minor: true },
  { title: "REASON", cell: ({ reason }) => reason },
];

const toneOf = (state: string) => (state === "failed" ? "bad" : state === "available" ? "good" : undefined);

const componentColumns: readonly Column<FirmwareComponent>[] = [
  { title: "DEVICE", cell: ({ device }) => device },
  { title: "COMPONENT", cell: ({ component }) => component },
  { title: "CLASS", cell: (component) => component.class },
  { title: "VERSION", cell: ({ version }) => version },
  { title: "BYTES", cell: ({ bytes }) => (bytes === 0n ? "" : String(bytes)) },
  { title: "ACTIVATION", cell: ({ activation }) => activation },
  { title: "FILE", cell: ({ url }) => url },
];

export async function createFirmware(
  session: Session,
  hardwareType: string,
  file: string,
  options: CreateOptions,
): Promise<undefined> {
  const configJson = await readInput(session, file, "file");
  const token = await readToken(session, options);
  const forge = await session.client(Forge);
  const { id, isDefault } = await forge.createRackFirmware(
    { configJson, artifactoryToken: token, rackHardwareType: { value: hardwareType } },
    { signal: session.signal },
  );
  const role = isDefault ? ` It is the default of ${hardwareType}.` : "";
  await printDone(session, `Rack firmware ${id} created; its files are being downloaded.${role}`, { id });
}

async function readToken(session: Session, { token, artifactTokenFile }: CreateOptions): Promise<string> {
  if (token !== undefined && artifactTokenFile !== undefined)
    throw new UsageError("give the token as an argument or in --artifact-token-file, not both");
  if (artifactTokenFile === undefined) return token ?? NO_TOKEN;
  return (await readInput(session, artifactTokenFile, "--artifact-token-file")).trim();
}

async function readInput(session: Session, file: string, name: string): Promise<string> {
  const text = file === "-" ? await session.terminal.stdin.readAll() : readTextFile(file);
  if (text === undefined) throw new UsageError(`${name}: ${file} does not exist`);
  return text;
}

export async function listFirmware(
  session: Session,
  hardwareType: string | undefined,
  { onlyAvailable = false }: ListFirmwareOptions,
): Promise<undefined> {
  const client = await session.client(RackFirmwareService);
  const { rackFirmware: items } = await client.listRackFirmware(
    { hardwareType: hardwareType ?? "", onlyAvailable },
    { signal: session.signal },
  );
  await printList(session, { items, columns, json: (each) => jsonOf(RackFirmwareSchema, each) }, "No rack firmware.");
}

export async function getFirmware(session: Session, id: string): Promise<undefined> {
  const client = await session.client(RackFirmwareService);
  const { rackFirmware: firmware } = await client.getRackFirmware({ id }, { signal: session.signal });
  if (!firmware) throw new Error("the server answered without the record");
  const style = session.style();
  const rows = firmware.components.map((each) =>
    componentColumns.map(({ cell }) => ({ text: cell(each, style.now), tone: undefined })),
  );
  await printOne(session, {
    item: firmware,
    columns,
    json: (each) => jsonOf(RackFirmwareSchema, each),
    details: [
      ["Rack firmware", firmware.id, "bold"],
      ["Hardware type", firmware.hardwareType],
      ["Default", firmware.isDefault ? "yes" : "no"],
      ["State", firmware.state, toneOf(firmware.state)],
      ["Reason", firmware.reason],
      ["Created", clockTime(firmware.createdAt)],
      ["Updated", clockTime(firmware.updatedAt)],
    ],
    sections: [{ title: "Components", body: tableOf(componentColumns, rows, style) }],
  });
}

export async function setDefaultFirmware(session: Session, id: string): Promise<undefined> {
  const forge = await session.client(Forge);
  await forge.rackFirmwareSetDefault({ firmwareId: id }, { signal: session.signal });
  await printDone(session, `Rack firmware ${id} is the default of its hardware type.`, { id });
}

export async function downloadFirmware(session: Session, id: string): Promise<undefined> {
  const client = await session.client(RackFirmwareService);
  await client.downloadRackFirmware({ id }, { signal: session.signal });
  await printDone(session, `The files of rack firmware ${id} are being downloaded.`, { id });
}

export async function deleteFirmware(session: Session, id: string, { yes }: ConfirmOptions): Promise<undefined> {
  if (!yes) await confirm(session, { what: `Delete rack firmware ${id}?` });
  const forge = await session.client(Forge);
  await forge.deleteRackFirmware({ id }, { signal: session.signal });
  await printDone(session, `Rack firmware ${id} deleted.`, { id });
}
