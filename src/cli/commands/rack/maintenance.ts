import { type Rack, RackService } from "../../../../contract/millwright/v1/rack_pb.js";
import { CliError, EXIT, UsageError } from "../../client/errors.ts";
import { followEvents } from "../../client/events.ts";
import type { Session } from "../../client/session.ts";
import { printDone, printLine } from "../../terminal/printing.ts";
import { actOnEach, chosenIds, type Done, printResults, type Result, resultOf } from "../device/many.ts";
import type { Chosen } from "../device/many-options.ts";
import { readRacks } from "./list.ts";

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

/** The same as it is typed: several racks, or those that a filter chooses. */
export interface StartManyOptions extends Omit<StartOptions, "rack"> {
  readonly rack?: readonly string[];
  readonly filter?: string;
  readonly yes?: boolean;
}

const KINDS = {
  "firmware-upgrade": "firmware_upgrade",
  "configure-nmx-cluster": "configure_nmx_cluster",
  "power-sequence": "power_sequence",
} as const;
const WORDS = Object.keys(KINDS) as (keyof typeof KINDS)[];

/** Of one rack, or of several that are maintained in the same way: each is requested before any is waited for. */
export async function startMaintenance(session: Session, options: StartManyOptions): Promise<number | undefined> {
  const { rack: _, filter, yes: __, ...rest } = options;
  const racks = await racksOf(session, options);
  const [only] = racks;
  if (only !== undefined && racks.length === 1 && filter === undefined) {
    const requested = await start(session, { ...rest, rack: only });
    const { sentence, facts, failed } = rest.wait ? await awaitEnd(session, only, requested.requestId) : requested;
    await printDone(session, sentence, facts);
    return failed;
  }
  const results: Result[] = [];
  const requests = new Map<string, string>();
  for (const rack of racks)
    results.push(
      await resultOf(session, rack, async () => {
        const requested = await start(session, { ...rest, rack });
        requests.set(rack, requested.requestId);
        return requested;
      }),
    );
  if (!rest.wait) return printResults(session, results);
  return printResults(session, await Promise.all(results.map(awaited)));

  async function awaited(result: Result): Promise<Result> {
    const requestId = requests.get(result.id);
    return requestId === undefined
      ? result
      : resultOf(session, result.id, () => awaitEnd(session, result.id, requestId));
  }
}

async function start(session: Session, options: StartOptions): Promise<Done & { readonly requestId: string }> {
  const client = await session.client(RackService);
  const request = requestOf(await withDeviceIds(session, options));
  const { requestId } = await client.startRackMaintenance(request, { signal: session.signal });
  const { rack } = options;
  const sentence = `Maintenance of rack ${rack} is requested; \`millwright rack show ${rack} --watch\` follows it.`;
  return { sentence, facts: { rack, request_id: requestId }, requestId };
}

/** A device belongs to one rack: where several are given, the others would refuse it. */
export async function racksOf(session: Session, options: StartManyOptions): Promise<readonly string[]> {
  const { rack: ids = [], filter, yes, machineIds, switchIds, powerShelfIds } = options;
  const chosen = { ids, ...(filter !== undefined && { filter }), ...(yes !== undefined && { yes }) };
  const hasDevices = (machineIds ?? switchIds ?? powerShelfIds) !== undefined;
  if (hasDevices && (filter !== undefined || new Set(ids).size > 1))
    throw new UsageError(
      "--machine-ids, --switch-ids, --power-shelf-ids: name devices of one rack; several racks are given",
      "`millwright component firmware update` takes devices of several racks",
    );
  const verb = { ...RACKS, word: "start the maintenance of", list: listIds(session) };
  return chosenIds(session, verb, chosen);
}

/** The names of switches and power shelves stand for their ids. */
export async function withDeviceIds(session: Session, options: StartOptions): Promise<StartOptions> {
  const { switchIds, powerShelfIds } = options;
  return {
    ...options,
    ...(switchIds && { switchIds: await (await import("../switch/names.ts")).resolveSwitches(session, switchIds) }),
    ...(powerShelfIds && {
      powerShelfIds: await (await import("../power-shelf/names.ts")).resolveShelves(session, powerShelfIds),
    }),
  };
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
async function awaitEnd(session: Session, id: string, requestId: string): Promise<Done> {
  const client = await session.client(RackService);
  let shown = "";
  for await (const followed of followEvents(session, { kinds: ["rack"], ids: [id], from: "now" }, session.signal)) {
    if (followed.type !== "ready" && followed.event.id !== id) continue;
    const { rack } = await client.getRack({ id }, { signal: session.signal });
    if (!rack) continue;
    if (rack.stateText !== shown) printLine(session.terminal.stderr, `${rack.id}  ${rack.stateText}`);
    shown = rack.stateText;
    const isPending = rack.pendingRequests.some((request) => request.id === requestId);
    if (isPending || (rack.state !== "ready" && rack.state !== "error")) continue;
    const ended = rack.lastRequests.find((request) => request.id === requestId);
    return endOf(rack, ended?.outcome ?? "ended, and another one came after it", ended?.message ?? "");
  }
  printLine(session.terminal.stderr, `Stopped waiting; the maintenance goes on: millwright rack show ${id} --watch`);
  throw new CliError(EXIT.interrupted, "interrupted");
}

function endOf(rack: Rack, outcome: string, message: string): Done {
  const isGood = outcome === "completed" && rack.state === "ready";
  const why = [...new Set([message, rack.error])].filter((text) => text !== "").join("; ");
  return {
    sentence: `Maintenance of rack ${rack.id} ${outcome}; the rack is ${rack.state}${why === "" ? "." : `: ${why}`}`,
    facts: { rack: rack.id, outcome, state: rack.state, message: why },
    ...(!isGood && { failed: EXIT.operationFailed }),
  };
}

/** What a filter admits, those that need somebody first. */
const listIds = (session: Session) => async (filter: string) =>
  (await readRacks(session, { filter })).items.map(({ id }) => id);
const RACKS = { noun: "rack", nouns: "racks" } as const;

export function terminateMaintenance(session: Session, chosen: Chosen): Promise<number | undefined> {
  const act = async (id: string): Promise<Done> => {
    const client = await session.client(RackService);
    await client.terminateRackMaintenance({ rackId: id }, { signal: session.signal });
    const sentence = `Maintenance of rack ${id} is being terminated; a flash that has begun runs to its end.`;
    return { sentence, facts: { rack: id } };
  };
  return actOnEach(session, { ...RACKS, word: "terminate the maintenance of", list: listIds(session), act }, chosen);
}

export async function resumeMaintenance(session: Session): Promise<undefined> {
  const client = await session.client(RackService);
  const { overlooked, waiting } = await client.resumeRackMaintenance({}, { signal: session.signal });
  const failures =
    overlooked.length === 0
      ? "No failure was in the way"
      : `Maintenance begins by itself again; failures that count no more: ${overlooked.join(", ")}`;
  await printDone(session, `${failures}. Racks that wait to begin: ${waiting.length}.`, {
    overlooked: [...overlooked],
    waiting: [...waiting],
  });
}

export function reprovisionRacks(
  session: Session,
  { reference = "", ...chosen }: Chosen & { readonly reference?: string },
): Promise<number | undefined> {
  const act = async (id: string): Promise<Done> => {
    const client = await session.client(RackService);
    const { requestId } = await client.reprovisionRack({ rackId: id, reference }, { signal: session.signal });
    const sentence = `Reprovisioning of rack ${id} is requested; it begins as soon as the rack is ready.`;
    return { sentence, facts: { rack: id, request_id: requestId } };
  };
  return actOnEach(session, { ...RACKS, word: "reprovision", list: listIds(session), act }, chosen);
}

export function clearErrors(session: Session, chosen: Chosen): Promise<number | undefined> {
  const act = async (id: string): Promise<Done> => {
    const client = await session.client(RackService);
    await client.clearRackError({ rackId: id }, { signal: session.signal });
    return { sentence: `The error of rack ${id} is cleared.`, facts: { rack: id } };
  };
  return actOnEach(session, { ...RACKS, word: "clear the error of", list: listIds(session), act }, chosen);
}
