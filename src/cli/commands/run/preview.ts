import { MachineStatus_PhaseSchema } from "../../../../contract/baremetal/v1/baremetal_pb.js";
import {
  type PreviewedStep,
  type PreviewRunResponse,
  PreviewRunResponseSchema,
  RunActionsService,
} from "../../../../contract/millwright/v1/run_pb.js";
import { EXIT } from "../../client/errors.ts";
import { enumWord, jsonOf } from "../../client/proto-json.ts";
import type { Session } from "../../client/session.ts";
import type { Column, OneThing, Section, Style } from "../../terminal/output.ts";
import { printLine, printList, printOne } from "../../terminal/printing.ts";
import { tableOf } from "../../terminal/table.ts";
import { describeDuration, toMilliseconds } from "../../terminal/times.ts";
import { payloadText } from "../plan/manage.ts";
import { targetText } from "./record.ts";

export interface ToPreview {
  readonly machines: readonly string[];
  readonly type: string;
  readonly planId: string;
  readonly params: Readonly<Record<string, string>>;
}

/** Says what `run start` would do. Exit code 4 when it would be refused, or have to wait, on any of the machines. */
export async function previewRuns(session: Session, asked: ToPreview): Promise<number | undefined> {
  const previews = await readPreviews(session, asked);
  const style = session.style();
  if (previews.length > 1 && style.format !== "table") await printList(session, listingOf(previews), "");
  else for (const { machineId, preview } of previews) await printOne(session, previewThing(preview, machineId, style));
  return exitCodeOf(previews);
}

/** The same for many machines: a line each, with what reboots, what is in the way and which clusters are disturbed. */
export async function previewMany(session: Session, asked: ToPreview): Promise<number | undefined> {
  const previews = await readPreviews(session, asked);
  await printList(session, listingOf(previews), "");
  const disturbed = previews.filter(({ preview }) => preview.disturbsCluster !== "").length;
  const blocked = previews.filter((each) => !isFree(each)).length;
  printLine(
    session.terminal.stderr,
    `${previews.length} machines match; ${blocked} would be refused or wait, ${disturbed} serve a cluster and are not drained. Nothing was started.`,
  );
  return exitCodeOf(previews);
}

/** So many are asked for at a time: the server reads a few rows for each. */
const AT_ONCE = 8;

async function readPreviews(session: Session, { machines, type, planId, params }: ToPreview) {
  const client = await session.client(RunActionsService);
  const previews: PreviewOfMachine[] = [];
  for (let at = 0; at < machines.length; at += AT_ONCE) {
    const some = machines.slice(at, at + AT_ONCE).map(async (machineId): Promise<PreviewOfMachine> => {
      const request = { machineId, type, planId, params: { ...params } };
      return { machineId, preview: await client.previewRun(request, { signal: session.signal }) };
    });
    previews.push(...(await Promise.all(some)));
  }
  return previews;
}

const isFree = ({ preview }: PreviewOfMachine): boolean =>
  preview.conflicts.length === 0 && preview.missingCapabilities.length === 0;

const exitCodeOf = (previews: readonly PreviewOfMachine[]): number | undefined =>
  previews.every(isFree) ? undefined : EXIT.precondition;

interface PreviewOfMachine {
  readonly machineId: string;
  readonly preview: PreviewRunResponse;
}

/** For programs: one list, and no document a machine. */
const listingOf = (items: readonly PreviewOfMachine[]) => ({
  items,
  columns: [
    { title: "MACHINE", cell: ({ machineId }: PreviewOfMachine) => machineId },
    ...columns.map(
      ({ title, cell }): Column<PreviewOfMachine> => ({
        title,
        cell: ({ preview }, now) => cell(preview, now),
      }),
    ),
  ],
  json: ({ machineId, preview }: PreviewOfMachine) => ({
    machine_id: machineId,
    ...(jsonOf(PreviewRunResponseSchema, preview) as object),
  }),
});

const durationText = (duration: PreviewRunResponse["expectedDuration"]): string =>
  duration === undefined ? "" : describeDuration(toMilliseconds(duration));

const columns: readonly Column<PreviewRunResponse>[] = [
  { title: "PLAN", cell: ({ planId }) => planId },
  { title: "STEPS", cell: ({ steps }) => steps.map(({ step }) => step?.name ?? "").join(" → ") },
  { title: "REBOOTS", cell: ({ reboots }) => String(reboots) },
  { title: "EXPECTED", cell: ({ expectedDuration }) => durationText(expectedDuration) },
  { title: "PHASE ON SUCCESS", cell: ({ phaseOnSuccess }) => enumWord(MachineStatus_PhaseSchema, phaseOnSuccess) },
  { title: "MISSING", cell: ({ missingCapabilities }) => missingCapabilities.join(" ") },
  { title: "CONFLICTS", cell: ({ conflicts }) => conflicts.join("; ") },
  { title: "DISTURBS", cell: ({ disturbsCluster }) => disturbsCluster },
  { title: "WARNINGS", cell: ({ warnings }) => warnings.join("; ") },
];

function stepRow({ step, needs, reboots, expectedDuration }: PreviewedStep) {
  const cells = [
    step?.name ?? "",
    step?.kind.case ?? "",
    `${step?.timeoutSeconds ?? 0}s`,
    String(step?.maxRetries ?? 0),
    reboots ? "yes" : "no",
    durationText(expectedDuration),
    needs.join(" "),
    step === undefined ? "" : payloadText(step),
  ];
  return cells.map((text) => ({ text, tone: undefined }));
}

/** Runs on other things, one a line; steps that start none are left out. */
function childSection({ steps }: PreviewRunResponse, style: Style): Section[] {
  const rows = steps.flatMap(({ step, children }) =>
    children.map(({ target, steps: names }) =>
      [step?.name ?? "", target ? targetText(target) : "", names.join(" → ")].map((text) => ({
        text,
        tone: undefined,
      })),
    ),
  );
  if (rows.length === 0) return [];
  return [
    { title: "Runs that it would start, as things are now", body: tableOf(["STEP", "TARGET", "STEPS"], rows, style) },
  ];
}

const disturbanceText = ({ disturbsCluster }: PreviewRunResponse): string =>
  disturbsCluster === ""
    ? ""
    : `the machine serves cluster ${disturbsCluster} and is not drained; --yes starts the run`;

function previewThing(preview: PreviewRunResponse, machine: string, style: Style): OneThing<PreviewRunResponse> {
  const heads = ["STEP", "KIND", "TIMEOUT", "RETRIES", "REBOOTS", "EXPECTED", "NEEDS", "PAYLOAD"];
  return {
    item: preview,
    columns,
    json: (item) => jsonOf(PreviewRunResponseSchema, item),
    details: [
      ["Dry run", "nothing was started or changed", "bold"],
      ["Machine", machine],
      ["Plan", preview.planId],
      ["Reboots", String(preview.reboots)],
      ["Expected to take", durationText(preview.expectedDuration) || "unknown: not every step was carried out before"],
      ["Phase on success", enumWord(MachineStatus_PhaseSchema, preview.phaseOnSuccess)],
      ["Cannot do", preview.missingCapabilities.join(", "), "bad"],
      ...preview.conflicts.map((conflict) => ["In the way", conflict, "bad"] as const),
      ["Disturbs", disturbanceText(preview), "bad"],
      ...preview.warnings.map((warning) => ["Warning", warning, "bad"] as const),
    ],
    sections: [
      { title: "Steps", body: tableOf(heads, preview.steps.map(stepRow), style) },
      ...childSection(preview, style),
    ],
  };
}
