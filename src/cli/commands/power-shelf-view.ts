import {
  type MaintenanceRequest,
  type PowerShelf,
  PowerShelfSchema,
  TlsTrustModeSchema,
} from "../../../contract/millwright/v1/power_shelf_pb.js";
import type { Column, Detail, OneThing, Section, Style } from "../output.ts";
import { enumWord, jsonOf } from "../proto-json.ts";
import { shorten, type Tone, tableOf } from "../table.ts";
import { age, clockTime, describeDuration, isoTime, toDate, toMilliseconds } from "../times.ts";

/** In lists, a reason is a glance; `show` has all of it. */
const SHORT_REASON = 80;

export const shelfJson = (shelf: PowerShelf) => jsonOf(PowerShelfSchema, shelf);

function toneOfState(shelf: PowerShelf): Tone | undefined {
  if (shelf.stuck || shelf.state === "error") return "bad";
  return shelf.state === "ready" ? "good" : "busy";
}

const TONE_OF_HEALTH: { readonly [word: string]: Tone } = { ok: "good", warning: "busy", critical: "bad" };
const TONE_OF_POWER: { readonly [word: string]: Tone } = {
  on: "good",
  off: "dim",
  powering_on: "busy",
  powering_off: "busy",
};

/** maintenance (power_off), error, … with marks for what an operator must notice. */
function stateText(shelf: PowerShelf): string {
  const operation = shelf.stateDetail?.operation;
  const marks = [
    ...(typeof operation === "string" ? [operation] : []),
    ...(shelf.stuck ? ["stuck"] : []),
    ...(shelf.deletedAt ? ["deleted"] : []),
  ];
  return marks.length === 0 ? shelf.state : `${shelf.state} (${marks.join(", ")})`;
}

/** What it waits for, or why it failed. */
export function reasonText(shelf: PowerShelf): string {
  const cause = shelf.stateDetail?.cause;
  return shelf.stateReason || (typeof cause === "string" ? cause : "");
}

export const shelfColumns: readonly Column<PowerShelf>[] = [
  { title: "ID", cell: (shelf) => shelf.id },
  { title: "NAME", cell: (shelf) => shelf.name },
  { title: "RACK", cell: (shelf) => shelf.rackId },
  { title: "STATE", cell: stateText, plain: (shelf) => shelf.state, tone: toneOfState },
  { title: "POWER", cell: (shelf) => shelf.powerState, tone: (shelf) => TONE_OF_POWER[shelf.powerState] },
  { title: "HEALTH", cell: (shelf) => shelf.healthStatus, tone: (shelf) => TONE_OF_HEALTH[shelf.healthStatus] },
  { title: "SINCE", cell: (shelf, now) => age(shelf.stateSince, now), plain: (shelf) => isoTime(shelf.stateSince) },
  { title: "REASON", cell: (shelf) => shorten(reasonText(shelf), SHORT_REASON), plain: reasonText },
];

/** For programs, what the table only marks has columns of its own. */
export const shelfCsvColumns: readonly Column<PowerShelf>[] = [
  ...shelfColumns,
  { title: "STUCK", cell: (shelf) => String(shelf.stuck) },
  { title: "DELETED", cell: (shelf) => isoTime(shelf.deletedAt) },
];

export const columnsFor = (style: Pick<Style, "format">): readonly Column<PowerShelf>[] =>
  style.format === "csv" ? shelfCsvColumns : shelfColumns;

const ago = (timestamp: PowerShelf["stateSince"], now: Date): string =>
  timestamp ? `${clockTime(timestamp)}, ${age(timestamp, now)} ago` : "";

function requestText(request: MaintenanceRequest | undefined, now: Date): string {
  if (!request) return "none";
  const asked = `${request.operation} by ${request.initiator} (asked ${ago(request.requestedAt, now)})`;
  const ended =
    request.outcome === "" ? "" : `: ${request.outcome}${request.endedAt ? `, ${age(request.endedAt, now)} ago` : ""}`;
  return `${asked}${ended}${request.message === "" ? "" : ` – ${request.message}`}`;
}

function slaText(shelf: PowerShelf, now: Date): string {
  if (!shelf.sla) return "none; shelves may stay in this state";
  const allowed = toMilliseconds(shelf.sla);
  const left = shelf.stateSince ? allowed - (now.getTime() - toDate(shelf.stateSince).getTime()) : allowed;
  return `${describeDuration(allowed)}, ${left < 0 ? `exceeded by ${describeDuration(-left)}` : `${describeDuration(left)} left`}`;
}

function bmcText({ bmc }: PowerShelf): string {
  if (!bmc) return "";
  const trust = enumWord(TlsTrustModeSchema, bmc.tlsTrust);
  return [
    bmc.port === 0 ? bmc.address : `${bmc.address}:${bmc.port}`,
    bmc.mac,
    bmc.firmwareVersion === "" ? "" : `firmware ${bmc.firmwareVersion}`,
    trust === "unspecified" ? "" : `TLS ${trust}`,
    bmc.certificateFingerprint === "" ? "" : `certificate ${bmc.certificateFingerprint}`,
  ]
    .filter((part) => part !== "")
    .join(", ");
}

const claimText = (
  claim: { holderKind: string; holderId: string; since?: PowerShelf["stateSince"] },
  now: Date,
): string => `${claim.holderKind} ${claim.holderId}${claim.since ? ` for ${age(claim.since, now)}` : ""}`;

function checkText({ nextCheckAt }: PowerShelf, now: Date): string {
  if (!nextCheckAt) return "due";
  const left = toDate(nextCheckAt).getTime() - now.getTime();
  return left <= 0 ? "due" : `in ${describeDuration(left)}`;
}

function shelfDetails(shelf: PowerShelf, now: Date): Detail[] {
  return [
    ["Power shelf", shelf.id, "bold"],
    ["Name", shelf.name],
    ["Description", shelf.description],
    ["Rack", shelf.rackId || "none"],
    ["State", stateText(shelf), toneOfState(shelf)],
    ["Since", ago(shelf.stateSince, now)],
    ["Reason", reasonText(shelf) || "none given"],
    ["SLA", slaText(shelf, now), shelf.stuck ? "bad" : undefined],
    ["Failures", shelf.failures === 0 ? "" : `${shelf.failures} in a row in this state`, "bad"],
    ["Next check", checkText(shelf, now)],
    ["Pending request", requestText(shelf.pendingRequest, now), shelf.pendingRequest ? "busy" : undefined],
    ["Last request", requestText(shelf.lastRequest, now), shelf.lastRequest?.outcome === "failed" ? "bad" : undefined],
    [
      "Power",
      `${shelf.powerState || "unknown"} (${shelf.powerStateObservedAt ? `seen ${ago(shelf.powerStateObservedAt, now)}` : "never seen"})`,
      TONE_OF_POWER[shelf.powerState],
    ],
    ["Health", shelf.healthStatus, TONE_OF_HEALTH[shelf.healthStatus]],
    ["BMC", bmcText(shelf)],
    [
      "Hardware",
      [shelf.vendor, shelf.model, shelf.serial === "" ? "" : `serial ${shelf.serial}`]
        .filter((part) => part !== "")
        .join(" "),
    ],
    ["Capacity", shelf.capacityWatts === undefined ? "" : `${shelf.capacityWatts} W`],
    ["Voltage", shelf.voltage === undefined ? "" : `${shelf.voltage} V`],
    [
      "Labels",
      Object.entries(shelf.labels)
        .map(([key, value]) => (value === "" ? key : `${key}=${value}`))
        .join(", "),
    ],
    ["Claimed by", shelf.claim ? claimText(shelf.claim, now) : "nobody"],
    ["Waiting", shelf.waitingClaims.map((claim) => claimText(claim, now)).join("; ")],
    ["Created", ago(shelf.createdAt, now)],
    ["Deleted", shelf.deletedAt ? `marked ${ago(shelf.deletedAt, now)}` : "", "bad"],
  ];
}

export function shelfThing(shelf: PowerShelf, style: Style): OneThing<PowerShelf> {
  const plain = (...texts: string[]) => texts.map((text) => ({ text, tone: undefined }));
  const sections: Section[] = [];
  if (shelf.powerSupplies.length > 0) {
    const rows = shelf.powerSupplies.map((supply) => [
      ...plain(supply.name, supply.on === undefined ? "" : supply.on ? "on" : "off"),
      { text: supply.health, tone: TONE_OF_HEALTH[supply.health] },
      ...plain(supply.serial, supply.firmwareVersion),
    ]);
    sections.push({
      title: "Power supplies",
      body: tableOf(["NAME", "POWER", "HEALTH", "SERIAL", "FIRMWARE"], rows, style),
    });
  }
  if (shelf.sensors.length > 0) {
    const rows = shelf.sensors.map((sensor) => plain(sensor.name, `${sensor.value} ${sensor.unit}`.trim()));
    sections.push({ title: "Sensors", body: tableOf(["NAME", "VALUE"], rows, style) });
  }
  return { item: shelf, columns: shelfCsvColumns, json: shelfJson, details: shelfDetails(shelf, style.now), sections };
}
