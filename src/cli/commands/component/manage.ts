import { SystemPowerControl } from "../../../../contract/common/common_pb.js";
import {
  ComponentManagerStatusCode,
  type ComponentResult,
  ComponentResultSchema,
  ComputeTrayComponent,
  type DeviceFirmwareVersions,
  DeviceFirmwareVersionsSchema,
  FirmwareUpdateState,
  type FirmwareUpdateStatus,
  FirmwareUpdateStatusSchema,
  NvSwitchComponent,
  PowerShelfComponent,
} from "../../../../contract/forge/component_pb.js";
import { Forge } from "../../../../contract/forge/forge_pb.js";
import { UsageError } from "../../client/errors.ts";
import { jsonOf } from "../../client/proto-json.ts";
import type { Session } from "../../client/session.ts";
import { type ConfirmOptions, confirm } from "../../terminal/confirm.ts";
import type { Column } from "../../terminal/output.ts";
import { printList } from "../../terminal/printing.ts";
import { clockTime, isoTime } from "../../terminal/times.ts";

export interface TargetOptions {
  readonly computeTrays?: readonly string[];
  readonly switches?: readonly string[];
  readonly powerShelves?: readonly string[];
  readonly racks?: readonly string[];
}

export interface UpdateOptions extends TargetOptions {
  readonly targetVersion?: string;
  readonly components?: readonly string[];
}

/** Separated by commas, by spaces, or both. */
const listOf = (words: readonly string[] | undefined): string[] =>
  (words ?? []).flatMap((word) => word.split(",")).filter((word) => word !== "");

type Kind = keyof TargetOptions;
const FLAGS: Readonly<Record<Kind, string>> = {
  computeTrays: "--compute-trays",
  switches: "--switches",
  powerShelves: "--power-shelves",
  racks: "--racks",
};

interface Named {
  readonly kind: Kind;
  readonly ids: readonly { readonly id: string }[];
}

/** The same with the ids of switches and power shelves that are called by their names. */
async function resolved(session: Session, { kind, ids }: Named): Promise<Named> {
  const words = ids.map(({ id }) => id);
  const known =
    kind === "switches"
      ? await (await import("../switch/names.ts")).resolveSwitches(session, words)
      : kind === "powerShelves"
        ? await (await import("../power-shelf/names.ts")).resolveShelves(session, words)
        : words;
  return { kind, ids: known.map((id) => ({ id })) };
}

/** The one kind that was named. */
function namedOf(options: TargetOptions): Named {
  const kinds = (Object.keys(FLAGS) as Kind[]).filter((kind) => options[kind] !== undefined);
  const [kind] = kinds;
  if (kind === undefined || kinds.length > 1) throw new UsageError(`give one of ${Object.values(FLAGS).join(", ")}`);
  const ids = listOf(options[kind]);
  if (ids.length === 0) throw new UsageError(`${FLAGS[kind]}: at least one id is required`);
  return { kind, ids: ids.map((id) => ({ id })) };
}

async function targetOf(session: Session, options: TargetOptions) {
  const { kind, ids } = await resolved(session, namedOf(options));
  switch (kind) {
    case "computeTrays":
      return { case: "machineIds" as const, value: { machineIds: [...ids] } };
    case "switches":
      return { case: "switchIds" as const, value: { ids: [...ids] } };
    case "powerShelves":
      return { case: "powerShelfIds" as const, value: { ids: [...ids] } };
    case "racks":
      return { case: "rackIds" as const, value: { rackIds: [...ids] } };
  }
}

/** The number of a component by its word, such as bmc or cpld-mb. */
function numbersOf<E extends number>(
  words: readonly string[],
  members: Readonly<Record<string, string | number>>,
): E[] {
  return words.map((word) => {
    const number = members[word.toUpperCase().replaceAll("-", "_")];
    if (typeof number === "number" && number !== 0) return number as E;
    const known = Object.keys(members).filter((name) => /^[A-Z]/.test(name) && members[name] !== 0);
    throw new UsageError(`--components: ${word} is none of ${known.map((name) => name.toLowerCase()).join(", ")}`);
  });
}

async function updateTargetOf(session: Session, options: UpdateOptions) {
  const { kind, ids } = await resolved(session, namedOf(options));
  const words = listOf(options.components);
  switch (kind) {
    case "computeTrays": {
      const components = numbersOf<ComputeTrayComponent>(words, ComputeTrayComponent);
      return { case: "computeTrays" as const, value: { machineIds: { machineIds: [...ids] }, components } };
    }
    case "switches": {
      const components = numbersOf<NvSwitchComponent>(words, NvSwitchComponent);
      return { case: "switches" as const, value: { switchIds: { ids: [...ids] }, components } };
    }
    case "powerShelves": {
      const components = numbersOf<PowerShelfComponent>(words, PowerShelfComponent);
      return { case: "powerShelves" as const, value: { powerShelfIds: { ids: [...ids] }, components } };
    }
    case "racks":
      if (words.length > 0) throw new UsageError("--components: not with --racks, whose devices differ");
      return { case: "racks" as const, value: { rackIds: { rackIds: [...ids] } } };
  }
}

const isFine = (result: ComponentResult | undefined): boolean => result?.status === ComponentManagerStatusCode.SUCCESS;
const statusWord = (result: ComponentResult | undefined): string =>
  (ComponentManagerStatusCode[result?.status ?? 0] ?? "unknown").toLowerCase();

const resultColumns: readonly Column<ComponentResult>[] = [
  { title: "COMPONENT", cell: ({ componentId }) => componentId },
  { title: "STATUS", cell: statusWord, tone: (result) => (isFine(result) ? "good" : "bad") },
  { title: "ERROR", cell: ({ error }) => error },
];

/** 1 when any device was refused: scripts go by it. */
async function printResults(session: Session, items: readonly ComponentResult[]): Promise<number | undefined> {
  await printList(
    session,
    { items, columns: resultColumns, json: (each) => jsonOf(ComponentResultSchema, each) },
    "No devices.",
  );
  return items.every(isFine) ? undefined : 1;
}

export async function updateFirmware(session: Session, options: UpdateOptions): Promise<number | undefined> {
  const target = await updateTargetOf(session, options);
  const forge = await session.client(Forge);
  const request = { target, targetVersion: options.targetVersion ?? "" };
  const { results } = await forge.updateComponentFirmware(request, { signal: session.signal });
  return printResults(session, results);
}

const stateWord = (state: FirmwareUpdateState): string =>
  (FirmwareUpdateState[state] ?? "").replace(/^FW_STATE_/, "").toLowerCase();

const statusColumns: readonly Column<FirmwareUpdateStatus>[] = [
  { title: "COMPONENT", cell: ({ result }) => result?.componentId ?? "" },
  { title: "STATE", cell: ({ state }) => stateWord(state) },
  { title: "TARGET VERSION", cell: ({ targetVersion }) => targetVersion },
  { title: "UPDATED", cell: (row) => clockTime(row.updatedAt), plain: (row) => isoTime(row.updatedAt) },
  { title: "ERROR", cell: ({ result }) => result?.error ?? "" },
];

export async function showStatus(session: Session, options: TargetOptions): Promise<number | undefined> {
  const forge = await session.client(Forge);
  const { statuses: items } = await forge.getComponentFirmwareStatus(
    { target: await targetOf(session, options) },
    { signal: session.signal },
  );
  await printList(
    session,
    { items, columns: statusColumns, json: (each) => jsonOf(FirmwareUpdateStatusSchema, each) },
    "No devices.",
  );
  return items.every(({ result }) => isFine(result)) ? undefined : 1;
}

const versionColumns: readonly Column<DeviceFirmwareVersions>[] = [
  { title: "COMPONENT", cell: ({ result }) => result?.componentId ?? "" },
  { title: "VERSIONS", cell: ({ versions }) => versions.join(" ") },
  { title: "ERROR", cell: ({ result }) => result?.error ?? "" },
];

export async function listVersions(session: Session, options: TargetOptions): Promise<number | undefined> {
  const forge = await session.client(Forge);
  const { devices: items } = await forge.listComponentFirmwareVersions(
    { target: await targetOf(session, options) },
    { signal: session.signal },
  );
  await printList(
    session,
    { items, columns: versionColumns, json: (each) => jsonOf(DeviceFirmwareVersionsSchema, each) },
    "No devices.",
  );
  return items.every(({ result }) => isFine(result)) ? undefined : 1;
}

export async function controlPower(
  session: Session,
  { action, yes, ...options }: TargetOptions & ConfirmOptions & { readonly action: string },
): Promise<number | undefined> {
  const target = await targetOf(session, options);
  if (target.case === "rackIds")
    throw new UsageError("--racks: use rack maintenance start --activities power-sequence");
  const { ids } = namedOf(options);
  if (action !== "on" && !yes)
    await confirm(session, {
      what: `${action} of ${ids.map(({ id }) => id).join(", ")}: what runs there stops. Go on?`,
    });
  const number = SystemPowerControl[action.toUpperCase().replaceAll("-", "_") as keyof typeof SystemPowerControl];
  const forge = await session.client(Forge);
  const { results } = await forge.componentPowerControl({ target, action: number }, { signal: session.signal });
  return printResults(session, results);
}
