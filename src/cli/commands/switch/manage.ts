import { Forge } from "../../../../contract/forge/forge_pb.js";
import { DeletedFilter } from "../../../../contract/forge/shared_pb.js";
import { type Switch, SwitchSchema } from "../../../../contract/forge/switch_pb.js";
import { CliError, EXIT } from "../../client/errors.ts";
import { jsonOf } from "../../client/proto-json.ts";
import type { Session } from "../../client/session.ts";
import { type ConfirmOptions, confirm } from "../../terminal/confirm.ts";
import type { Column } from "../../terminal/output.ts";
import { printDone, printList, printOne } from "../../terminal/printing.ts";
import type { Tone } from "../../terminal/table.ts";

export interface ListSwitchesOptions {
  readonly rack?: string;
  readonly state?: string;
  readonly bmcMac?: string;
  readonly nvosMac?: string;
  readonly deleted: "exclude" | "only" | "include";
}

export interface ForceDeleteOptions extends ConfirmOptions {
  readonly deleteInterfaces?: boolean;
}

/** As many as one call takes. */
const AT_ONCE = 100;
const DELETED = { exclude: "EXCLUDE", only: "ONLY", include: "INCLUDE" } as const;

export async function listSwitches(session: Session, options: ListSwitchesOptions): Promise<undefined> {
  const forge = await session.client(Forge);
  const { ids } = await forge.findSwitchIds(
    {
      deleted: DeletedFilter[DELETED[options.deleted]],
      ...(options.rack !== undefined && { rackId: { id: options.rack } }),
      ...(options.state !== undefined && { controllerState: options.state.toLowerCase().replace(/[_-]/g, "") }),
      ...(options.bmcMac !== undefined && { bmcMac: options.bmcMac }),
      ...(options.nvosMac !== undefined && { nvosMac: options.nvosMac }),
    },
    { signal: session.signal },
  );
  const items: Switch[] = [];
  for (let from = 0; from < ids.length; from += AT_ONCE) {
    const page = await forge.findSwitchesByIds(
      { switchIds: ids.slice(from, from + AT_ONCE) },
      { signal: session.signal },
    );
    items.push(...page.switches);
  }
  await printList(session, { items: items.sort(byPlace), columns, json }, "No switches.");
}

/** One switch by id or name; without either, all of them. */
export async function showSwitch(session: Session, idOrName: string | undefined): Promise<undefined> {
  if (idOrName === undefined) return listSwitches(session, { deleted: "include" });
  const forge = await session.client(Forge);
  const isId = /^[a-z0-9][a-z0-9-]{0,62}$/.test(idOrName);
  const byId = isId ? await forge.findSwitches({ switchId: { id: idOrName } }, { signal: session.signal }) : undefined;
  const [found] = byId?.switches.length
    ? byId.switches
    : (await forge.findSwitches({ name: idOrName }, { signal: session.signal })).switches;
  if (!found)
    throw new CliError(
      EXIT.notFound,
      `switch ${idOrName} does not exist`,
      "`millwright switch list` lists those that do",
    );
  const { status, placementInRack: place, bmcInfo } = found;
  const fabric = status?.fabricManagerStatusDetails;
  await printOne(session, {
    item: found,
    columns,
    json,
    details: [
      ["Switch", idOf(found)],
      ["Name", found.metadata?.name ?? ""],
      ["Rack", found.rackId?.id ?? ""],
      ["Slot", place?.slotNumber === undefined ? "" : String(place.slotNumber)],
      ["Tray", place?.trayIndex === undefined ? "" : String(place.trayIndex)],
      ["Primary", found.isPrimary ? "yes" : "no"],
      ["State", stateOf(found), toneOf(found)],
      ["Why", status?.lifecycle?.stateReason?.outcomeMsg ?? causeOf(found)],
      ["Power", status?.powerState ?? ""],
      ["Health", status?.healthStatus ?? ""],
      [
        "Fabric",
        [status?.fabricManagerStatus, fabric?.additionInfo, fabric?.reason, fabric?.errorMessage]
          .filter(Boolean)
          .join(", "),
      ],
      ["BMC", [bmcInfo?.ip, bmcInfo?.mac, bmcInfo?.firmwareVersion].filter(Boolean).join(", ")],
    ],
  });
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

const json = (one: Switch) => jsonOf(SwitchSchema, one);
const idOf = ({ id }: Switch): string => id?.id ?? "";
const parsed = ({
  controllerState,
}: Switch): { readonly state?: string; readonly cause?: string; readonly [word: string]: unknown } => {
  try {
    return JSON.parse(controllerState);
  } catch {
    return {};
  }
};
const stateOf = (one: Switch): string => parsed(one).state ?? "";
const causeOf = (one: Switch): string => parsed(one).cause ?? "";

const TONES: { readonly [state: string]: Tone } = { ready: "good", error: "bad", deleting: "dim", created: "dim" };
const toneOf = (one: Switch): Tone => TONES[stateOf(one)] ?? "busy";

const byPlace = (a: Switch, b: Switch): number =>
  (a.rackId?.id ?? "").localeCompare(b.rackId?.id ?? "", "en", { numeric: true }) ||
  (a.placementInRack?.trayIndex ?? 0) - (b.placementInRack?.trayIndex ?? 0) ||
  (a.metadata?.name ?? "").localeCompare(b.metadata?.name ?? "", "en", { numeric: true });

const columns: readonly Column<Switch>[] = [
  { title: "ID", cell: idOf, short: { cell: (one) => `${idOf(one).slice(0, 12)}…`, least: 13 } },
  { title: "NAME", cell: ({ metadata }) => metadata?.name ?? "" },
  { title: "RACK", cell: ({ rackId }) => rackId?.id ?? "-" },
  { title: "SLOT", cell: ({ placementInRack }) => String(placementInRack?.slotNumber ?? "-"), minor: true },
  { title: "TRAY", cell: ({ placementInRack }) => String(placementInRack?.trayIndex ?? "-") },
  {
    title: "PRIMARY",
    cell: ({ isPrimary }) => (isPrimary ? "yes" : ""),
    plain: ({ isPrimary }) => String(isPrimary),
    minor: true,
  },
  { title: "STATE", cell: stateOf, tone: toneOf },
  { title: "POWER", cell: ({ status }) => status?.powerState ?? "" },
  { title: "HEALTH", cell: ({ status }) => status?.healthStatus ?? "" },
  { title: "FABRIC", cell: ({ status }) => status?.fabricManagerStatus ?? "-" },
  { title: "WHY", cell: (one) => one.status?.lifecycle?.stateReason?.outcomeMsg ?? causeOf(one) },
];
