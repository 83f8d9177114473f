import { type Machine, MachineService } from "../../../../contract/baremetal/v1/baremetal_pb.js";
import { MachineLifecycleService } from "../../../../contract/millwright/v1/machine_pb.js";
import type { Session } from "../../client/session.ts";
import { type ConfirmOptions, confirm } from "../../terminal/confirm.ts";
import { printLine, printOne } from "../../terminal/printing.ts";
import { conditionOf, effectiveOf, machineThing, phaseOf } from "./view.ts";

export interface VerbOptions {
  readonly comment?: string;
}

export async function acceptMachine(session: Session, machineId: string, options: VerbOptions): Promise<undefined> {
  const client = await session.client(MachineLifecycleService);
  const { comment = "" } = options;
  await printMoved(session, await client.acceptMachine({ machineId, comment }, { signal: session.signal }));
}

export interface DrainOptions extends VerbOptions {
  readonly evictBarePods?: boolean;
  readonly deleteLocalData?: boolean;
}

export async function enterMaintenance(session: Session, machineId: string, options: DrainOptions): Promise<undefined> {
  const client = await session.client(MachineLifecycleService);
  const { comment = "", evictBarePods = false, deleteLocalData = false } = options;
  const request = { machineId, comment, evictBarePods, deleteLocalData };
  await printMoved(session, await client.enterMaintenance(request, { signal: session.signal }));
}

export async function exitMaintenance(
  session: Session,
  machineId: string,
  { comment = "", acknowledge = false }: VerbOptions & { readonly acknowledge?: boolean },
): Promise<undefined> {
  const client = await session.client(MachineLifecycleService);
  const request = { machineId, comment, acknowledge };
  await printMoved(session, await client.exitMaintenance(request, { signal: session.signal }));
}

export async function returnMachine(session: Session, machineId: string, options: VerbOptions): Promise<undefined> {
  const client = await session.client(MachineLifecycleService);
  const { comment = "" } = options;
  await printMoved(session, await client.returnMachine({ machineId, comment }, { signal: session.signal }));
}

export async function retireMachine(
  session: Session,
  machineId: string,
  { comment = "", yes }: VerbOptions & ConfirmOptions,
): Promise<undefined> {
  await askToRetire(session, machineId, yes ?? false);
  const client = await session.client(MachineLifecycleService);
  await printMoved(session, await client.retireMachine({ machineId, comment }, { signal: session.signal }));
}

/** Retiring moves nothing off a machine that still serves: the operator is warned, and types its name instead of yes. */
async function askToRetire(session: Session, machineId: string, yes: boolean): Promise<void> {
  const machine = await (await session.client(MachineService)).getMachine({ machineId }, { signal: session.signal });
  const serves =
    effectiveOf(machine) === "IN_SERVICE"
      ? `It is IN_SERVICE${whereSeen(machine)}: ` +
        "its node is neither drained nor removed, and what runs there goes on unseen. `machine enter-maintenance` empties it first."
      : "";
  if (yes) {
    if (serves !== "") printLine(session.terminal.stderr, `note: ${serves}`);
    return;
  }
  const what = [`Retire machine ${machineId} for good?`, serves].filter((text) => text !== "").join(" ");
  await confirm(session, { what, ...(serves !== "" && { answer: machineId }) });
}

/** As it was last seen: the cluster that its owner wants for it may be another one. */
function whereSeen(machine: Machine): string {
  const seen = conditionOf(machine, "InCustomerCluster");
  return seen?.status && seen.message !== "" ? ` (${seen.message})` : "";
}

async function printMoved(session: Session, { machine }: { readonly machine?: Machine | undefined }): Promise<void> {
  if (!machine) throw new Error("the server answered without the machine");
  const style = session.style();
  if (style.format === "table")
    printLine(session.terminal.stdout, `Machine ${machine.machineId} is ${phaseOf(machine)} now.`);
  else await printOne(session, machineThing(machine, [], style));
}
