import { isWholeRack } from "../../lifecycles/rack/scope.ts";
import { isActive, type Run } from "../../runs/model/run.ts";
import { WRITES_FIRMWARE } from "../../runs/targets/writes-firmware.ts";
import { findPlacedDevices } from "../../store/component/devices.ts";
import {
  type FirmwareRequest,
  findCurrentFirmwareRequests,
  findFirmwareRuns,
  listFirmwareRequests,
} from "../../store/component/firmware-runs.ts";
import type { Queryable } from "../../store/postgres/database.ts";
import type { ServiceDeps } from "../call/deps.ts";
import { type ComponentKind, type ComponentTarget, checkTarget, unknownComponent } from "./component-ids.ts";
import { findKnownRacks } from "./racks.ts";
import { type ComponentOutcome, refused, succeeded } from "./results.ts";

const FIRMWARE_STATES = ["unknown", "queued", "in_progress", "verifying", "completed", "failed", "cancelled"] as const;
export type FirmwareState = (typeof FIRMWARE_STATES)[number];

export interface FirmwareStatus {
  readonly result: ComponentOutcome;
  readonly state: FirmwareState;
  /** Id of a record of rack firmware; empty where nothing was written yet. */
  readonly targetVersion: string;
  readonly updatedAt: Date | null;
  /** Why it failed, for people. */
  readonly message: string;
}

const nothing = (result: ComponentOutcome): FirmwareStatus => ({
  result,
  state: "unknown",
  targetVersion: "",
  updatedAt: null,
  message: "",
});

/** How far the last firmware upgrade of each device is: by its run, and before there is one by its rack's request. */
export async function readFirmwareStatus(
  deps: ServiceDeps,
  target: ComponentTarget,
): Promise<readonly FirmwareStatus[]> {
  const ids = checkTarget(deps, target);
  const { kind } = target;
  if (kind === "rack") return statusOfRacks(deps.db, ids);
  const devices = await findPlacedDevices(deps.db, kind, ids);
  const runs = await findFirmwareRuns(deps.db, { kind, ids });
  const racks = [...new Set([...devices.values()].flatMap(({ rackId }) => rackId ?? []))];
  const requests = racks.length === 0 ? new Map() : await findCurrentFirmwareRequests(deps.db, racks);
  return ids.map((id) => {
    const device = devices.get(id);
    if (!device) return nothing(refused(id, unknownComponent(kind, id)));
    const run = runs.get(id);
    const ofRack: readonly FirmwareRequest[] = requests.get(device.rackId ?? "") ?? [];
    const pending = ofRack.find((request) => request.outcome === null && covers(request, kind, id));
    if (pending && (run === undefined || run.createdAt < pending.at)) return statusOfRequest(id, pending);
    return run ? statusOfRun(id, run) : nothing(succeeded(id));
  });
}

const LISTS = { machine: "machine_ids", switch: "switch_ids", power_shelf: "power_shelf_ids" } as const;

/** A request that names devices says nothing of the others of its rack. */
const covers = ({ scope }: FirmwareRequest, kind: keyof typeof LISTS, id: string): boolean =>
  scope === null || isWholeRack(scope) || scope[LISTS[kind]].includes(id);

function statusOfRun(id: string, run: Run): FirmwareStatus {
  const payload = run.plan.steps.find(({ kind }) => WRITES_FIRMWARE.has(kind))?.payload;
  const version = payload?.firmware_id;
  return {
    result: succeeded(id),
    state: stateOfRun(run),
    targetVersion: typeof version === "string" ? version : "",
    updatedAt: run.finishedAt ?? run.startedAt ?? run.createdAt,
    message: run.error?.message ?? "",
  };
}

function stateOfRun(run: Run): FirmwareState {
  if (run.phase === "PENDING") return "queued";
  if (isActive(run.phase)) {
    const current = run.steps.findLast(({ state }) => state === "RUNNING" || state === "WAITING")?.name;
    const kind = run.plan.steps.find(({ name }) => name === current)?.kind;
    return kind === "activate_firmware" ? "verifying" : "in_progress";
  }
  return run.phase === "SUCCEEDED" ? "completed" : run.phase === "CANCELED" ? "cancelled" : "failed";
}

const STATE_OF_OUTCOME: Readonly<Record<string, FirmwareState>> = {
  completed: "completed",
  failed: "failed",
  expired: "failed",
  superseded: "cancelled",
  withdrawn: "cancelled",
};

const statusOfRequest = (id: string, request: FirmwareRequest): FirmwareStatus => ({
  result: succeeded(id),
  state: request.outcome === null ? "queued" : (STATE_OF_OUTCOME[request.outcome] ?? "unknown"),
  targetVersion: request.firmwareId ?? "",
  updatedAt: request.endedAt ?? request.at,
  message: request.outcome === "completed" ? "" : (request.message ?? ""),
});

async function statusOfRacks(db: Queryable, ids: readonly string[]): Promise<readonly FirmwareStatus[]> {
  const racks = await findKnownRacks(db, ids);
  const requests = await findCurrentFirmwareRequests(db, ids);
  return ids.map((id) => {
    const rack = racks.get(id);
    if (!rack) return nothing(refused(id, unknownComponent("rack", id)));
    const [request] = requests.get(id) ?? [];
    if (!request) return nothing(succeeded(id));
    const status = statusOfRequest(id, request);
    const isAtWork = request.outcome === null && rack.carriesOut === request.requestId;
    return isAtWork ? { ...status, state: "in_progress" } : status;
  });
}

/** What a job of one device is: the request of its rack, and the device. */
export const jobIdOf = (requestId: string, deviceId: string): string => `${requestId}.${deviceId}`;

export interface FirmwareJob {
  readonly jobId: string;
  readonly status: FirmwareStatus;
  readonly rackId: string;
  readonly deviceId: string;
}

/** Undefined: there is no such job. */
export async function readFirmwareJob(deps: ServiceDeps, jobId: string): Promise<FirmwareJob | undefined> {
  const at = jobId.indexOf(".");
  const [requestId, deviceId] = [jobId.slice(0, at), jobId.slice(at + 1)];
  if (at <= 0 || deviceId === "") return undefined;
  const [request] = await listFirmwareRequests(deps.db, { requestId }, 1);
  if (!request) return undefined;
  const { rackId } = request;
  const ofRack = { rackId, from: request.at, to: request.endedAt ?? new Date(8.64e15) };
  for (const kind of ["machine", "switch", "power_shelf"] as const satisfies readonly ComponentKind[]) {
    const run = (await findFirmwareRuns(deps.db, { kind, ids: [deviceId], ofRack })).get(deviceId);
    if (run) return { jobId, rackId, deviceId, status: statusOfRun(deviceId, run) };
  }
  return { jobId, rackId, deviceId, status: statusOfRequest(deviceId, request) };
}
