import { setTimeout as pause } from "node:timers/promises";
import type { BmcTarget } from "../../../capabilities/bmc-target.ts";
import { DeviceFailure, isRefusal } from "../../../capabilities/device-failure.ts";
import type { InstalledFirmware, UpdateStarted } from "../../../capabilities/rack/firmware.ts";
import type { DeviceTask } from "../../../capabilities/rack/tasks.ts";
import { type StreamCall, streamOf } from "../../../capabilities/stream.ts";
import { AppError, messageOf, StepFailure } from "../../../kernel/errors.ts";
import type { JsonObject } from "../../../kernel/lifecycle.ts";
import { minutes, seconds } from "../../../kernel/time/duration.ts";
import type { Activation } from "../../../lifecycles/rack-firmware/rack-firmware.ts";
import { type ActingContext, defineStepOn, type ProbeReport } from "../../model/step.ts";
import { describeVersions, isAt, partsFor, type WantedFirmware } from "./firmware-parts.ts";
import type { OnDevice } from "./on-device.ts";
import { acceptedFacts, askRestarted, type KnownBmc, knowBmc, patiently, unknownIfSilent } from "./reach-bmc.ts";

/** One file of a firmware record, for one device. */
export type UpdateFirmwarePayload = WantedFirmware & {
  readonly firmware_id: string;
  readonly digest: string;
  readonly activation: Activation;
  /** How long a device that says that it is done gets to show the version. */
  readonly settle_seconds: number;
};

type Evidence = KnownBmc & {
  /** Paths of the parts that are written. */
  readonly parts: readonly string[];
  readonly before: string;
  /** Tasks that the device listed. */
  readonly tasks: readonly string[];
  readonly ways: readonly string[];
};

type Receipt = {
  /** Null: the device accepted, and told of none. Absent: whether it accepted is not known. */
  readonly task?: string | null;
  /** When the task was first seen to have ended. */
  readonly ended_at?: string;
  /** A new certificate that was accepted. */
  readonly certificate?: string;
};

type Needs = "firmware" | "tasks" | "manager";
type Uses = "inventory" | "system";
type Acting = ActingContext<UpdateFirmwarePayload, Evidence, Needs, Uses, Receipt, OnDevice>;

/** For so long a BMC may be away after a flash, and reject everybody while it starts. */
const RESTARTS_WITHIN = minutes(15);
/** A task that was begun so short a while ago would still be listed: no device is done, and has forgotten it, by then. */
const STILL_LISTED = minutes(5);
const BUSY_PAUSE = seconds(10);
const MOST_ASKED = 8;

/**
 * Writes one component of a firmware record to one device, at most once, whatever happens in between. Done when the device shows the
 * version; where that takes a restart, when it says that the image is written, and `activate_firmware` proves the version.
 *
 * A device that fetches images is given the address; all others, and those that refuse the address, are sent the image.
 */
export const updateFirmware = defineStepOn<OnDevice>()({
  kind: "update_firmware",
  finishesOnceBegun: true,
  staysUntilProven: true,
  needs: ["firmware", "tasks", "manager"],
  mayUse: ["inventory", "system"],
  defaults: { timeout: minutes(60), maxRetries: 0 },
  streams: { to: "bmc", longestChunk: seconds(15) },
  fromOutside: true,
  parse: parseUpdate,
  residue: ({ component }) => `firmware of ${component} may be half written`,
  showsOfReceipt: ["task"],

  async before(context): Promise<Evidence> {
    const { can, call, payload } = context;
    const target = await context.bmc();
    return patiently(call, async () => {
      const parts = partsFor(await can.firmware.readInstalled(target, call), payload);
      return {
        parts: parts.map(({ path }) => path),
        before: describeVersions(parts),
        ways: await can.firmware.readWays(target, call),
        tasks: (await can.tasks.listTasks(target, call)) ?? [],
        ...(await knowBmc(context, target)),
      };
    });
  },

  async act(context) {
    const stream = streamOf(context.call);
    const { task } = await despiteBusy(context, stream, () => send(context, stream));
    context.log(`[firmware] the device accepted ${describe(context)}${task === null ? "" : ` as task ${task}`}\n`);
    return { receipt: { task } };
  },

  async probe(context): Promise<ProbeReport> {
    const { receipt, hasNotBegun, actingAt = null } = context;
    const hasBegun = receipt !== null || (actingAt !== null && hasNotBegun !== true);
    return hasBegun ? unknownIfSilent(() => probeBegun(context)) : probeBefore(context);
  },
});

const describe = ({ payload: { component, version } }: Pick<Acting, "payload">): string => `${component} ${version}`;

async function probeBefore(context: Omit<Acting, "receipt">): Promise<ProbeReport> {
  const { payload, evidence, can, call } = context;
  const target = await context.bmc();
  const parts = await patiently(call, () => can.firmware.readInstalled(target, call, evidence.parts));
  if (isAt(parts, payload.version))
    return { state: "done", message: `the device has ${describe(context)} already`, verdict: "unchanged" };
  const missing = await context.artifacts.whyMissing?.(payload.digest);
  // Nothing is announced: the next pass may be that of a replica that has the file, and the step's time ends the wait.
  if (missing !== undefined)
    return { state: "unknown", message: missing, cause: { code: "artifact_missing", facts: { name: payload.digest } } };
  return { state: "not_done", message: `the device has ${payload.component} ${describeVersions(parts)}` };
}

async function probeBegun(context: Acting): Promise<ProbeReport> {
  const { can, call, clock, evidence, receipt } = context;
  const { answer, certificate } = await askRestarted(
    context,
    evidence,
    receipt?.certificate ?? null,
    async (target) => {
      can.manager.expectRestart(target, new Date(clock.now().getTime() + RESTARTS_WITHIN));
      const task = await findTask(context, target);
      const isUnderWay = task?.state === "running" || task?.state === "failed";
      return { task, parts: isUnderWay ? [] : await can.firmware.readInstalled(target, call, evidence.parts) };
    },
  );
  const seen = await reportOf(context, answer);
  // Nothing is made up: a receipt without a task of its own says that the device accepted, and that was not seen.
  const kept = { ...receipt, ...seen.receipt, ...(certificate !== null && { certificate }) };
  return {
    ...seen,
    ...(Object.keys(kept).length > 0 && { receipt: kept }),
    ...(seen.state === "done" && acceptedFacts(certificate)),
  };
}

interface Seen {
  readonly task: DeviceTask | null;
  readonly parts: readonly InstalledFirmware[];
}

async function reportOf(context: Acting, { task, parts }: Seen): Promise<ProbeReport> {
  const { payload, evidence } = context;
  const { component, version, activation } = payload;
  const known = task === null ? {} : { receipt: { task: task.id } };
  if (task?.state === "failed") {
    throw new StepFailure("firmware_task_failed", `the device failed to write ${describe(context)}: ${said(task)}`, {
      facts: { at: "bmc", name: component, ...(task.message !== "" && { progress: task.message }) },
    });
  }
  if (task?.state === "running")
    return { state: "in_progress", message: `${describe(context)}: ${said(task)}`, ...known };
  if (isAt(parts, version)) {
    const message = `the device shows ${describe(context)}, before ${evidence.before}`;
    return { state: "done", message, verdict: "proven", ...known };
  }
  if (task === null) return await judgeWithoutTask(context, parts);
  if (activation !== "none") {
    const message = `${describe(context)} is written, and runs after a ${activation.replace("_", " ")}`;
    return { state: "done", message, verdict: "staged", ...known };
  }
  return judgeUnshown(context, { task, parts });
}

const said = ({ percent, message, state }: DeviceTask): string =>
  [percent === null ? [] : [`${percent} %`], message === "" ? [] : [message]].flat().join(": ") || state;

/** The task has ended, or is not known any more, and the version is another one. */
function judgeUnshown(
  { payload, receipt, clock }: Acting,
  { task, parts }: Seen & { readonly task: DeviceTask },
): ProbeReport {
  const { component, version, settle_seconds: settles } = payload;
  const shown = describeVersions(parts);
  const seen = `shows ${component} ${shown}, wanted ${version}`;
  if (task.state === "gone") {
    const facts = { at: "bmc", name: component, expected: version, shown } as const;
    return {
      state: "unknown",
      message: `the device ${seen}; it no longer knows the task`,
      cause: { code: "firmware_unproven", facts },
    };
  }
  const endedAt = receipt?.ended_at ?? clock.now().toISOString();
  if (clock.now().getTime() - Date.parse(endedAt) > settles * 1_000) {
    const why = task.state === "waits" ? "waits for a restart" : "says that the update is complete";
    throw new StepFailure("firmware_not_applied", `the device ${why}, and ${seen}`, {
      facts: { at: "bmc", name: component, expected: version, shown },
    });
  }
  return {
    state: "in_progress",
    message: `the device ${seen}; the update is complete`,
    receipt: { task: task.id, ended_at: endedAt },
  };
}

/**
 * The answer to the order was lost, or told of no task. That nothing was begun is believed only of a device that is known to list its
 * tasks: those from before are still there, no other is, and it was a short while ago. An empty list proves nothing.
 */
async function judgeWithoutTask(context: Acting, parts: readonly InstalledFirmware[]): Promise<ProbeReport> {
  const { payload, evidence, receipt, clock, can, call } = context;
  const shown = describeVersions(parts);
  const facts = { at: "bmc", name: payload.component, expected: payload.version, shown } as const;
  const open: ProbeReport = {
    state: "unknown",
    message: `the device tells of no task, and shows ${payload.component} ${shown}, wanted ${payload.version}`,
    cause: { code: "firmware_unproven", facts },
  };
  const sentAt = context.lastSentAt ?? context.actingAt;
  if (receipt?.task === null || sentAt == null || evidence.tasks.length === 0) return open;
  if (clock.now().getTime() - sentAt.getTime() > STILL_LISTED) return open;
  const listed = (await can.tasks.listTasks(await context.bmc(), call)) ?? [];
  const isAsBefore = listed.length === evidence.tasks.length && evidence.tasks.every((task) => listed.includes(task));
  if (!isAsBefore) return open;
  return { state: "not_done", message: `the device lists no new task, and shows ${payload.component} ${shown}` };
}

/**
 * The task of the receipt; where the answer was lost, the one that was not there before and can be this update. Of several that can be,
 * nobody knows which is ours.
 */
async function findTask(
  { receipt, evidence, payload, can, call }: Acting,
  target: BmcTarget,
): Promise<DeviceTask | null> {
  if (receipt?.task) return can.tasks.readTask(target, receipt.task, call);
  const before = new Set(evidence.tasks);
  const listed = (await can.tasks.listTasks(target, call)) ?? [];
  const isOurs = ({ targets }: DeviceTask) =>
    targets.length === 0 || targets.some((each) => evidence.parts.includes(each) || payload.targets.includes(each));
  const added = listed.filter((each) => !before.has(each));
  if (added.length > MOST_ASKED) return null;
  const candidates: DeviceTask[] = [];
  for (const id of added) {
    const task = await can.tasks.readTask(target, id, call);
    if (isOurs(task)) candidates.push(task);
  }
  const [only, ...others] = candidates;
  return only !== undefined && others.length === 0 ? only : null;
}

/** By the address where the device fetches images; else, and where it refuses that, by sending the image. */
async function send(context: Acting0, stream: StreamCall): Promise<UpdateStarted> {
  const { evidence, can, call, device, artifacts, payload, log } = context;
  const target = await context.bmc();
  can.manager.expectRestart(target, new Date(context.clock.now().getTime() + RESTARTS_WITHIN));
  // Where the record names no parts, the device finds them out by the image.
  const isByPath = payload.targets.every((each) => each.startsWith("/"));
  const targets = isByPath ? payload.targets : evidence.parts;
  const takesImages = evidence.ways.some((way) => way !== "simple");
  if (evidence.ways.includes("simple")) {
    try {
      const uri = await artifacts.uriFor(payload.digest, device);
      return await can.firmware.startUpdate(target, { uri, targets }, call);
    } catch (error) {
      const isNoWay = isRefusal(error) || (error instanceof StepFailure && error.code === "not_on_this_server");
      if (!takesImages || !isNoWay || stream.withdrawn?.aborted) throw error;
      log(`[firmware] the device does not fetch the image (${messageOf(error)}); it is sent\n`);
    }
  }
  if (!takesImages)
    throw new StepFailure(
      "invalid_input",
      "the device offers no way to update its firmware: it neither fetches nor takes images",
    );
  const image = await artifacts.find(payload.digest);
  if (image === undefined)
    throw new StepFailure("artifact_missing", `the file ${payload.digest} is not on this server`, {
      facts: { name: payload.digest },
    });
  return can.firmware.upload(target, { ...image, chunks: () => image.chunks(), targets }, stream);
}

type Acting0 = ActingContext<UpdateFirmwarePayload, Evidence, Needs, Uses, JsonObject, OnDevice>;

/**
 * A device that says "not now" has begun nothing: it is asked again, for a while, unless nobody wants it any more. Some say so of an order
 * that they have taken: nothing is sent again to one that is at it, or has done it.
 */
async function despiteBusy(
  context: Acting0,
  stream: StreamCall,
  act: () => Promise<UpdateStarted>,
): Promise<UpdateStarted> {
  // Ten minutes, where a component may take an hour.
  const until = context.clock.now().getTime() + 2_000 * context.payload.settle_seconds;
  for (;;) {
    try {
      return await act();
    } catch (error) {
      const isBusy =
        error instanceof DeviceFailure && error.family === "busy" && (error.status === 503 || error.status === 409);
      if (!isBusy) throw error;
      const taken = await awaitTurn({ ...context, receipt: null }, stream, error, until);
      if (taken !== null) return taken;
    }
  }
}

/** Null: the device may be asked again. Otherwise it has taken the order already. */
async function awaitTurn(
  context: Acting,
  { signal, withdrawn }: StreamCall,
  busy: DeviceFailure,
  until: number,
): Promise<UpdateStarted | null> {
  const wait = Math.min(busy.retryAfterMs ?? BUSY_PAUSE, BUSY_PAUSE);
  const ends = AbortSignal.any([signal, ...(withdrawn ? [withdrawn] : [])]);
  context.log(`[firmware] the device is busy: ${busy.message}\n`);
  for (;;) {
    await pause(wait, undefined, { signal: ends }).catch((error: unknown) => {
      if (signal.aborted) throw error;
    });
    const isOver = withdrawn?.aborted === true || context.clock.now().getTime() > until;
    const seen = await findTaken(context);
    if (seen === "untold" && isOver)
      throw new DeviceFailure("timed_out", "bmc", `${busy.message}; then it did not tell whether it took the order`);
    if (seen === "untold" || (seen?.isUnderWay && !isOver)) continue;
    if (seen !== null) return { task: seen.task };
    if (isOver) throw busy;
    return null;
  }
}

interface Taken {
  readonly task: string | null;
  readonly isUnderWay: boolean;
}

/** What of our order can be seen at a device that said that it was busy; null: nothing. */
async function findTaken(context: Acting): Promise<Taken | "untold" | null> {
  const { can, call, evidence, payload } = context;
  const target = await context.bmc();
  try {
    const task = await findTask(context, target);
    // Devices have tasks of all kinds: one that has ended is ours only if it names our parts.
    if (task !== null && (task.state === "running" || task.targets.length > 0))
      return { task: task.id, isUnderWay: task.state === "running" };
    const parts = await can.firmware.readInstalled(target, call, evidence.parts);
    return isAt(parts, payload.version) ? { task: null, isUnderWay: false } : null;
  } catch (error) {
    if (error instanceof DeviceFailure && error.disposition === "retry") return "untold";
    throw error;
  }
}

function parseUpdate(payload: JsonObject, field: string): UpdateFirmwarePayload {
  for (const name of ["component", "version", "digest"]) {
    if (typeof payload[name] === "string" && payload[name] !== "") continue;
    throw new AppError("invalid_argument", `${field}.${name}: is required`, { field: `${field}.${name}` });
  }
  return payload as UpdateFirmwarePayload;
}
