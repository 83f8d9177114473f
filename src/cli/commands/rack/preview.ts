import {
  type PreviewedRackComponent,
  type PreviewedRackStage,
  type PreviewRackMaintenanceResponse,
  PreviewRackMaintenanceResponseSchema,
  RackService,
} from "../../../../contract/millwright/v1/rack_pb.js";
import { EXIT } from "../../client/errors.ts";
import { jsonOf } from "../../client/proto-json.ts";
import type { Session } from "../../client/session.ts";
import type { Column, Detail, Section, Style } from "../../terminal/output.ts";
import { printList, printOne } from "../../terminal/printing.ts";
import { type Tone, tableOf } from "../../terminal/table.ts";
import { age, describeDuration, toMilliseconds } from "../../terminal/times.ts";
import { racksOf, requestOf, type StartManyOptions, withDeviceIds } from "./maintenance.ts";

type Preview = PreviewRackMaintenanceResponse;

/** Says what `rack maintenance start` would do. Exit code 4 when it would have to wait, or would fail. */
export async function previewMaintenance(session: Session, options: StartManyOptions): Promise<number | undefined> {
  const { rack: _, ...rest } = options;
  // Nothing is changed: what a filter chooses is shown without a question.
  const racks = await racksOf(session, { ...options, yes: true });
  const client = await session.client(RackService);
  const previews: Preview[] = [];
  for (const rack of racks)
    previews.push(
      await client.previewRackMaintenance(requestOf(await withDeviceIds(session, { ...rest, rack })), {
        signal: session.signal,
      }),
    );
  const style = session.style();
  const [only] = previews;
  if (style.format !== "table" && !(only && racks.length === 1))
    await printList(session, { items: previews, columns, json }, "No racks.");
  else
    for (const preview of previews) {
      if (preview !== only) session.terminal.stdout.write("\n");
      const details = detailsOf(preview);
      await printOne(session, { item: preview, columns, json, details, sections: sectionsOf(preview, style) });
    }
  return previews.every(isFree) ? undefined : EXIT.precondition;
}

const json = (preview: Preview) => jsonOf(PreviewRackMaintenanceResponseSchema, preview);
const isFree = ({ holders, stages }: Preview): boolean =>
  holders.length === 0 && stages.every(({ fails }) => fails === "");

const changes = ({ devices }: Preview, change: string): number =>
  devices.flatMap(({ components }) => components).filter((component) => component.change === change).length;

const disturbedText = ({ devices }: Preview): string => {
  const all = devices.flatMap(({ disturbances }) => disturbances);
  return [...Map.groupBy(all, (text) => text)].map(([text, of]) => `${of.length} × ${text}`).join(", ");
};

const firmwareText = (preview: Preview): string => {
  if (preview.firmware === "") return "";
  const [flashed, stays, unknown] = ["flashed", "stays", "unknown"].map((change) => changes(preview, change));
  const open = unknown === 0 ? "" : `, ${unknown} not known`;
  return `${preview.firmware}: ${flashed} components to flash, ${stays} stay as they are${open}`;
};

const expectedText = ({ expectedDuration, durationBasis }: Preview): string =>
  expectedDuration === undefined
    ? `unknown: ${durationBasis}`
    : `${describeDuration(toMilliseconds(expectedDuration))} (${durationBasis})`;

const columns: readonly Column<Preview>[] = [
  { title: "RACK", cell: ({ rackId }) => rackId },
  { title: "DEVICES", cell: ({ devices }) => String(devices.length) },
  {
    title: "STAGES",
    cell: ({ stages }) =>
      stages
        .filter(({ skipped }) => skipped === "")
        .map(({ name }) => name)
        .join(" → "),
  },
  { title: "FIRMWARE", cell: firmwareText },
  { title: "DISTURBS", cell: disturbedText },
  { title: "WAITS FOR", cell: ({ holders }) => holders.map(({ kind, id }) => `${kind} ${id}`).join(", ") },
  { title: "EXPECTED", cell: expectedText },
];

const detailsOf = (preview: Preview): Detail[] => [
  ["Dry run", "nothing was requested or changed", "bold"],
  ["Rack", preview.rackId],
  ["Devices", String(preview.devices.length)],
  ["Firmware", firmwareText(preview)],
  ["Disturbs", disturbedText(preview) || "nothing: no device reboots or loses power"],
  ["Usually takes", expectedText(preview)],
  ...preview.stages
    .filter(({ fails }) => fails !== "")
    .map(({ name, fails }): Detail => ["Would fail", `${name}: ${fails}`, "bad"]),
  ...preview.notes.map((note): Detail => ["Note", note]),
];

const stageText = ({ skipped, fails }: PreviewedRackStage): { text: string; tone: Tone | undefined } =>
  fails !== ""
    ? { text: `fails: ${fails}`, tone: "bad" }
    : skipped !== ""
      ? { text: `skipped: ${skipped}`, tone: "dim" }
      : { text: "is carried out", tone: undefined };

const componentText = ({ from, to, change }: PreviewedRackComponent): string =>
  change === "unknown" ? `? → ${to}` : change === "stays" ? `stays ${to}` : `${from} → ${to}`;

function sectionsOf(preview: Preview, style: Style): Section[] {
  const plain = (text: string) => ({ text, tone: undefined });
  const section = (
    title: string,
    heads: readonly string[],
    rows: readonly (readonly { readonly text: string; readonly tone: Tone | undefined }[])[],
  ): Section[] => (rows.length === 0 ? [] : [{ title, body: tableOf(heads, rows, style) }]);
  return [
    ...section(
      "Activities, in this order",
      ["STAGE", "ACTIVITY", "DEVICES", "WHAT HAPPENS"],
      preview.stages.map((stage) => [
        plain(stage.name),
        plain(stage.activity),
        plain(stage.skipped === "" ? String(stage.devices) : ""),
        stageText(stage),
      ]),
    ),
    ...section(
      "In the way: the maintenance waits for all of these",
      ["HOLDER", "FOR", "WHAT IT DOES", "DEVICES"],
      preview.holders.map(({ kind, id, does, since, devices }) =>
        [`${kind} ${id}`, age(since, style.now), does, devices.join(", ")].map(plain),
      ),
    ),
    ...section(
      "Trays in use",
      ["TRAY", "ASSIGNED", "WHAT THAT MEANS"],
      preview.assignedTrays.map(({ id, assigned, message }) => [id, assigned, message].map(plain)),
    ),
    ...section(
      "Devices",
      ["KIND", "DEVICE", "FIRMWARE", "DISTURBED BY IT"],
      preview.devices.map(({ kind, id, name, components, disturbances }) =>
        [
          kind,
          name || id,
          components.map((each) => `${each.component} ${componentText(each)}`).join(", "),
          disturbances.join(", "),
        ].map(plain),
      ),
    ),
    ...section(
      "Not known",
      ["DEVICE", "COMPONENT", "WHY"],
      preview.devices.flatMap(({ id, name, components }) =>
        components
          .filter(({ change }) => change === "unknown")
          .map(({ component, message }) => [name || id, component, message].map(plain)),
      ),
    ),
    ...section(
      "Left out",
      ["DEVICE", "WHY"],
      preview.leftOut.map(({ id, why }) => [id, why].map(plain)),
    ),
  ];
}
