import { TlsTrustModeSchema } from "../../../../contract/millwright/v1/power_shelf_pb.js";
import { type Switch, SwitchSchema } from "../../../../contract/millwright/v1/switch_pb.js";
import { enumWord, jsonOf } from "../../client/proto-json.ts";
import type { Column, Detail, OneThing, Section, Style } from "../../terminal/output.ts";
import { type Tone, tableOf } from "../../terminal/table.ts";
import { age, clockTime, describeDuration, isoTime, toDate, toMilliseconds } from "../../terminal/times.ts";

export const switchJson = (one: Switch) => jsonOf(SwitchSchema, one);

function toneOf({ stuck, failing, state }: Switch): Tone {
  if (stuck || failing || state === "error") return "bad";
  return state === "ready" ? "good" : state === "created" || state === "deleting" ? "dim" : "busy";
}

const detailText = (one: Switch, name: string): string => {
  const value = one.stateDetail?.[name];
  return typeof value === "string" ? value : "";
};

/** ready (failing), error (deleted), … with marks for what an operator must notice. */
function stateText(one: Switch): string {
  const marks = [
    ...(one.failing ? [one.condition === "needs_intervention" ? "needs intervention" : "failing"] : []),
    ...(one.stuck && !one.failing && one.state !== "error" ? ["stuck"] : []),
    ...(one.deletedAt ? ["deleted"] : []),
  ];
  return marks.length === 0 ? one.state : `${one.state} (${marks.join(", ")})`;
}

/** What it waits for, or why it failed. */
const whyOf = (one: Switch): string => one.stateReason || detailText(one, "cause");

/** What was read before the passes began to fail may no longer be so. */
const perhaps = (word: string, { failing }: Switch): string =>
  failing && word !== "" && word !== "unknown" ? `${word}?` : word;
const fabricWord = ({ fabric }: Switch): string => fabric?.state ?? "-";
const TONE_OF_HEALTH: { readonly [word: string]: Tone } = { ok: "good", warning: "busy", critical: "bad" };

const switchColumns: readonly Column<Switch>[] = [
  {
    title: "ID",
    cell: ({ id }) => id,
    short: { cell: ({ id }) => (id.length > 20 ? `${id.slice(0, 12)}…` : id), least: 13 },
  },
  { title: "NAME", cell: ({ name }) => name },
  { title: "RACK", cell: ({ rackId }) => rackId || "-" },
  { title: "SLOT", cell: ({ slotNumber }) => String(slotNumber ?? "-"), minor: true },
  { title: "TRAY", cell: ({ trayIndex }) => String(trayIndex ?? "-") },
  {
    title: "PRIMARY",
    cell: ({ primary }) => (primary ? "yes" : ""),
    plain: ({ primary }) => String(primary),
    minor: true,
  },
  { title: "STATE", cell: stateText, plain: ({ state }) => state, tone: toneOf },
  {
    title: "SINCE",
    cell: ({ stateSince }, now) => age(stateSince, now),
    plain: ({ stateSince }) => isoTime(stateSince),
  },
  { title: "POWER", cell: (one) => perhaps(one.powerState, one), plain: ({ powerState }) => powerState },
  {
    title: "HEALTH",
    cell: (one) => perhaps(one.health, one),
    plain: ({ health }) => health,
    tone: (one) => (one.failing ? "busy" : TONE_OF_HEALTH[one.health]),
  },
  { title: "FABRIC", cell: fabricWord },
  { title: "WHY", cell: whyOf },
];

/** For programs, what the table only marks has columns of its own. */
const csvColumns: readonly Column<Switch>[] = [
  ...switchColumns,
  { title: "STUCK", cell: ({ stuck }) => String(stuck) },
  { title: "CONDITION", cell: ({ condition }) => condition },
  { title: "FAILING SINCE", cell: ({ failingSince }) => isoTime(failingSince) },
  { title: "DELETED", cell: ({ deletedAt }) => isoTime(deletedAt) },
];

export const columnsFor = (style: Pick<Style, "format">): readonly Column<Switch>[] =>
  style.format === "csv" ? csvColumns : switchColumns;

const ago = (timestamp: Switch["stateSince"], now: Date): string =>
  timestamp ? `${clockTime(timestamp)}, ${age(timestamp, now)} ago` : "";
const joined = (...parts: readonly (string | undefined)[]): string => parts.filter(Boolean).join(", ");
const after = (word: string, text: string | undefined): string => (text ? `${word} ${text}` : "");

function slaText({ sla, stateSince }: Switch, now: Date): string {
  if (!sla) return "";
  const allowed = toMilliseconds(sla);
  const left = stateSince ? allowed - (now.getTime() - toDate(stateSince).getTime()) : allowed;
  return `${describeDuration(allowed)}, ${left < 0 ? `exceeded by ${describeDuration(-left)}` : `${describeDuration(left)} left`}`;
}

function checkText({ nextCheckAt }: Switch, now: Date): string {
  if (!nextCheckAt) return "none planned; only when something changes or is asked for";
  const left = toDate(nextCheckAt).getTime() - now.getTime();
  return left <= 0 ? "due" : `in ${describeDuration(left)}`;
}

function switchDetails(one: Switch, now: Date): Detail[] {
  const { bmc, os, fabric, claim } = one;
  return [
    ["Switch", one.id, "bold"],
    ["Name", one.name],
    ["Description", one.description],
    ["Place", joined(one.rackId, after("slot", one.slotNumber?.toString()), after("tray", one.trayIndex?.toString()))],
    ["Primary", one.primary ? "yes: the fabric of the rack is configured on it" : "no"],
    ["State", stateText(one), toneOf(one)],
    ["Since", ago(one.stateSince, now)],
    ["Why", whyOf(one) || "none given"],
    [
      "Waits for",
      joined(detailText(one, "step"), after("rack", detailText(one, "rack")), detailText(one, "run")),
      "busy",
    ],
    ["SLA", slaText(one, now), one.stuck ? "bad" : undefined],
    ["Failures", one.failures === 0 ? "" : `${one.failures} in a row in this state`, "bad"],
    ["Next check", checkText(one, now)],
    ["Power", `${perhaps(one.powerState, one) || "unknown"}${after(", seen", ago(one.powerStateObservedAt, now))}`],
    ["Health", perhaps(one.health, one), one.failing ? "busy" : TONE_OF_HEALTH[one.health]],
    [
      "Fabric",
      fabric
        ? joined(
            fabric.state,
            fabric.additionInfo,
            fabric.reason,
            fabric.error,
            after("read", ago(fabric.observedAt, now)),
          )
        : "never asked",
    ],
    [
      "BMC",
      bmc
        ? joined(
            bmc.port === 0 ? bmc.address : `${bmc.address}:${bmc.port}`,
            bmc.mac,
            after("TLS", enumWord(TlsTrustModeSchema, bmc.tlsTrust)),
            after("certificate", bmc.certificateFingerprint),
          )
        : "",
    ],
    [
      "NVOS",
      os ? joined(os.address || "address unknown", ...os.macs, after("certificate", os.certificateFingerprint)) : "",
    ],
    ["Hardware", joined(one.vendor, one.model, after("serial", one.serial))],
    [
      "Firmware",
      Object.entries(one.firmware)
        .map(([part, version]) => `${part} ${version}`)
        .sort()
        .join(", "),
    ],
    [
      "Labels",
      Object.entries(one.labels)
        .map(([key, value]) => (value === "" ? key : `${key}=${value}`))
        .join(", "),
    ],
    ["Claimed by", claim ? `${claim.holderKind} ${claim.holderId}${after(" for", age(claim.since, now))}` : "nobody"],
    ["Claims waiting", one.waitingClaims.map(({ holderKind, holderId }) => `${holderKind} ${holderId}`).join("; ")],
    ["Created", ago(one.createdAt, now)],
    ["Explained by", one.stuck || one.failing || claim ? `millwright explain switch ${one.id}` : ""],
    ["Deleted", one.deletedAt ? `marked ${ago(one.deletedAt, now)}` : "", "bad"],
  ];
}

export function switchThing(one: Switch, style: Style): OneThing<Switch> {
  const sections: Section[] = [];
  const alerts = one.healthSources.flatMap(({ source, counts, alerts: open }) =>
    open.map(({ id, target, message, since }) => [
      { text: source, tone: undefined },
      { text: target === "" ? id : `${id}[${target}]`, tone: counts ? ("bad" as const) : ("dim" as const) },
      { text: age(since, style.now), tone: undefined },
      { text: message, tone: undefined },
    ]),
  );
  if (alerts.length > 0)
    sections.push({ title: "Health alerts", body: tableOf(["SOURCE", "ALERT", "FOR", "MESSAGE"], alerts, style) });
  return { item: one, columns: csvColumns, json: switchJson, details: switchDetails(one, style.now), sections };
}
