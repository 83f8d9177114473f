import { randomUUID } from "node:crypto";
import {
  BootDevice,
  type MachinePower,
  MachinePowerSchema,
  MachinePowerService,
  type MachineRunResult,
  PowerOperation,
} from "../../../../contract/millwright/v1/machine_pb.js";
import { EXIT } from "../../client/errors.ts";
import { jsonOf } from "../../client/proto-json.ts";
import type { Session } from "../../client/session.ts";
import { type ConfirmOptions, confirm } from "../../terminal/confirm.ts";
import type { Column } from "../../terminal/output.ts";
import { printable } from "../../terminal/printable.ts";
import { printList } from "../../terminal/printing.ts";
import { showStartedRuns } from "../run/start-many.ts";
import { servingOf } from "./serving.ts";

const POWER_WORDS = { on: PowerOperation.ON, off: PowerOperation.OFF, cycle: PowerOperation.CYCLE } as const;
export type PowerWord = keyof typeof POWER_WORDS;

const DEVICES: Readonly<Record<string, BootDevice>> = {
  pxe: BootDevice.PXE,
  http: BootDevice.HTTP,
  disk: BootDevice.DISK,
  cd: BootDevice.CD,
  none: BootDevice.NONE,
};

export interface PowerOptions extends ConfirmOptions {
  readonly wait?: boolean;
  readonly requestId?: string;
}

export async function setPower(
  session: Session,
  word: PowerWord,
  ids: readonly string[],
  { wait = false, requestId = randomUUID(), yes = false }: PowerOptions,
): Promise<number | undefined> {
  const machineIds = [...new Set(ids)];
  if (word !== "on" && !yes) await confirmServing(session, word, machineIds);
  const client = await session.client(MachinePowerService);
  const request = { machineIds, operation: POWER_WORDS[word], requestId };
  const { results } = await client.setMachinePower(request, { signal: session.signal });
  return showResults(session, results, wait);
}

export async function setBootDevice(
  session: Session,
  ids: readonly string[],
  { device, wait = false, requestId = randomUUID() }: PowerOptions & { readonly device: string },
): Promise<number | undefined> {
  const client = await session.client(MachinePowerService);
  const request = { machineIds: [...new Set(ids)], device: DEVICES[device] ?? BootDevice.UNSPECIFIED, requestId };
  const { results } = await client.setBootDevice(request, { signal: session.signal });
  return showResults(session, results, wait);
}

/** Whoever cuts the power of machines that serve a cluster says yes to it. */
async function confirmServing(session: Session, word: PowerWord, machineIds: readonly string[]): Promise<void> {
  const serving = await servingOf(session, machineIds);
  if (serving.length === 0) return;
  const many = serving.length === 1 ? "serves a cluster and is not drained" : "serve a cluster and are not drained";
  await confirm(session, { what: `${serving.join(", ")} ${many}. Power ${word}?` });
}

async function showResults(
  session: Session,
  results: readonly MachineRunResult[],
  wait: boolean,
): Promise<number | undefined> {
  const refusals = results.filter(({ run }) => run === undefined);
  for (const { machineId, refusal, next } of refusals) {
    const hint = next === "" ? "" : `; ${next}`;
    session.terminal.stderr.write(`error: ${machineId}: ${printable(`${refusal}${hint}`)}\n`);
  }
  const started = results.flatMap(({ machineId, run }) =>
    run ? [{ run, target: { kind: "machine", id: machineId }, children: [], stepDetails: [] }] : [],
  );
  return showStartedRuns(session, { started, refused: refusals.length > 0 ? EXIT.precondition : undefined, wait });
}

const columns: readonly Column<MachinePower>[] = [
  { title: "MACHINE", cell: ({ machineId }) => machineId },
  { title: "POWER", cell: ({ power }) => power },
  { title: "NOTE", cell: noteOf },
];

function noteOf({ error, offByRunId }: MachinePower): string {
  const purpose = offByRunId === "" ? [] : [`off on purpose, by run ${offByRunId}`];
  return [...(error === "" ? [] : [`as last seen: ${error}`]), ...purpose].join("; ");
}

/** Exit code 6 when one of the BMCs did not answer. */
export async function showPower(session: Session, ids: readonly string[]): Promise<number | undefined> {
  const client = await session.client(MachinePowerService);
  const { machines } = await client.getMachinePower({ machineIds: [...new Set(ids)] }, { signal: session.signal });
  const json = (machine: MachinePower) => jsonOf(MachinePowerSchema, machine);
  await printList(session, { items: machines, columns, json }, "No machines.");
  return machines.some(({ error }) => error !== "") ? EXIT.unavailable : undefined;
}
