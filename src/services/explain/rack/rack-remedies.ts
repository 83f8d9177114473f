import type { Cause } from "../../../kernel/causes.ts";
import { causeInDetails, parseCause } from "../../../kernel/stored-cause.ts";
import { countMembers, describeCounts } from "../../../lifecycles/rack/members.ts";
import type { Activity, EndedRackRequest, MaintenanceScope, RackRequest } from "../../../lifecycles/rack/rack.ts";
import { suitsHardware } from "../../../lifecycles/rack-firmware/rack-firmware.ts";
import type { Run } from "../../../runs/model/run.ts";
import { describeVersions } from "../../../runs/steps/rack/firmware-parts.ts";
import { POWER } from "../../../runs/steps/rack/validate-device.ts";
import type { RackRecord } from "../../../store/rack/racks.ts";
import { listRackFirmware } from "../../../store/rack-firmware/rack-firmware.ts";
import { listRuns } from "../../../store/run/runs.ts";
import type { ServiceDeps } from "../../call/deps.ts";
import { readRunTree } from "../../run/read.ts";
import { type NextCommand, say } from "../explanation.ts";
import { machineRemedies } from "../machine-remedies.ts";

/** What a component shows that does not run what was written to it. */
const NO_VERSION = describeVersions([{ version: null }]);

/** Why the work of a rack has failed, as far as what helps depends on it. */
export interface RackFailure {
  /** The runs on devices that have failed, the first first. */
  readonly failed: readonly Run[];
  /** Those that go on by themselves, since nobody could read how they ended. */
  readonly unread: readonly Run[];
  /** The request that failed; null: nobody asked for it. */
  readonly request: EndedRackRequest | null;
}

/** By the newest run on the rack, whether it was maintained or validated. */
export async function findRackFailure(deps: ServiceDeps, rack: RackRecord): Promise<RackFailure> {
  const runs = await listRuns(deps.db, { target: { kind: "rack", id: rack.id }, limit: 2 });
  const [newest] = runs;
  const children = newest === undefined ? [] : (await readRunTree(deps, newest)).children;
  const of = (wanted: Run["phase"]) => children.map(({ run }) => run).filter(({ phase }) => phase === wanted);
  // A validation follows upon the maintenance, whose request ended with it.
  const begun = runs.at(newest?.plan.workflow === "rack_validation" ? 1 : 0)?.createdAt;
  const { lastMaintenanceRequest: last } = rack;
  const isIts = last !== null && begun !== undefined && new Date(last.ended_at) >= begun;
  return { failed: of("FAILED"), unread: of("RUNNING"), request: isIts ? last : null };
}

/** What leads a rack out of an error that its work left: the first command changes something, whatever the cause is. */
export async function rackRemedies(
  deps: ServiceDeps,
  rack: RackRecord,
  { failed, unread, request }: RackFailure,
): Promise<NextCommand[]> {
  const again = repeat(rack, request, "tries again what failed; devices that are up to date are left alone");
  const cause = parseCause(rack.state.failure);
  const unproven = [...rack.trays, ...rack.switches, ...rack.shelves].flatMap(({ id, unprovenRun }) =>
    unprovenRun === null ? [] : [release(id, unprovenRun)],
  );
  if (unproven.length > 0) return [...unread.flatMap(deviceRemedies), ...unproven, again];
  if (cause?.code === "firmware_unknown" || cause?.code === "firmware_mismatch") {
    const list = say("rack-firmware list", "lists the known firmware and the hardware that each is for");
    return [...(await withOtherFirmware(deps, rack, request)), list, again];
  }
  // What was written is no firmware of this component: the same once more would be as wrong.
  if (namedFirmware(request) && failed.map(causeOf).some((each) => each?.facts?.shown === NO_VERSION))
    return [...(await withOtherFirmware(deps, rack, request)), again];
  return [...failed.flatMap(deviceRemedies), ...switchOn(rack, failed), again];
}

/** What makes devices ready that keep their rack from it; what each of them says itself comes before what is missing. */
export function unreadyRemedies(rack: RackRecord): NextCommand[] {
  const failed = rack.trays.filter(({ reprovision, inMaas }) => reprovision === "failed_firmware_upgrade" && !inMaas);
  const silent = rack.trays.find(({ ready, reprovision }) => !ready && (reprovision ?? "ready") === "ready");
  const inError = (devices: readonly { readonly id: string; readonly state: string }[]) =>
    devices.find(({ state }) => state === "error");
  const [sw, shelf] = [inError(rack.switches), inError(rack.shelves)];
  const isShort = countMembers(rack).some(({ have, expected }) => have < expected);
  return [
    ...(failed.length === 0
      ? []
      : [
          say(
            `machine reprovision ${failed.map(({ id }) => id).join(" ")}`,
            "tries the firmware upgrade that failed again at once",
          ),
          say(`explain host_reprovision ${failed[0]?.id}`, "says why the upgrade failed"),
        ]),
    ...(sw ? [say(`explain switch ${sw.id}`, "says why the switch is in error, and what helps")] : []),
    ...(shelf ? [say(`explain power_shelf ${shelf.id}`, "says why the power shelf is in error, and what helps")] : []),
    ...(silent ? [say(`explain machine ${silent.id}`, "says why its BMC has not answered, and what helps")] : []),
    ...(isShort
      ? [say("site apply -f site.yaml --dry-run", `shows what the site lacks: ${describeCounts(rack)}`)]
      : []),
  ];
}

/** Devices that were found off when the rack was validated: the same work once more would leave them off. */
function switchOn(rack: RackRecord, failed: readonly Run[]): NextCommand[] {
  const off = failed.filter((run) => {
    const cause = causeOf(run);
    return cause?.code === "device_unfit" && cause.facts?.what === POWER;
  });
  const of = (kind: string) => off.filter(({ target }) => target.kind === kind).map(({ target }) => target.id);
  if (off.length === 0) return [];
  const scope = { machine_ids: of("machine"), switch_ids: of("switch"), power_shelf_ids: of("power_shelf") };
  const words = [`rack maintenance start --rack ${rack.id}`, ...scopeWords(scope), "--activities power-sequence"];
  return [say(words.join(" "), "switches on what is off")];
}

const causeOf = ({ error, steps }: Run): Cause | null =>
  error === null ? (steps.at(-1)?.cause ?? null) : causeInDetails(error.details);

/** What puts right why one device failed, where a command of ours does. */
function deviceRemedies(run: Run): NextCommand[] {
  const { kind, id } = run.target;
  const cause = causeOf(run);
  if (kind === "machine") return machineRemedies(cause, id);
  const isShutOut = cause?.code === "credentials_rejected" || cause?.code === "sign_in_stopped";
  if (kind !== "power_shelf" || !isShutOut) return [];
  return [
    say(`power-shelf set-credentials ${id} --bmc-username <name>`, "sets other credentials, which are tried at once"),
  ];
}

const release = (device: string, run: string): NextCommand =>
  say(
    `run cancel ${run}`,
    `asks ${device} once more and then releases it: only when nothing is written to it any more`,
  );

/** A ready rack whose last request named firmware that was not there to be written; the work goes on once it is. */
export async function skippedFirmware(
  deps: ServiceDeps,
  rack: RackRecord,
): Promise<{ readonly why: string; readonly commands: readonly NextCommand[] } | undefined> {
  const { lastMaintenanceRequest: request, facts } = rack;
  const id = namedFirmware(request);
  if (request?.outcome !== "completed" || id === undefined || facts.workSet?.firmware !== null) return undefined;
  const [firmware] = await listRackFirmware(deps.db, { ids: [id] });
  if (firmware === undefined) return undefined;
  const again = repeat(rack, request, `flashes ${id}, which is available now`);
  if (firmware.available) return { why: `firmware ${id} was not available`, commands: [again] };
  const get = say(`rack-firmware get ${id}`, "shows its files, and how far their download has come");
  const download = say(`rack-firmware download ${id}`, "downloads its files again, once the reason is mended");
  return {
    why: `firmware ${id} is not available`,
    commands: firmware.state.name === "failed" ? [download, get] : [get],
  };
}

/** The same request with firmware that there is for this hardware: the one with the most similar id, or the default. */
async function withOtherFirmware(
  { db }: ServiceDeps,
  rack: RackRecord,
  request: RackRequest | null,
): Promise<NextCommand[]> {
  const hardware = rack.profile?.hardwareType ?? null;
  const asked = namedFirmware(request) ?? "";
  const fit = (await listRackFirmware(db)).filter((each) => each.available && suitsHardware(each, hardware));
  const likeness = ({ id }: { readonly id: string }) => commonStart(id, asked);
  const [closest] = fit
    .filter((each) => each.id !== asked && likeness(each) >= asked.length / 2)
    .sort((one, other) => likeness(other) - likeness(one));
  if (closest !== undefined)
    return [
      repeat(rack, request, `asks for ${closest.id} instead, which is for hardware type ${hardware}`, closest.id),
    ];
  return rack.defaultFirmware?.available
    ? [repeat(rack, request, `flashes the default of hardware type ${hardware} instead`, "")]
    : [];
}

function commonStart(one: string, other: string): number {
  let length = 0;
  while (length < one.length && one[length] === other[length]) length += 1;
  return length;
}

const namedFirmware = (request: RackRequest | null): string | undefined =>
  request?.activities.flatMap((each) =>
    each.kind === "firmware_upgrade" && each.firmware_version ? [each.firmware_version] : [],
  )[0];

/** The request as it was typed. Where nobody asked for the work, it is that of the same devices. */
function repeat(rack: RackRecord, request: RackRequest | null, why: string, firmware?: string): NextCommand {
  const words = [
    `rack maintenance start --rack ${rack.id}`,
    ...scopeWords(request?.scope ?? workedOn(rack)),
    ...activityWords(request?.activities ?? [], firmware),
    ...(request?.include_assigned ? ["--include-assigned --reason <text>"] : []),
  ];
  return say(words.join(" "), why);
}

const scopeWords = ({ machine_ids, switch_ids, power_shelf_ids }: MaintenanceScope): string[] => [
  ...list("--machine-ids", machine_ids),
  ...list("--switch-ids", switch_ids),
  ...list("--power-shelf-ids", power_shelf_ids),
];

const list = (option: string, values: readonly string[]): string[] =>
  values.length === 0 ? [] : [`${option} ${values.join(",")}`];

/** The whole rack, unless trays in use were left out: a request that covers those is refused. */
function workedOn({ facts: { workSet } }: RackRecord): MaintenanceScope {
  const isWhole = workSet === null || workSet.leftOut.length === 0;
  return {
    machine_ids: isWhole ? [] : workSet.machines,
    switch_ids: isWhole ? [] : workSet.switches,
    power_shelf_ids: isWhole ? [] : workSet.shelves,
  };
}

function activityWords(activities: readonly Activity[], firmware: string | undefined): string[] {
  const words = activities.map(({ kind }) => kind.replaceAll("_", "-"));
  const configured = activities.flatMap((activity) => {
    switch (activity.kind) {
      case "firmware_upgrade": {
        const version = firmware ?? activity.firmware_version ?? "";
        return [
          ...(version === "" ? [] : [`--firmware-version ${version}`]),
          ...list("--components", activity.components ?? []),
        ];
      }
      case "power_sequence":
        return activity.operation === undefined ? [] : [`--operation ${activity.operation}`];
      default:
        return [];
    }
  });
  return [...list("--activities", words), ...configured];
}
