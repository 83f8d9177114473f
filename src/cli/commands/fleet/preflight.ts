import {
  type FleetCandidate,
  FleetCandidateSchema,
  FleetService,
  type PreflightResult,
  PreflightResultSchema,
} from "../../../../contract/millwright/v1/fleet_pb.js";
import { jsonOf } from "../../client/proto-json.ts";
import type { Session } from "../../client/session.ts";
import type { Column } from "../../terminal/output.ts";
import { printList } from "../../terminal/printing.ts";

const EXIT_NOT_READY = 1;

const checkColumns: readonly Column<PreflightResult>[] = [
  { title: "CHECK", cell: ({ check }) => check },
  { title: "RESULT", cell: ({ result }) => result },
  { title: "FOUND", cell: ({ message }) => message },
  { title: "NEXT", cell: ({ next }) => next },
];

export async function preflight(session: Session, name: string): Promise<number | undefined> {
  const client = await session.client(FleetService);
  const { ready, results } = await client.preflightSite({ name }, { signal: session.signal });
  const json = (result: PreflightResult) => jsonOf(PreflightResultSchema, result);
  await printList(session, { items: results, columns: checkColumns, json }, "No checks.");
  return ready ? undefined : EXIT_NOT_READY;
}

const candidateColumns: readonly Column<FleetCandidate>[] = [
  { title: "HOSTNAME", cell: ({ hostname }) => hostname },
  { title: "SYSTEM ID", cell: ({ systemId }) => systemId },
  { title: "STATE", cell: ({ source, state }) => (source === "network" ? "seen on the network" : state) },
  { title: "ADDRESS", cell: ({ ip }) => ip },
  { title: "POWER", cell: ({ power }) => power },
  { title: "SERIAL", cell: ({ serial }) => serial },
  { title: "MAC", cell: ({ macs }) => macs[0] ?? "" },
  { title: "VENDOR", cell: ({ vendor }) => vendor },
  { title: "OBSTACLE", cell: ({ obstacle }) => obstacle },
];

export async function listCandidates(
  session: Session,
  { site, all = false }: { readonly site: string; readonly all?: boolean },
): Promise<undefined> {
  const client = await session.client(FleetService);
  const { candidates: items } = await client.listCandidates({ site, all }, { signal: session.signal });
  const json = (candidate: FleetCandidate) => jsonOf(FleetCandidateSchema, candidate);
  await printList(session, { items, columns: candidateColumns, json }, "No candidates.");
}
