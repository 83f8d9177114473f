import { decide } from "../../kernel/decide.ts";
import { AppError } from "../../kernel/errors.ts";
import type { Duration } from "../../kernel/time/duration.ts";
import { rackLifecycle } from "../../lifecycles/rack/lifecycle.ts";
import { DEVICE_KINDS } from "../../lifecycles/rack/payloads.ts";
import { planWork, type Work } from "../../lifecycles/rack/plan-work.ts";
import type { ActivityKind, Assigned, Rack, RackRequest, WorkSet } from "../../lifecycles/rack/rack.ts";
import { USUAL_LIMITS } from "../../lifecycles/rack/usual-limits.ts";
import type { NewChild } from "../../runs/children/child-run.ts";
import type { Step } from "../../runs/model/plan/plan.ts";
import { planOfMaintenance } from "../../runs/workflows/rack/plan-of-rack.ts";
import { activityOf } from "../../runs/workflows/rack/rack-progress.ts";
import { listRackFirmware } from "../../store/rack-firmware/rack-firmware.ts";
import { readMaintenanceDuration } from "../../store/run/rack-durations.ts";
import type { Caller } from "../call/caller.ts";
import { nowOf } from "../call/deps.ts";
import { describeInitiator } from "../call/initiator.ts";
import type { RunDeps } from "../run/deps.ts";
import { checkInput, findStartable, type StartRackMaintenance } from "./maintenance.ts";
import { type PreviewedDevice, previewDevices } from "./preview-devices.ts";
import { findHolders, type PreviewedHolder } from "./preview-holders.ts";

export interface PreviewedStage {
  readonly name: string;
  readonly activity: ActivityKind;
  /** How many devices it works on. */
  readonly devices: number;
  /** Why it would be skipped, or would fail; both null: it would be carried out. */
  readonly skipped: string | null;
  readonly fails: string | null;
}

export interface PreviewedAssignedTray {
  readonly id: string;
  readonly assigned: Exclude<Assigned, "no">;
  /** What that does to the maintenance, and the maintenance to its user. */
  readonly message: string;
}

export interface RackPreview {
  readonly rackId: string;
  readonly devices: readonly PreviewedDevice[];
  readonly leftOut: WorkSet["leftOut"];
  readonly stages: readonly PreviewedStage[];
  /** The record of firmware that is worked with; null: none. */
  readonly firmware: string | null;
  readonly holders: readonly PreviewedHolder[];
  readonly assignedTrays: readonly PreviewedAssignedTray[];
  readonly expectedDuration: Duration | null;
  /** What the duration is known from, or why it is not known. */
  readonly durationBasis: string;
  readonly notes: readonly string[];
}

export type PreviewDeps = Pick<RunDeps, "db" | "lists" | "stores" | "steps" | "clock" | "rackLimits" | "readFirmware">;

/**
 * What `startRackMaintenance` would lead to with the same input, without doing it: refused for the same reasons, and planned as the rack
 * itself plans. The devices are asked for their firmware; nothing is written, to them or to the database.
 */
export async function previewRackMaintenance(
  deps: PreviewDeps,
  caller: Caller,
  input: StartRackMaintenance,
): Promise<RackPreview> {
  const asked = checkInput(input);
  const rack = await askedFor(deps, caller, asked);
  // A pending reprovision would come first; what is previewed is this request.
  const work = planWork({ ...rack, reprovisionRequest: null }, deps.rackLimits ?? USUAL_LIMITS);
  if (work?.type !== "work")
    throw new AppError("failed_precondition", `rack ${rack.id} ${work?.why ?? "would not be maintained"}`, {
      field: "rack_id",
    });
  const plan = planOfMaintenance(work.payloads, deps.steps);
  const children = plan.steps.map((step) => childrenOf(deps, rack, step));
  const devices = await previewDevices(deps, devicesOf(work), children.flat());
  const stages = plan.steps.map((step, at) => stageOf(step, children[at] ?? []));
  return {
    rackId: rack.id,
    devices,
    leftOut: work.workSet.leftOut,
    stages,
    firmware: work.workSet.firmware?.id ?? null,
    holders: await findHolders(deps, rack, work),
    assignedTrays: assignedIn(rack, devices),
    ...(await durationOf(deps, rack, { stages, devices })),
    notes: notesOn(rack, work),
  };
}

/** The rack as it would be with the request pending. */
async function askedFor(deps: PreviewDeps, caller: Caller, asked: StartRackMaintenance): Promise<Rack> {
  const rack = await findStartable(deps.db, asked);
  const { scope, activities, includeAssigned, reference } = asked;
  const request: RackRequest = {
    id: "preview",
    initiator: describeInitiator(caller.name, reference),
    requested_at: nowOf(deps).toISOString(),
    scope,
    activities,
    ...(includeAssigned && { include_assigned: includeAssigned }),
  };
  const version = activities.flatMap((each) =>
    each.kind === "firmware_upgrade" && each.firmware_version ? [each.firmware_version] : [],
  );
  const [requestedFirmware = null] = version.length === 0 ? [] : await listRackFirmware(deps.db, { ids: version });
  return { ...rack, maintenanceRequest: request, requestedFirmware };
}

const devicesOf = ({ workSet: { machines, switches, shelves } }: Work) => [
  ...machines.map((id) => ({ kind: DEVICE_KINDS.compute, id })),
  ...switches.map((id) => ({ kind: DEVICE_KINDS.switch, id })),
  ...shelves.map((id) => ({ kind: DEVICE_KINDS.power_shelf, id })),
];

const isText = (value: unknown): value is string => typeof value === "string";
const skipOf = ({ payload: { skip } }: Step): string | null => (isText(skip) ? skip : null);
const refusalOf = ({ payload: { refuse } }: Step): string | null =>
  refuse !== null && typeof refuse === "object" && "message" in refuse ? String(refuse.message) : null;

/** The runs that the stage would start, by the code that starts them. */
const childrenOf = ({ steps }: PreviewDeps, rack: Rack, step: Step): readonly NewChild[] =>
  skipOf(step) !== null || refusalOf(step) !== null ? [] : (steps.get(step.kind)?.children?.(rack, step.payload) ?? []);

function stageOf(step: Step, children: readonly NewChild[]): PreviewedStage {
  const { switches } = step.payload;
  return {
    name: step.name,
    activity: activityOf(step.name),
    devices: children.length > 0 ? children.length : Array.isArray(switches) ? switches.length : 0,
    skipped: skipOf(step),
    fails: refusalOf(step),
  };
}

/** What becomes of trays that somebody uses, or may use. */
export function assignedIn(rack: Rack, devices: readonly PreviewedDevice[]): readonly PreviewedAssignedTray[] {
  const isShared = devices.some(({ kind }) => kind !== DEVICE_KINDS.compute);
  return rack.trays.flatMap(({ id, assigned }): PreviewedAssignedTray[] => {
    if (assigned === "no") return [];
    const device = devices.find((each) => each.id === id);
    const suffers = device?.disturbances.join(", ") || "is worked on";
    const reason = rack.maintenanceRequest?.include_assigned?.reason ?? "";
    const message =
      device === undefined
        ? isShared
          ? `is not touched itself, although switches or shelves that it depends on are: ${reason}`
          : "is not in scope, and no switch or shelf that it depends on is: nothing of it is touched"
        : `${suffers}, although it ${assigned === "yes" ? "is" : "may be"} in use: ${reason}`;
    return [{ id, assigned, message }];
  });
}

async function durationOf(
  deps: PreviewDeps,
  { profileId }: Rack,
  { stages, devices }: Pick<RackPreview, "stages" | "devices">,
): Promise<Pick<RackPreview, "expectedDuration" | "durationBasis">> {
  const flashes = devices.some(({ components }) => components.some(({ change }) => change !== "stays"));
  const done = stages.filter(({ skipped }) => skipped === null).map(({ name }) => name);
  const known = await readMaintenanceDuration(deps.lists ?? deps.db, { profileId, stages: done, flashes });
  if (known === undefined)
    return { expectedDuration: null, durationBasis: "no maintenance of this kind has succeeded yet" };
  const what = `with the same profile and stages${flashes ? ", which flashed devices" : ""}`;
  const basis = `median of ${known.runs === 1 ? "one maintenance" : `${known.runs} maintenances`} of racks ${what}`;
  return { expectedDuration: known.median, durationBasis: basis };
}

/** What comes before the maintenance, or besides. */
function notesOn(rack: Rack, { workSet }: Work): readonly string[] {
  const { reprovisionRequest, state } = rack;
  const decision = decide(rackLifecycle, rack);
  const isRediscovered = decision.kind === "move" && decision.move.to === "discovering";
  const onlyKept = (workSet.unused ?? []).filter((id) => !workSet.machines.includes(id));
  return [
    ...(isRediscovered
      ? [
          "its devices or its profile have changed: the rack is discovered and maintained as a whole before this request",
        ]
      : []),
    ...(reprovisionRequest !== null && state.name === "ready"
      ? [`a reprovision by ${reprovisionRequest.initiator} is pending: it comes first, and supersedes this request`]
      : []),
    ...(onlyKept.length > 0
      ? [
          `${onlyKept.length} compute trays that are not in scope depend on its switches and shelves: nobody can be given one meanwhile`,
        ]
      : []),
  ];
}
