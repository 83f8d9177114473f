import type { BmcTarget } from "../../../../capabilities/bmc-target.ts";
import { DeviceFailure } from "../../../../capabilities/device-failure.ts";
import type { InstalledFirmware } from "../../../../capabilities/rack/firmware.ts";
import type { DeviceTask } from "../../../../capabilities/rack/tasks.ts";
import { AppError, causeOf, StepFailure } from "../../../../kernel/errors.ts";
import type { JsonObject } from "../../../../kernel/lifecycle.ts";
import { minutes } from "../../../../kernel/time/duration.ts";
import { type Acted, type ActingContext, defineStepOn, type ProbeReport } from "../../../model/step.ts";
import { describeVersions, isAt, partsFor, type WantedFirmware } from "../firmware-parts.ts";
import type { OnDevice } from "../on-device.ts";
import { acceptedFacts, askRestarted, type KnownBmc, unknownIfSilent } from "../reach-bmc.ts";

/** What a rack manager writes to one device. */
export type FollowJobPayload = {
  readonly firmware_id: string;
  readonly wanted: readonly WantedFirmware[];
  /** How long a device gets to show the versions once the job is said to be complete. */
  readonly settle_seconds: number;
  /** Of ours: none. The rack manager starts what it has written. */
  readonly activation: "none";
};

type Receipt = {
  /** Null: the answer to the batch was lost, so that nobody knows the job, or whether there is one. */
  readonly job: string | null;
  /** When the job was first seen to be complete. */
  readonly ended_at?: string;
  /** A new certificate of the BMC that was accepted. */
  readonly certificate?: string;
};

type Uses = "firmware" | "manager" | "inventory" | "system";
type Acting = ActingContext<FollowJobPayload, KnownBmc, never, Uses, Receipt, OnDevice>;

/** For so long a BMC may be away after a flash, and reject everybody while it starts. */
const RESTARTS_WITHIN = minutes(15);

/**
 * Follows what a rack manager does to one device, and begins nothing itself: the batch of its rack did. What the rack manager says ends
 * the work only where it says that it failed; that it is complete is proven by the versions that the device shows.
 */
export const followFirmwareJob = defineStepOn<OnDevice>()({
  kind: "follow_firmware_job",
  finishesOnceBegun: true,
  staysUntilProven: true,
  needs: [],
  mayUse: ["firmware", "manager", "inventory", "system"],
  defaults: { timeout: minutes(60), maxRetries: 0 },
  fromOutside: true,
  parse: parseFollowed,
  residue: ({ firmware_id }) => `firmware ${firmware_id} may be half written`,
  showsOfReceipt: ["job"],
  before: async (): Promise<KnownBmc> => ({ root: null, serial: null }),
  act: async (): Promise<Acted<Receipt>> => {
    throw new StepFailure("invalid_input", "only the run of a rack sends firmware through the rack manager");
  },

  async probe(context): Promise<ProbeReport> {
    const job = await readJob(context);
    if (job.task?.state === "failed") throw jobFailed(job.task);
    if (job.task?.state === "running")
      return { state: "in_progress", message: `job ${job.task.id}: ${describeTask(job.task)}` };
    return unknownIfSilent(() => readBack(context, job));
  },
});

interface SeenJob {
  /** Null: it cannot be asked for. */
  readonly task: DeviceTask | null;
  /** Why not. */
  readonly silence?: ProbeReport;
}

async function readJob({ receipt, rackManager, device, call }: Acting): Promise<SeenJob> {
  const id = receipt?.job ?? null;
  if (id === null) return { task: null, silence: lost("the rack manager's answer to the batch was lost") };
  if (rackManager === undefined) return { task: null, silence: lost("this server has no rack manager to ask") };
  try {
    return { task: await rackManager.readJob({ id, node: device.id }, call) };
  } catch (error) {
    if (!(error instanceof DeviceFailure)) throw error;
    return { task: null, silence: { state: "unknown", message: error.message, cause: causeOf(error) } };
  }
}

const lost = (message: string): ProbeReport => ({
  state: "unknown",
  message,
  cause: { code: "firmware_unproven", facts: { at: "rack_manager" } },
});

const jobFailed = ({ id, message }: DeviceTask): StepFailure =>
  new StepFailure("firmware_task_failed", `the rack manager failed at job ${id}: ${message || "it does not say why"}`, {
    facts: { at: "rack_manager", name: id, ...(message !== "" && { progress: message }) },
  });

/** The percentage stands in the rack manager's own words, where it tells one. */
const describeTask = ({ message, percent }: DeviceTask): string =>
  message || (percent === null ? "under way" : `${percent} %`);

interface Unshown {
  readonly part: string;
  readonly expected: string;
  readonly shown: string;
}

async function readBack(context: Acting, job: SeenJob): Promise<ProbeReport> {
  const { can, clock, evidence, receipt } = context;
  const { firmware, manager } = can;
  if (firmware === undefined) return reported(job);
  const ask = async (target: BmcTarget) => {
    manager?.expectRestart(target, new Date(clock.now().getTime() + RESTARTS_WITHIN));
    return firmware.readInstalled(target, context.call);
  };
  const { answer, certificate } =
    manager === undefined
      ? { answer: await ask(await context.bmc()), certificate: null }
      : await askRestarted({ ...context, can: { ...can, manager } }, evidence, receipt?.certificate ?? null, ask);
  const seen = reportOf(context, job, findUnshown(context.payload, answer));
  const kept = { job: null, ...receipt, ...seen.receipt, ...(certificate !== null && { certificate }) };
  return { ...seen, receipt: kept, ...(seen.state === "done" && acceptedFacts(certificate)) };
}

/** A device that cannot be asked is what the rack manager says of it. */
const reported = ({ task, silence }: SeenJob): ProbeReport =>
  task === null
    ? (silence ?? lost("nothing is known of the job"))
    : { state: "done", message: `job ${task.id} is complete; the device cannot be asked`, verdict: "reported" };

/** Components that do not show their version. */
function findUnshown({ wanted }: FollowJobPayload, installed: readonly InstalledFirmware[]): readonly Unshown[] {
  return wanted.flatMap((component) => {
    const parts = partsShown(installed, component);
    if (isAt(parts, component.version)) return [];
    return [{ part: component.component, expected: component.version, shown: describeVersions(parts) }];
  });
}

/** A device that is starting may show none yet. */
function partsShown(installed: readonly InstalledFirmware[], component: WantedFirmware): readonly InstalledFirmware[] {
  try {
    return partsFor(installed, component);
  } catch (error) {
    if (error instanceof StepFailure && error.code === "firmware_mismatch") return [];
    throw error;
  }
}

function reportOf(
  { payload, receipt, clock }: Acting,
  { task, silence }: SeenJob,
  unshown: readonly Unshown[],
): ProbeReport {
  const [first] = unshown;
  if (first === undefined)
    return { state: "done", message: `the device shows firmware ${payload.firmware_id}`, verdict: "proven" };
  const shows = unshown.map(({ part, expected, shown }) => `${part} ${shown}, wanted ${expected}`).join("; ");
  if (task === null)
    return { ...silence, state: "unknown", message: `${silence?.message ?? ""}; the device shows ${shows}` };
  const endedAt = receipt?.ended_at ?? clock.now().toISOString();
  if (clock.now().getTime() - Date.parse(endedAt) > payload.settle_seconds * 1_000)
    throw new StepFailure(
      "firmware_not_applied",
      `the rack manager says that job ${task.id} is complete, and the device shows ${shows}`,
      { facts: { at: "rack_manager", name: first.part, expected: first.expected, shown: first.shown } },
    );
  return {
    state: "in_progress",
    message: `job ${task.id} is complete; the device shows ${shows}`,
    receipt: { job: task.id, ended_at: endedAt },
  };
}

function parseFollowed(payload: JsonObject, field: string): FollowJobPayload {
  if (Array.isArray(payload.wanted) && typeof payload.firmware_id === "string") return payload as FollowJobPayload;
  throw new AppError("invalid_argument", `${field}.wanted: is required`, { field: `${field}.wanted` });
}
