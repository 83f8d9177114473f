import type { Machine } from "../../../../contract/baremetal/v1/baremetal_pb.js";
import { Forge, PowerShelfMaintenanceOperation } from "../../../../contract/forge/forge_pb.js";
import { PowerShelfService } from "../../../../contract/millwright/v1/power_shelf_pb.js";
import { describeFailure, type ExitCode, UsageError } from "../../client/errors.ts";
import type { Session } from "../../client/session.ts";
import { unlessRefused } from "../../client/unless-refused.ts";
import { type ConfirmOptions, confirm } from "../../terminal/confirm.ts";
import { namedList } from "../../terminal/named-list.ts";
import { printable } from "../../terminal/printable.ts";
import { printDone, printLine } from "../../terminal/printing.ts";
import { parseDuration } from "../../terminal/times.ts";
import { readMachines } from "../machine/read.ts";
import { valueText } from "../options/list-options.ts";
import { readShelf } from "./list.ts";
import { resolveShelves } from "./names.ts";

export interface MaintenanceOptions extends ConfirmOptions {
  readonly powerShelfId: readonly string[];
  readonly reference?: string;
  readonly wait?: boolean;
  readonly timeout?: string;
}

const OPERATIONS = {
  power_on: PowerShelfMaintenanceOperation.POWER_ON,
  power_off: PowerShelfMaintenanceOperation.POWER_OFF,
} as const;
export type Operation = keyof typeof OPERATIONS;

/** Asks for the operation on every listed shelf, or on none; with --wait, sees it through. */
export async function requestMaintenance(
  session: Session,
  operation: Operation,
  options: MaintenanceOptions,
): Promise<number | undefined> {
  if (options.timeout !== undefined && !options.wait)
    throw new UsageError("--timeout says how long to wait, so it needs --wait");
  const timeoutMs = options.timeout === undefined ? undefined : parseDuration(options.timeout, "--timeout");
  if (timeoutMs === 0)
    throw new UsageError("--timeout: must be longer than 0s", "leave --wait out to submit without waiting");
  const ids = [...new Set(await resolveShelves(session, options.powerShelfId))];
  if (operation === "power_off" && !options.yes) await confirmPowerOff(session, ids);
  const submit = async () => {
    const forge = await session.client(Forge);
    await forge.setPowerShelfMaintenance(
      {
        powerShelfIds: ids.map((id) => ({ id })),
        operation: OPERATIONS[operation],
        ...(options.reference ? { reference: options.reference } : {}),
      },
      { signal: session.signal },
    );
    const said = `Power shelf maintenance request submitted for ${ids.length} power shelves.`;
    // What programs read is the outcome, once; the line tells people that it has begun.
    if (options.wait && session.style().format !== "table") printLine(session.terminal.stderr, `${said}`);
    else await printDone(session, said, { operation, power_shelf_ids: ids });
  };
  if (!options.wait) {
    await submit();
    return undefined;
  }
  const { waitForRequests } = await import("./wait.ts");
  return waitForRequests(session, { ids, operation, timeoutMs, submit });
}

export interface CancelOptions {
  readonly powerShelfId: readonly string[];
  readonly requestId?: string;
}

/** Each for itself: one without a request does not keep those of the others from ending. */
export async function cancelRequests(session: Session, options: CancelOptions): Promise<number | undefined> {
  const ids = [...new Set(await resolveShelves(session, options.powerShelfId))];
  const { requestId = "" } = options;
  if (requestId !== "" && ids.length > 1) throw new UsageError("--request-id names the request of one shelf");
  const client = await session.client(PowerShelfService);
  const canceled: string[] = [];
  let refused: ExitCode | undefined;
  for (const id of ids) {
    try {
      await client.cancelPowerShelfRequest({ id, requestId }, { signal: session.signal });
      canceled.push(id);
    } catch (error) {
      if (session.signal.aborted || ids.length === 1) throw error;
      const { message, exitCode } = await describeFailure(error, undefined);
      printLine(session.terminal.stderr, `error: ${printable(message)}`);
      refused ??= exitCode;
    }
  }
  const said = `Cancel requested on power shelves: ${canceled.length}. A command that was already sent may still take effect.`;
  if (canceled.length > 0) await printDone(session, said, { power_shelf_ids: canceled });
  return refused;
}

const MOST_NAMED = 5;

/** A shelf feeds its whole rack: whoever switches it off says yes to what that does to machines that serve a cluster. */
async function confirmPowerOff(session: Session, ids: readonly string[]): Promise<void> {
  const shelves = await Promise.all(ids.map((id) => unlessRefused(() => readShelf(session, id))));
  const racks = [...new Set(shelves.map((shelf) => shelf?.rackId ?? ""))].filter((rack) => rack !== "");
  const serving: Machine[] = [];
  for (const rack of racks)
    serving.push(...(await readMachines(session, `rack=${valueText(rack)} AND serves_cluster=true`)));
  if (serving.length === 0) return;
  const names = serving.map(({ machineId }) => machineId);
  const where = racks.length === 1 ? `Rack ${racks[0]} has` : `Racks ${racks.join(", ")} have`;
  await confirm(session, {
    what: `${where} machines that serve a cluster and are not drained: ${namedList(names, MOST_NAMED)}. Power the shelves off?`,
  });
}
