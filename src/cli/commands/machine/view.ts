import {
  type Condition,
  type Machine,
  MachineSchema,
  MachineStatus_PhaseSchema,
  type Run,
  Run_PhaseSchema,
} from "../../../../contract/baremetal/v1/baremetal_pb.js";
import { enumWord, jsonOf } from "../../client/proto-json.ts";
import { hostKeyFingerprint } from "../../terminal/host-key.ts";
import { type Column, type Detail, detailsOf, type OneThing, type Section, type Style } from "../../terminal/output.ts";
import { type Tone, tableOf } from "../../terminal/table.ts";
import { age, clockTime, isoTime } from "../../terminal/times.ts";

export const machineJson = (machine: Machine) => jsonOf(MachineSchema, machine);
export const phaseOf = ({ status }: Machine): string => enumWord(MachineStatus_PhaseSchema, status?.phase ?? 0);
export const effectiveOf = ({ status }: Machine): string =>
  enumWord(MachineStatus_PhaseSchema, status?.effectiveState ?? 0);

const TONE_OF_STATE: { readonly [state: string]: Tone } = {
  FACTORY_READY: "dim",
  READY: "good",
  PROVISIONING: "busy",
  IN_SERVICE: "good",
  MAINTENANCE: "busy",
  RMA: "bad",
  RETIRED: "dim",
};
const toneOf = (machine: Machine): Tone | undefined =>
  machine.status?.banners.includes("NeedsIntervention") ? "bad" : TONE_OF_STATE[effectiveOf(machine)];

export const conditionOf = ({ status }: Machine, type: string): Condition | undefined =>
  status?.conditions.find((each) => each.type === type);

/** yes, no, or nothing where nobody has looked. */
function known(machine: Machine, type: string): string {
  const condition = conditionOf(machine, type);
  return condition === undefined ? "" : condition.status ? "yes" : "no";
}

/** For people also for how long; roughly, where there is little room. */
const conditionColumn = (title: string, type: string): Column<Machine> => {
  const forHowLong = (machine: Machine, now: Date) => age(conditionOf(machine, type)?.lastTransition, now);
  return {
    title,
    cell: (machine, now) => `${known(machine, type)} ${forHowLong(machine, now)}`.trim(),
    short: {
      cell: (machine, now) => `${known(machine, type)} ${forHowLong(machine, now).split(" ", 1)[0]}`.trim(),
      least: "yes 59m".length,
    },
    plain: (machine) => known(machine, type),
  };
};

export const machineColumns: readonly Column<Machine>[] = [
  { title: "ID", cell: ({ machineId }) => machineId },
  { title: "PHASE", cell: phaseOf },
  { title: "EFFECTIVE", cell: effectiveOf, tone: toneOf },
  { title: "RACK", cell: ({ spec }) => spec?.rack ?? "" },
  { title: "PROVIDER", cell: ({ spec }) => spec?.provider ?? "", minor: true },
  conditionColumn("REACHABLE", "Reachable"),
  conditionColumn("BMC", "BMCReachable"),
  conditionColumn("IN CLUSTER", "InCustomerCluster"),
  { title: "BANNERS", cell: ({ status }) => status?.banners.join(" ") ?? "", tone: () => "bad" },
  { title: "RUN", cell: ({ status }) => status?.activeRunId ?? "" },
  {
    title: "WAITS FOR",
    cell: ({ status }) => status?.waitingFor ?? "",
  },
];

const ago = (timestamp: Machine["createdAt"], now: Date): string =>
  timestamp ? `${clockTime(timestamp)}, ${age(timestamp, now)} ago` : "";

const joined = (...parts: readonly string[]): string => parts.filter((part) => part !== "").join(", ");
const after = (word: string, text: string): string => (text === "" ? "" : `${word} ${text}`);

/** Somebody should see to it, or it waits for somebody else. */
const needsExplaining = ({ status }: Machine): boolean =>
  status !== undefined && (status.failing || status.waitingFor !== "");

/** What becomes of it at the moment. */
function currentDetails(machine: Machine, now: Date): Detail[] {
  const { status } = machine;
  const { claim } = status ?? {};
  return [
    ["Machine", machine.machineId, "bold"],
    ["Phase", phaseOf(machine)],
    ["Since", ago(status?.phaseSince, now)],
    ["Effective state", effectiveOf(machine), toneOf(machine)],
    ["Banners", status?.banners.join(", ") ?? "", "bad"],
    ["Waits for", status?.waitingFor ?? "", "busy"],
    ["Active run", status?.activeRunId || "none"],
    ["Last run", status?.lastRunId ?? ""],
    ["Claimed by", claim ? `${claim.kind} ${claim.id}${claim.since ? ` for ${age(claim.since, now)}` : ""}` : "nobody"],
    ["Left behind", status?.residue.join("; ") ?? "", "bad"],
  ];
}

/** What it is, which seldom changes. */
function lastingDetails(machine: Machine, now: Date): Detail[] {
  const { spec, status } = machine;
  const { inventory } = status ?? {};
  return [
    ["Provider", spec?.provider ?? ""],
    ["Place", joined(spec?.location ?? "", spec?.rack ?? "", after("slot", spec?.slot ?? ""))],
    ["Customer", spec?.customerId ?? ""],
    ["Cluster", spec?.targetClusterRef ?? ""],
    ["Serial", spec?.serial ?? ""],
    ["MAC addresses", spec?.macAddresses.join(", ") ?? ""],
    ["BMC", spec?.bmcEndpoint ? joined(spec.bmcEndpoint, spec.bmcProtocol, after("TLS", spec.bmcTlsTrust)) : ""],
    ["SSH", joined(spec?.sshEndpoint ?? "", after("since a network change at", status?.sshMovedTo ?? ""))],
    ["SSH through", spec?.jumpHosts.map(({ endpoint }) => endpoint).join(" → ") ?? ""],
    ["SSH host key", hostKeyText(machine)],
    [
      "Hardware",
      inventory ? joined(inventory.vendor, inventory.model, after("serial", inventory.serial)) : "never read",
    ],
    ["Power", inventory?.powerState ?? ""],
    ["BMC firmware", inventory?.bmcFirmwareVersion ?? ""],
    ["Boot id", inventory?.bootId ?? ""],
    ["Labels", labelText(machine.labels)],
    ["Explained by", needsExplaining(machine) ? `millwright explain machine ${machine.machineId}` : ""],
    ["Inspected", ago(inventory?.observedAt, now)],
    ["Registered", ago(machine.createdAt, now)],
  ];
}

const KEY_FROM: { readonly [source: string]: string } = {
  spec: "pinned by its owner",
  installation: "proved by its installation",
  first_seen: "the first that was seen",
};

function hostKeyText({ spec, status }: Machine): string {
  if (!spec?.sshEndpoint) return "";
  if (!status?.sshHostKey) return "none yet: the first that is seen will be kept";
  return `${hostKeyFingerprint(status.sshHostKey)} (${KEY_FROM[status.sshHostKeyFrom] ?? status.sshHostKeyFrom})`;
}

const labelText = (labels: Machine["labels"]): string =>
  Object.entries(labels)
    .map(([key, value]) => (value === "" ? key : `${key}=${value}`))
    .join(", ");

/** Of these two, yes is the bad news. */
const BAD_WHEN_TRUE = new Set(["NeedsIntervention", "Degraded"]);

function conditionRow(condition: Condition, now: Date) {
  const { type, status, reason, message, lastTransition } = condition;
  const tone: Tone = status === BAD_WHEN_TRUE.has(type) ? "bad" : "good";
  const plain = (text: string) => ({ text, tone: undefined });
  return [
    plain(type),
    { text: status ? "yes" : "no", tone },
    plain(age(lastTransition, now)),
    plain(reason),
    plain(message),
  ];
}

const runRow = (run: Run, now: Date) =>
  [run.runId, run.type || run.planId, enumWord(Run_PhaseSchema, run.phase), age(run.createdAt, now), run.message].map(
    (text) => ({ text, tone: undefined }),
  );

/** As `machineThing`; what changes comes first, so that a screen that is too short for all of it still shows that. */
export function watchedMachineThing(machine: Machine, runs: readonly Run[], style: Style): OneThing<Machine> {
  const whole = machineThing(machine, runs, style);
  const about = { title: "About it", body: detailsOf(lastingDetails(machine, style.now), style) };
  return { ...whole, details: currentDetails(machine, style.now), sections: [...(whole.sections ?? []), about] };
}

export function machineThing(machine: Machine, runs: readonly Run[], style: Style): OneThing<Machine> {
  const sections: Section[] = [];
  const conditions = machine.status?.conditions ?? [];
  if (conditions.length > 0) {
    const rows = conditions.map((condition) => conditionRow(condition, style.now));
    sections.push({ title: "Conditions", body: tableOf(["TYPE", "STATUS", "FOR", "REASON", "MESSAGE"], rows, style) });
  }
  if (runs.length > 0) {
    const rows = runs.map((run) => runRow(run, style.now));
    sections.push({ title: "Runs", body: tableOf(["RUN", "TYPE", "PHASE", "AGE", "MESSAGE"], rows, style) });
  }
  return {
    item: machine,
    columns: [...machineColumns, { title: "SINCE", cell: ({ status }) => isoTime(status?.phaseSince) }],
    json: machineJson,
    details: [...currentDetails(machine, style.now), ...lastingDetails(machine, style.now)],
    sections,
  };
}
