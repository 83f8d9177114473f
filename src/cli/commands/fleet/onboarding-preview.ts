import {
  FleetNodeService,
  type OnboardingStage,
  type PreviewOnboardingResponse,
  PreviewOnboardingResponseSchema,
} from "../../../../contract/millwright/v1/fleet_node_pb.js";
import { EXIT } from "../../client/errors.ts";
import { jsonOf } from "../../client/proto-json.ts";
import type { Session } from "../../client/session.ts";
import type { Column, Detail, Style } from "../../terminal/output.ts";
import { printList, printOne } from "../../terminal/printing.ts";
import { tableOf } from "../../terminal/table.ts";
import { describeDuration, toMilliseconds } from "../../terminal/times.ts";

interface AskedNode {
  readonly site: string;
  readonly profile: string;
  readonly sku: string;
  readonly hostname: string;
  readonly ipmiIp: string;
  readonly mode: string;
  readonly bmcUsername: string;
}

/** Says what `fleet onboard` would do. Exit code 4 where it would be refused, or its job fail for what MAAS shows. */
export async function previewOnboarding(session: Session, asked: AskedNode): Promise<number | undefined> {
  const client = await session.client(FleetNodeService);
  const item = await client.previewOnboarding(asked, { signal: session.signal });
  await printOne(session, {
    ...{ item, columns },
    json: (preview) => jsonOf(PreviewOnboardingResponseSchema, preview),
    details: detailsOf(item, asked.hostname),
    sections: sectionsOf(item, session.style()),
  });
  return isInTheWay(item) ? EXIT.precondition : undefined;
}

const isInTheWay = ({ obstacles, maas }: PreviewOnboardingResponse): boolean =>
  obstacles.length > 0 || maas?.outcome === "refuse";

type Row = readonly [hostname: string, preview: PreviewOnboardingResponse];

/** The same of each row of a file. Exit code 4 where one of them would be refused, or its job fail. */
export async function previewOnboardings(
  session: Session,
  asked: readonly (AskedNode & { readonly bmcPassword: string })[],
): Promise<number | undefined> {
  const client = await session.client(FleetNodeService);
  const nodes = asked.map(({ bmcPassword: _, ...node }) => node);
  const answer = await client.previewOnboardings({ nodes }, { signal: session.signal });
  const items = answer.nodes.flatMap(({ hostname, preview }): Row[] => (preview ? [[hostname, preview]] : []));
  await printList(
    session,
    {
      items,
      columns: [
        { title: "HOSTNAME", cell: ([hostname]) => hostname },
        ...columns
          .filter(({ title }) => title !== "SKIPPED")
          .map(({ title, cell }): Column<Row> => ({ title, cell: ([, preview], now) => cell(preview, now) })),
      ],
      json: ([hostname, preview]) => ({ hostname, preview: jsonOf(PreviewOnboardingResponseSchema, preview) }),
    },
    "No nodes.",
  );
  const refused = items.filter(([, preview]) => isInTheWay(preview)).length;
  session.terminal.stderr.write(
    `Dry run: nothing was started or changed; ${refused} of ${items.length} nodes would be refused or fail\n`,
  );
  return refused === 0 ? undefined : EXIT.precondition;
}

const machineText = ({ machineId, registersMachine }: PreviewOnboardingResponse): string =>
  machineId !== "" ? machineId : registersMachine ? "a new one would be registered" : "";

function maasText({ maas }: PreviewOnboardingResponse): string {
  if (!maas) return "";
  const { systemId, hostname, statusName, message } = maas;
  return systemId === "" ? message : `${hostname} (${systemId}) is ${statusName}: ${message}`;
}

const durationText = (duration: OnboardingStage["deadline"]): string =>
  duration === undefined ? "" : describeDuration(toMilliseconds(duration));

function noteOn({ skipped, onlyIf }: OnboardingStage): string {
  if (skipped !== "") return `skipped: ${skipped}`;
  return onlyIf === "" ? "" : `only if ${onlyIf}`;
}

const skippedIn = ({ stages }: PreviewOnboardingResponse): readonly string[] =>
  stages.filter(({ skipped }) => skipped !== "").map(({ stage }) => stage);

const columns: readonly Column<PreviewOnboardingResponse>[] = [
  { title: "MACHINE", cell: machineText },
  { title: "IN THE WAY", cell: ({ obstacles }) => obstacles.map(({ message }) => message).join("; ") },
  { title: "MAAS", cell: maasText },
  { title: "SKIPPED", cell: (preview) => skippedIn(preview).join(" ") },
  { title: "AT MOST", cell: ({ atMost }) => durationText(atMost) },
  { title: "NOTES", cell: ({ notes }) => notes.join("; ") },
];

function detailsOf(preview: PreviewOnboardingResponse, hostname: string): Detail[] {
  const { obstacles, maas, atMost, notes } = preview;
  return [
    ["Dry run", "nothing was started or changed", "bold"],
    ["Node", hostname],
    ["Machine", machineText(preview)],
    ...obstacles.flatMap(({ message, next }): Detail[] => [
      ["In the way", message, "bad"],
      ["Next", next],
    ]),
    ["MAAS", maasText(preview), maas?.outcome === "refuse" ? "bad" : undefined],
    ["Failure class", maas?.failureClass ?? "", "bad"],
    ["Takes at most", durationText(atMost)],
    ...notes.map((note): Detail => ["Note", note]),
  ];
}

function sectionsOf({ stages }: PreviewOnboardingResponse, style: Style) {
  if (stages.length === 0) return [];
  const rows = stages.map((stage) =>
    [...[stage.stage, durationText(stage.deadline), String(stage.retries), String(stage.rounds)], noteOn(stage)].map(
      (text) => ({ text, tone: undefined }),
    ),
  );
  return [{ title: "Stages", body: tableOf(["STAGE", "DEADLINE", "RETRIES", "ROUNDS", "NOTE"], rows, style) }];
}
