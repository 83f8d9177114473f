import { type Rack, RackService } from "../../../../contract/millwright/v1/rack_pb.js";
import { EXIT, UsageError } from "../../client/errors.ts";
import { followEvents } from "../../client/events.ts";
import type { Session } from "../../client/session.ts";
import { printDone } from "../../terminal/printing.ts";

export interface StartOptions {
  readonly rack: string;
  readonly machineIds?: readonly string[];
  readonly switchIds?: readonly string[];
  readonly powerShelfIds?: readonly string[];
  readonly activities?: readonly string[];
  readonly firmwareVersion?: string;
  readonly components?: readonly string[];
  readonly operation?: string;
  readonly reference?: string;
  readonly includeAssigned?: boolean;
  readonly reason?: string;
  readonly wait?: boolean;
}

const KINDS = {
  "firmware-upgrade": "firmware_upgrade",
  "configure-nmx-cluster": "configure_nmx_cluster",
  "power-sequence": "power_sequence",
} as const;
const WORDS = Object.keys(KINDS) as (keyof typeof KINDS)[];

export async function startMaintenance(session: Session, options: StartOptions): Promise<number | undefined> {
  const client = await session.client(RackService);
  const { requestId } = await client.startRackMaintenance(requestOf(options), { signal: session.signal });
  if (options.wait) return awaitEnd(session, options.rack, requestId);
  await printDone(
    session,
    `Maintenance of rack ${options.rack} is requested; \`millwright rack show ${options.rack}\` shows it.`,
    {
      rack: options.rack,
      request_id: requestId,
    },
  );
  return undefined;
}

/** What is asked for; a preview is asked for with the same. */
export const requestOf = (options: StartOptions) => ({
  rackId: options.rack,
  machineIds: [...(options.machineIds ?? [])],
  switchIds: [...(options.switchIds ?? [])],
  powerShelfIds: [...(options.powerShelfIds ?? [])],
  activities: activitiesOf(options),
  reference: options.reference ?? "",
  includeAssigned: options.includeAssigned ?? false,
  reason: options.reason ?? "",
});

/** An activity whose options are given without being listed would change what an empty list means: it is refused. */
function activitiesOf({ activities = [], firmwareVersion, components, operation }: StartOptions) {
  const unknown = activities.find((word) => !WORDS.some((known) => known === word));
  if (unknown !== undefined)
    throw new UsageError(`--activities: ${JSON.stringify(unknown)} is none of ${WORDS.join(", ")}`);
  const needs = (word: keyof typeof KINDS, isGiven: boolean, option: string) => {
    if (isGiven && activities.length > 0 && !activities.includes(word))
      throw new UsageError(`${option}: needs ${word} among --activities`);
  };
  needs(
    "firmware-upgrade",
    firmwareVersion !== undefined || components !== undefined,
    "--firmware-version, --components",
  );
  needs("power-sequence", operation !== undefined, "--operation");
  const isConfigured = firmwareVersion !== undefined || components !== undefined || operation !== undefined;
  const listed = activities.length === 0 && isConfigured ? WORDS : (activities as readonly (keyof typeof KINDS)[]);
  return listed.map((word) => ({
    kind: KINDS[word],
    ...(word === "firmware-upgrade" && { firmwareVersion: firmwareVersion ?? "", components: [...(components ?? [])] }),
    ...(word === "power-sequence" && { operation: operation ?? "" }),
  }));
}

/** Prints each state that the rack enters, until the request has ended and the rack rests again. */
async function awaitEnd(session: Session, id: string, requestId: string): Promise<number> {
  const client = await session.client(RackService);
  let shown = "";
  for await (const followed of followEvents(session, { kinds: ["rack"], from: "now" }, session.signal)) {
    if (followed.type !== "ready" && followed.event.id !== id) continue;
    const { rack } = await client.getRack({ id }, { signal: session.signal });
    if (!rack) continue;
    if (rack.stateText !== shown) session.terminal.stderr.write(`${rack.id}  ${rack.stateText}\n`);
    shown = rack.stateText;
    const ended = rack.lastRequests.find((request) => request.id === requestId);
    if (!ended || (rack.state !== "ready" && rack.state !== "error")) continue;
    return tellEnd(session, rack, ended.outcome, ended.message);
  }
  return EXIT.interrupted;
}

async function tellEnd(session: Session, rack: Rack, outcome: string, message: string): Promise<number> {
  const isGood = outcome === "completed" && rack.state === "ready";
  const why = [message, rack.error].filter((text) => text !== "").join("; ");
  await printDone(
    session,
    `Maintenance of rack ${rack.id} ${outcome}; the rack is ${rack.state}${why === "" ? "." : `: ${why}`}`,
    {
      rack: rack.id,
      outcome,
      state: rack.state,
      message: why,
    },
  );
  return isGood ? EXIT.ok : EXIT.operationFailed;
}

export async function terminateMaintenance(session: Session, id: string | undefined): Promise<undefined> {
  if (id === undefined) throw new UsageError("a rack is required: millwright rack maintenance terminate <id>");
  const client = await session.client(RackService);
  await client.terminateRackMaintenance({ rackId: id }, { signal: session.signal });
  await printDone(session, `Maintenance of rack ${id} is being terminated; a flash that has begun runs to its end.`, {
    rack: id,
  });
}

export async function reprovisionRack(
  session: Session,
  id: string,
  { reference }: { readonly reference?: string },
): Promise<undefined> {
  const client = await session.client(RackService);
  const { requestId } = await client.reprovisionRack(
    { rackId: id, reference: reference ?? "" },
    { signal: session.signal },
  );
  await printDone(session, `Reprovisioning of rack ${id} is requested; it begins as soon as the rack is ready.`, {
    rack: id,
    request_id: requestId,
  });
}

export async function clearError(session: Session, id: string): Promise<undefined> {
  const client = await session.client(RackService);
  await client.clearRackError({ rackId: id }, { signal: session.signal });
  await printDone(session, `The error of rack ${id} is cleared.`, { rack: id });
}
