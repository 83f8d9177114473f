import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  type Claim,
  type MaintenanceRequest,
  MaintenanceRequestSchema,
  type PowerShelf,
  PowerShelfSchema,
  TlsTrustModeSchema,
} from "../../../../contract/millwright/v1/power_shelf_pb.js";
import { enumWord, jsonOf } from "../../client/proto-json.ts";
import type { Column, Detail, OneThing, Section, Style } from "../../terminal/output.ts";
import { type Tone, tableOf } from "../../terminal/table.ts";
import { age, clockTime, describeDuration, isoTime, toDate, toMilliseconds } from "../../terminal/times.ts";

export const shelfJson = (shelf: PowerShelf) => jsonOf(PowerShelfSchema, shelf);

function toneOfState(shelf: PowerShelf): Tone | undefined {
  if (shelf.stuck || shelf.failing || shelf.state === "error") return "bad";
  return shelf.state === "ready" ? "good" : "busy";
}

const TONE_OF_HEALTH: { readonly [word: string]: Tone } = { ok: "good", warning: "busy", critical: "bad" };
const TONE_OF_POWER: { readonly [word: string]: Tone } = {
  on: "good",
  off: "dim",
  powering_on: "busy",
  powering_off: "busy",
};

const CONDITIONS: { readonly [word: string]: string } = {
  waiting: "waiting",
  failing: "failing",
  needs_intervention: "needs intervention",
};

/** maintenance (power_off), ready (failing), … with marks for what an operator must notice. */
function stateText(shelf: PowerShelf): string {
  const operation = shelf.stateDetail?.operation;
  const failing = shelf.failing ? [CONDITIONS[shelf.condition] ?? "failing"] : [];
  const marks = [
    ...(typeof operation === "string" ? [operation] : []),
    ...failing,
    ...(shelf.stuck && !shelf.failing && shelf.state !== "error" ? ["stuck"] : []),
    ...(shelf.deletedAt ? ["deleted"] : []),
  ];
  return marks.length === 0 ? shelf.state : `${shelf.state} (${marks.join(", ")})`;
}

/** What it waits for, or why it failed. */
export function reasonText(shelf: PowerShelf): string {
  const cause = shelf.stateDetail?.cause;
  return shelf.stateReason || (typeof cause === "string" ? cause : "");
}

/** What was read before the passes began to fail may no longer be so. */
const powerText = ({ powerState, failing }: PowerShelf): string =>
  failing && powerState !== "" && powerState !== "unknown" ? `${powerState}?` : powerState;
const healthText = ({ health, failing }: PowerShelf): string =>
  failing && health !== "" && health !== "unknown" ? `unknown (was ${health})` : health;
const toneOfPower = ({ powerState, failing }: PowerShelf): Tone | undefined =>
  failing ? "busy" : TONE_OF_POWER[powerState];
const toneOfHealth = ({ health, failing }: PowerShelf): Tone | undefined => (failing ? "busy" : TONE_OF_HEALTH[health]);

const shelfColumns: readonly Column<PowerShelf>[] = [
  { title: "ID", cell: (shelf) => shelf.id },
  { title: "NAME", cell: (shelf) => shelf.name },
  { title: "RACK", cell: (shelf) => shelf.rackId },
  { title: "STATE", cell: stateText, plain: (shelf) => shelf.state, tone: toneOfState },
  { title: "POWER", cell: powerText, plain: (shelf) => shelf.powerState, tone: toneOfPower },
  { title: "HEALTH", cell: healthText, plain: (shelf) => shelf.health, tone: toneOfHealth },
  { title: "SINCE", cell: (shelf, now) => age(shelf.stateSince, now), plain: (shelf) => isoTime(shelf.stateSince) },
  { title: "REASON", cell: reasonText },
];

/** For programs, what the table only marks has columns of its own. */
const shelfCsvColumns: readonly Column<PowerShelf>[] = [
  ...shelfColumns,
  { title: "STUCK", cell: (shelf) => String(shelf.stuck) },
  { title: "CONDITION", cell: (shelf) => shelf.condition },
  { title: "FAILING SINCE", cell: (shelf) => isoTime(shelf.failingSince) },
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

/** A shelf in maintenance holds its own claim. */
function claimText({ id }: PowerShelf, { holderKind, holderId, since }: Claim, now: Date): string {
  const holder = holderKind === "power_shelf" && holderId === id ? "its own maintenance" : `${holderKind} ${holderId}`;
  return `${holder}${since ? ` for ${age(since, now)}` : ""}`;
}

function checkText({ nextCheckAt }: PowerShelf, now: Date): string {
  if (!nextCheckAt) return "none planned; only when something changes or is asked for";
  const left = toDate(nextCheckAt).getTime() - now.getTime();
  return left <= 0 ? "due" : `in ${describeDuration(left)}`;
}

function conditionText({ condition, failingSince }: PowerShelf, now: Date): string {
  const word = CONDITIONS[condition] ?? condition;
  return failingSince && word !== "" ? `${word} for ${age(failingSince, now)}` : word;
}

/** The request that is being carried out: the state carries it, also when a newer one took its place in line. */
function runningRequest({ stateDetail }: PowerShelf): MaintenanceRequest | undefined {
  const carried = stateDetail?.request;
  if (typeof carried !== "object" || carried === null || Array.isArray(carried)) return undefined;
  const text = (name: string) => (typeof carried[name] === "string" ? carried[name] : "");
  const asked = Date.parse(text("requested_at"));
  return create(MaintenanceRequestSchema, {
    id: text("id"),
    operation: text("operation"),
    initiator: text("initiator"),
    ...(Number.isFinite(asked) && { requestedAt: timestampFromMs(asked) }),
  });
}

/** The shelf needs attention, its last pass failed, or it waits for the holder of a claim. */
const needsExplaining = ({ stuck, failing, claim, id, waitingClaims }: PowerShelf): boolean =>
  stuck || failing || (waitingClaims.some(({ holderId }) => holderId === id) && claim?.holderId !== id);

function shelfDetails(shelf: PowerShelf, now: Date): Detail[] {
  const running = runningRequest(shelf);
  const pending = shelf.pendingRequest?.id === running?.id ? undefined : shelf.pendingRequest;
  return [
    ["Power shelf", shelf.id, "bold"],
    ["Name", shelf.name],
    ["Description", shelf.description],
    ["Rack", shelf.rackId || "none"],
    ["State", stateText(shelf), toneOfState(shelf)],
    ["Since", ago(shelf.stateSince, now)],
    ["Condition", conditionText(shelf, now), shelf.failing ? "bad" : "busy"],
    ["Reason", reasonText(shelf) || "none given"],
    ["SLA", slaText(shelf, now), shelf.stuck ? "bad" : undefined],
    ["Failures", shelf.failures === 0 ? "" : `${shelf.failures} in a row in this state`, "bad"],
    ["Next check", checkText(shelf, now)],
    ["Running request", running ? requestText(running, now) : "", "busy"],
    ["Pending request", requestText(pending, now), pending ? "busy" : undefined],
    ["Last request", requestText(shelf.lastRequest, now), shelf.lastRequest?.outcome === "failed" ? "bad" : undefined],
    [
      "Power",
      `${powerText(shelf) || "unknown"} (${shelf.powerStateObservedAt ? `seen ${ago(shelf.powerStateObservedAt, now)}` : "never seen"})`,
      toneOfPower(shelf),
    ],
    ["Health", healthText(shelf), toneOfHealth(shelf)],
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
    ["Claimed by", shelf.claim ? claimText(shelf, shelf.claim, now) : "nobody"],
    ["Claims waiting", shelf.waitingClaims.map((claim) => claimText(shelf, claim, now)).join("; ")],
    ["Created", ago(shelf.createdAt, now)],
    ["Explained by", needsExplaining(shelf) ? `millwright explain power-shelf ${shelf.id}` : ""],
    ["Deleted", shelf.deletedAt ? `marked ${ago(shelf.deletedAt, now)}` : "", "bad"],
  ];
}

function healthSection(shelf: PowerShelf, style: Style): Section {
  const rows = shelf.healthSources.map(({ source, mode, counts, observedAt, alerts }) => {
    const said = alerts.map(({ id, target, message }) => `${id}${target === "" ? "" : `[${target}]`}: ${message}`);
    return [
      { text: source, tone: undefined },
      { text: counts ? mode : `${mode}, replaced`, tone: counts ? undefined : ("dim" as const) },
      { text: clockTime(observedAt), tone: undefined },
      { text: said.join("; ") || "no alerts", tone: said.length > 0 && counts ? ("bad" as const) : undefined },
    ];
  });
  return { title: "Health reports", body: tableOf(["SOURCE", "MODE", "OBSERVED", "ALERTS"], rows, style) };
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
  // A BMC that says that all is well has said so above.
  if (shelf.healthSources.length > 1 || shelf.healthSources.some(({ alerts }) => alerts.length > 0))
    sections.push(healthSection(shelf, style));
  return { item: shelf, columns: shelfCsvColumns, json: shelfJson, details: shelfDetails(shelf, style.now), sections };
}
