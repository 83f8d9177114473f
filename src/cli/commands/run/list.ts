import { MachineService } from "../../../../contract/baremetal/v1/baremetal_pb.js";
import { ExplainService } from "../../../../contract/millwright/v1/explain_pb.js";
import { RunService } from "../../../../contract/millwright/v1/run_pb.js";
import { isConnectError } from "../../client/errors.ts";
import { readPages } from "../../client/read-pages.ts";
import type { Session } from "../../client/session.ts";
import { printLine, printList } from "../../terminal/printing.ts";
import { kindOf, thingOf } from "../event/kind.ts";
import { joinFilters, type ListOptions, limitOf, printTotal, valueText } from "../options/list-options.ts";
import { runJson, type ShownRun, shownOf } from "./record.ts";
import { runColumns } from "./view.ts";

/** Which runs are meant, beside the filter. */
export interface RunChoice {
  readonly filter?: string;
  readonly machine?: string;
  readonly target?: string;
  readonly targetKind?: string;
  /** Also those that other runs have started. */
  readonly children?: boolean;
}
export type ListRunsOptions = RunChoice & ListOptions;

const PAGE_SIZE = 500;

const parseTarget = (text: string) =>
  thingOf(text, "--target", "such as --target rack/rack-1; --machine takes the id of a machine");

/** A run on a machine takes its slot, or is a part of the work on something greater and takes none. */
const ofMachine = (id: string): string =>
  `machine_id=${valueText(id)} OR target_kind=machine AND target_id=${valueText(id)}`;

export function filterOf({ filter, machine, target, targetKind }: RunChoice): string {
  const { kind, id } = target === undefined ? { kind: undefined, id: undefined } : parseTarget(target);
  return joinFilters(
    filter,
    machine && ofMachine(machine),
    kind && `target_kind=${valueText(kind)}`,
    id && `target_id=${valueText(id)}`,
    targetKind && `target_kind=${valueText(kindOf(targetKind))}`,
  );
}

export async function listRuns(session: Session, options: ListRunsOptions): Promise<undefined> {
  const { items, total, hasMore } = await readList(session, options);
  if (items.length === 0) await checkThingExists(session, options);
  const style = session.style();
  await printList(session, { items, columns: runColumns(style, options.children), json: runJson }, "No runs.");
  printTotal(session, items.length, total);
  if (hasMore && total === undefined && style.format === "table")
    printLine(session.terminal.stderr, `There are more; --limit ${items.length * 10} shows more, --total counts them.`);
}

/** All that the filter admits. */
export const readRuns = async (session: Session, filter: string): Promise<ShownRun[]> =>
  (await readList(session, { filter })).items;

async function readList(session: Session, options: ListRunsOptions) {
  const client = await session.client(RunService);
  const limit = limitOf(options);
  const asked = {
    filter: filterOf(options),
    orderBy: options.orderBy ?? "",
    pageSize: Math.min(limit ?? PAGE_SIZE, PAGE_SIZE),
    children: options.children ?? false,
  };
  let total: number | undefined;
  let hasMore = false;
  const items = await readPages(
    async (pageToken) => {
      const withTotal = (options.total ?? false) && pageToken === "";
      const page = await client.listRuns({ ...asked, pageToken, withTotal }, { signal: session.signal });
      total ??= page.totalSize;
      hasMore = page.nextPageToken !== "";
      return page;
    },
    ({ runs }): ShownRun[] => runs.map(shownOf),
    limit,
  );
  return { items, total, hasMore };
}

/** No runs on a thing that there is, or no such thing: the second is a slip of the pen, and refused as one. */
async function checkThingExists(session: Session, { machine, target }: RunChoice): Promise<void> {
  const { signal } = session;
  const { Code } = await import("@connectrpc/connect");
  try {
    if (machine) await (await session.client(MachineService)).getMachine({ machineId: machine }, { signal });
    if (target) await (await session.client(ExplainService)).explain(parseTarget(target), { signal });
  } catch (error) {
    // A server that cannot say, or may not, does not make the list wrong.
    if (isConnectError(error) && (error.code === Code.NotFound || error.code === Code.InvalidArgument)) throw error;
  }
}
