import {
  type Rack,
  type RackMember,
  type RackRequest,
  RackSchema,
} from "../../../../contract/millwright/v1/rack_pb.js";
import { jsonOf } from "../../client/proto-json.ts";
import type { Column, Detail, OneThing, Section, Style } from "../../terminal/output.ts";
import { type Tone, tableOf } from "../../terminal/table.ts";
import { age, clockTime, describeDuration, isoTime, toDate, toMilliseconds } from "../../terminal/times.ts";

export const rackJson = (rack: Rack) => jsonOf(RackSchema, rack);

const TONES: { readonly [state: string]: Tone } = {
  ready: "good",
  error: "bad",
  maintenance: "busy",
  validating: "busy",
  discovering: "busy",
  created: "dim",
  deleting: "dim",
};
const toneOf = ({ state, stuck, failing }: Rack): Tone | undefined => (stuck || failing ? "bad" : TONES[state]);

/** Ready (failing), Discovering (stuck), … with marks for what an operator must notice. */
function stateText({ state, stateText: text, failing, stuck, condition, deletedAt }: Rack): string {
  const marks = [
    ...(failing ? [condition === "needs_intervention" ? "needs intervention" : "failing"] : []),
    ...(stuck && !failing && state !== "error" ? ["stuck"] : []),
    ...(deletedAt && state !== "deleting" ? ["deleted"] : []),
  ];
  const word = state === "error" ? "Error" : text;
  return marks.length === 0 ? word : `${word} (${marks.join(", ")})`;
}

/** Such as 17/18: ready of those that are expected, or that are there where nobody has said how many. */
const readyOf = (rack: Rack, kind: string): string => {
  const count = rack.counts.find((each) => each.kind === kind);
  return count === undefined ? "" : `${count.ready}/${Math.max(count.expected, count.have)}`;
};

/** Why it is in error, what it waits for, or what is requested of it. */
function whyOf({ error, reason, state, pendingRequests }: Rack): string {
  const [pending] = pendingRequests;
  const waiting =
    pending && (state === "ready" || state === "error") ? `${pending.kind} by ${pending.initiator} waits` : "";
  return [error, reason, error === "" && reason === "" ? waiting : ""].filter((text) => text !== "").join("; ");
}

export const rackColumns: readonly Column<Rack>[] = [
  { title: "ID", cell: ({ id }) => id },
  { title: "STATE", cell: stateText, plain: ({ state }) => state, tone: toneOf },
  { title: "FOR", cell: ({ stateSince }, now) => age(stateSince, now), plain: ({ stateSince }) => isoTime(stateSince) },
  { title: "PROFILE", cell: ({ profile }) => profile || "-", minor: true },
  { title: "TRAYS", cell: (rack) => readyOf(rack, "compute tray") },
  { title: "SWITCHES", cell: (rack) => readyOf(rack, "switch") },
  { title: "SHELVES", cell: (rack) => readyOf(rack, "power shelf") },
  { title: "WHY", cell: (rack) => shortened(whyOf(rack)), plain: whyOf },
];

/** People with 250 racks read a line or two of each; programs and `rack show` have the whole text. */
const LONGEST_WHY = 140;
const shortened = (text: string): string => (text.length > LONGEST_WHY ? `${text.slice(0, LONGEST_WHY)}…` : text);

const PLURALS: { readonly [kind: string]: string } = {
  "compute tray": "Compute trays",
  switch: "Switches",
  "power shelf": "Power shelves",
};

function detailsOf(rack: Rack, now: Date): Detail[] {
  const pending = rack.pendingRequests.map((request) => requestText(request, now)).join("; ");
  const last = newestOf(rack.lastRequests);
  return [
    ["Rack", rack.id, "bold"],
    ["Name", rack.name === rack.id ? "" : rack.name],
    ["Description", rack.description],
    [
      "Labels",
      Object.entries(rack.labels)
        .map(([key, value]) => (value === "" ? key : `${key}=${value}`))
        .join(" "),
    ],
    ["State", stateText(rack), toneOf(rack)],
    ["Since", `${clockTime(rack.stateSince)}, ${age(rack.stateSince, now)} ago${slaText(rack, now)}`],
    ["Why", [rack.error, rack.reason].filter((text) => text !== "").join("; "), rack.error === "" ? undefined : "bad"],
    ["Run", rack.runId === "" ? "" : `millwright run show ${rack.runId}`],
    ["Pending request", pending || "none", pending === "" ? undefined : "busy"],
    [
      "Last request",
      last ? requestText(last, now, rack.error) : "none",
      last?.outcome === "failed" ? "bad" : undefined,
    ],
    ["Profile", profileText(rack)],
    ["Firmware", firmwareText(rack)],
    ...rack.counts.map(
      ({ kind, have, ready, expected }): Detail => [
        PLURALS[kind] ?? kind,
        // Without a profile nothing is expected, and "18 of 0" would say nothing.
        expected === 0 ? `${have}, ${ready} ready` : `${have} of ${expected} expected, ${ready} ready`,
        ready < expected ? "bad" : undefined,
      ],
    ),
    ["Created", clockTime(rack.createdAt)],
    ["Explained by", rack.urgency > 0 ? `millwright explain rack ${rack.id}` : ""],
    ["Marked for deletion", rack.deletedAt === undefined ? "" : clockTime(rack.deletedAt), "bad"],
  ];
}

function slaText({ sla, stateSince }: Rack, now: Date): string {
  if (!sla || !stateSince) return "";
  const left = toMilliseconds(sla) - (now.getTime() - toDate(stateSince).getTime());
  return left < 0 ? `; ${describeDuration(-left)} longer than it should take` : "";
}

const newestOf = (requests: readonly RackRequest[]): RackRequest | undefined =>
  [...requests].sort((a, b) => (isoTime(a.endedAt) < isoTime(b.endedAt) ? 1 : -1))[0];

/** A message that stands above as the rack's own error is not read twice. */
function requestText(request: RackRequest, now: Date, known = ""): string {
  const { kind, initiator, requestedAt, outcome, endedAt, message } = request;
  const asked = `${kind} by ${initiator} (asked ${clockTime(requestedAt)}, ${age(requestedAt, now)} ago)`;
  const ended = outcome === "" ? "" : `: ${outcome}${endedAt ? ` ${age(endedAt, now)} ago` : ""}`;
  return `${asked}${ended}${message === "" || message === known ? "" : ` – ${message}`}`;
}

const profileText = ({ profile, profileExists }: Rack): string =>
  profile === ""
    ? "none: `millwright site apply` assigns one"
    : profileExists
      ? profile
      : `${profile}, which does not exist: \`millwright site apply\` adds it`;

/** Which firmware is wanted, and how many of the devices that should have it do. A maintenance of some devices may want another. */
function firmwareText({ firmware, defaultFirmware, members }: Rack): string {
  const measured = members.filter((member) => member.firmware.length > 0);
  if (measured.length === 0 && firmware === "")
    return "none: there is no default for its hardware type; `millwright rack-firmware list`";
  if (measured.length === 0) return firmware;
  const records = [...Map.groupBy(measured, ({ wantedFirmware }) => wantedFirmware)].map(([id, of]) => {
    const unknown = of.filter(isUnknown).length;
    const current = of.length - unknown - of.filter(isOld).length;
    return `${id}: ${current} of ${of.length} devices have it${unknown > 0 ? `, of ${unknown} it is not known` : ""}`;
  });
  const isNamed = measured.some(({ wantedFirmware }) => wantedFirmware === defaultFirmware);
  return [...records, ...(defaultFirmware === "" || isNamed ? [] : [`the default is ${defaultFirmware}`])].join("; ");
}

const isOld = ({ firmware }: RackMember): boolean =>
  firmware.some(({ installed, wanted }) => installed !== "" && installed !== wanted);
const isUnknown = (member: RackMember): boolean =>
  !isOld(member) && member.firmware.some(({ installed }) => installed === "");

/** What is old, from and to; otherwise a word. */
function memberFirmware(member: RackMember): string {
  if (member.firmware.length === 0) return "-";
  const old = member.firmware.filter(({ installed, wanted }) => installed !== "" && installed !== wanted);
  if (old.length > 0)
    return old.map(({ component, installed, wanted }) => `${component} ${installed} → ${wanted}`).join(", ");
  return isUnknown(member) ? "not known" : "as wanted";
}

const KINDS = ["machine", "switch", "power_shelf"];

/** Devices that are not ready stand first; the others as one walks past them: slot-2 before slot-10. */
const byNeed = (left: RackMember, right: RackMember): number => {
  const compare = (a: string, b: string) => a.localeCompare(b, "en", { numeric: true });
  return (
    Number(left.state === "ready") - Number(right.state === "ready") ||
    KINDS.indexOf(left.kind) - KINDS.indexOf(right.kind) ||
    compare(left.slot, right.slot) ||
    compare(left.name, right.name) ||
    compare(left.id, right.id)
  );
};

const MEMBER_TONES: { readonly [state: string]: Tone } = { ready: "good", error: "bad", not_reached: "bad" };

const memberRow = (member: RackMember) => {
  const { kind, id, name, state, slot, assigned, unprovenRun, why } = member;
  const isNamed = name !== "" && name !== id;
  const unproven = unprovenRun === "" ? "" : `a flash is not proven: millwright run show ${unprovenRun}`;
  return [
    { text: kind, tone: undefined },
    { text: isNamed ? name : id, short: undefined, tone: undefined },
    { text: state, tone: MEMBER_TONES[state] ?? ("busy" as const) },
    { text: slot, tone: undefined },
    { text: assigned === "no" ? "" : assigned, tone: assigned === "yes" ? ("busy" as const) : undefined },
    { text: memberFirmware(member), tone: isOld(member) ? ("busy" as const) : undefined },
    { text: [why, unproven].filter((text) => text !== "").join("; "), tone: undefined },
  ];
};

function sectionsOf(rack: Rack, style: Style): Section[] {
  const plain = (...texts: string[]) => texts.map((text) => ({ text, tone: undefined }));
  const members = rack.members.toSorted(byNeed);
  return [
    ...(members.length === 0
      ? []
      : [
          {
            title: "Devices",
            body: tableOf(
              ["KIND", "DEVICE", "STATE", "SLOT", "IN USE", "FIRMWARE", "WHY"],
              members.map(memberRow),
              style,
            ),
          },
        ]),
    ...(rack.leftOut.length === 0
      ? []
      : [
          {
            title: "Left out",
            body: tableOf(
              ["DEVICE", "WHY"],
              rack.leftOut.map(({ id, why }) => plain(id, why)),
              style,
            ),
          },
        ]),
  ];
}

export const rackThing = (rack: Rack, style: Style): OneThing<Rack> => ({
  item: rack,
  columns: rackColumns,
  json: rackJson,
  details: detailsOf(rack, style.now),
  sections: sectionsOf(rack, style),
});
