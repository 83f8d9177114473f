import type { CallContext } from "../../../../capabilities/call.ts";
import type { ManagedFile, ManagedNode, RackManager } from "../../../../capabilities/rack/rack-manager.ts";
import { causeOf as causeOfError, messageOf, StepFailure } from "../../../../kernel/errors.ts";
import { type Duration, describeDuration, milliseconds, seconds } from "../../../../kernel/time/duration.ts";
import { DEVICE_KINDS, type FirmwarePlan } from "../../../../lifecycles/rack/payloads.ts";
import {
  FIRMWARE_DEVICES,
  type FirmwareComponent,
  type FirmwareDevice,
} from "../../../../lifecycles/rack-firmware/rack-firmware.ts";
import { childStep, type NewChild } from "../../../children/child-run.ts";
import { describeSum, type Sum, sumUp } from "../../../children/sum.ts";
import {
  type Acted,
  type ActingContext,
  defineStepOn,
  type ProbeReport,
  type StepContext,
} from "../../../model/step.ts";
import type { RunTarget } from "../../../targets/run-target.ts";
import { settlesWithin } from "../device-steps.ts";
import { isAt, partsFor } from "../firmware-parts.ts";
import { causeOf, describeFailed, TO_SPARE } from "../rack-fan-outs.ts";
import { type KnownBmc, patiently } from "../reach-bmc.ts";
import { type FollowJobPayload, followFirmwareJob } from "./follow-firmware-job.ts";
import { isSurelyRefused, mayAnswerLater, type OnManagedRack, requireManager } from "./managed-rack.ts";

/** A device that is in the batch: what it is known by, and which components it lacks. */
type Lacking = { readonly device: FirmwareDevice; readonly id: string; readonly lacks: readonly string[] } & KnownBmc;
/** A device that is not in the batch, or was refused. */
type LeftOut = { readonly id: string; readonly why: string };

type Evidence = {
  readonly asked_at: string;
  readonly lacking: readonly Lacking[];
  /** How many have all of it already. */
  readonly current: number;
  readonly unread: readonly LeftOut[];
};

type Receipt = {
  /** The job of each device of the batches; null: the answer was lost. */
  readonly jobs: Readonly<Record<string, string | null>>;
  readonly refused: readonly LeftOut[];
};

type Context = StepContext<FirmwarePlan, never, never, OnManagedRack>;
type Acting = ActingContext<FirmwarePlan, Evidence, never, never, Receipt, OnManagedRack>;
type ActingFirst = Omit<Acting, "receipt">;

/** As long as one device may take for all of its components. */
const timeOn = ({ deadline_seconds }: FirmwarePlan, { components }: FirmwarePlan[FirmwareDevice]): Duration =>
  seconds(deadline_seconds * Math.max(1, components.length));

/** The rack manager is waited for as long as for one component; then its jobs take as long as they may. */
function timeForAll(payload: FirmwarePlan): Duration {
  const longest = Math.max(0, ...FIRMWARE_DEVICES.map((device) => timeOn(payload, payload[device])));
  return milliseconds(seconds(payload.deadline_seconds) + longest + TO_SPARE);
}

/**
 * Has a rack manager write firmware to the devices of a rack: one batch a kind of device, sent once and never again. Devices that show
 * the versions already are in none. Each other one gets a run that follows its job (`follow_firmware_job`).
 *
 * The rack manager cannot be asked which jobs it has. Where its answer is lost, or the process dies before the answer is on record, the
 * runs go by what their devices show; a device that never shows the versions stays unproven, and is not sent anything again.
 */
export const submitFirmware = defineStepOn<OnManagedRack>()({
  kind: "submit_firmware",
  finishesOnceBegun: true,
  needs: [],
  defaults: { timeout: seconds(4 * 3_600), maxRetries: 0 },
  timeoutFor: timeForAll,
  fromOutside: true,
  parse: (payload) => payload as FirmwarePlan,
  children: (_, payload: FirmwarePlan) =>
    devicesOf(payload).map(({ device, id }) => ({
      target: { kind: DEVICE_KINDS[device], id },
      displayName: followFirmwareJob.kind,
      steps: stepsOn(payload, device),
    })),

  async before(context: Context): Promise<Evidence> {
    const { payload, clock } = context;
    requireManager(context);
    const seen = await Promise.all(devicesOf(payload).map((device) => look(context, device)));
    return {
      asked_at: clock.now().toISOString(),
      lacking: seen.flatMap((one) => ("lacks" in one && one.lacks.length > 0 ? [one] : [])),
      current: seen.filter((one) => "lacks" in one && one.lacks.length === 0).length,
      unread: seen.flatMap((one) => ("why" in one ? [one] : [])),
    };
  },

  async act(context): Promise<Acted<Receipt>> {
    const receipt = await submitAll(context);
    return { receipt, effects: startAll({ ...context, receipt }) };
  },

  async probe(context): Promise<ProbeReport> {
    const { receipt, evidence, hasNotBegun, actingAt = null, children } = context;
    if (receipt === null && (actingAt === null || hasNotBegun === true))
      return evidence.lacking.length === 0 ? reportOf(context, sumUp([], [])) : probeBefore(context);
    if (receipt === null) return { state: "halfway", message: "the rack manager's answer was lost" };
    const sum = sumUp(targetsOf(context, receipt), children);
    const message = describeSum(sum);
    if (sum.unstarted.length > 0) return { state: "halfway", message };
    return sum.active.length > 0 ? { state: "in_progress", message } : reportOf(context, sum);
  },

  /** Starting runs again starts none twice. */
  async carryOn(context: Acting): Promise<Acted<Receipt>> {
    const receipt = context.receipt ?? lostReceipt(context.evidence);
    return { receipt, effects: startAll({ ...context, receipt }) };
  },
  residue: ({ firmware_id }) => `firmware ${firmware_id} may be written in part`,
});

const devicesOf = (payload: FirmwarePlan): readonly { readonly device: FirmwareDevice; readonly id: string }[] =>
  FIRMWARE_DEVICES.flatMap((device) => payload[device].devices.map((id) => ({ device, id })));

type SeenBefore = Lacking | LeftOut;

/** A device that does not answer, or answers for another one, is left out, and fails by its name. */
async function look(context: Context, { device, id }: { device: FirmwareDevice; id: string }): Promise<SeenBefore> {
  const { payload, devices, call } = context;
  try {
    const { installed, known } = await patiently(call, () => devices.look({ kind: DEVICE_KINDS[device], id }, call));
    const isLacking = (component: FirmwareComponent) =>
      installed === null || !isAt(partsFor(installed, component), component.version);
    const lacks = payload[device].components.filter(isLacking).map(({ component }) => component);
    return { device, id, lacks, ...known };
  } catch (error) {
    if (!(error instanceof StepFailure) || error.code === "stopped" || call.signal.aborted) throw error;
    return { id, why: messageOf(error) };
  }
}

const nodesOf = ({ devices, target }: ActingFirst, lacking: readonly Lacking[]): Promise<readonly ManagedNode[]> =>
  Promise.all(lacking.map(({ device, id }) => devices.nodeOf(target.id, { kind: DEVICE_KINDS[device], id })));

/** Whether the rack manager is there, and speaks as it is configured, before anything is announced. */
async function probeBefore(context: ActingFirst): Promise<ProbeReport> {
  const { evidence, call, clock, payload } = context;
  const manager = requireManager(context);
  const waiting = `${evidence.lacking.length} devices are to be written`;
  try {
    await manager.readPlaces(await nodesOf(context, evidence.lacking), call);
  } catch (error) {
    // That it does not know a device says it once more, by the device's name, when the batch is sent.
    if (isSurelyRefused(error) && error.code === "refused_by_device" && error.status === undefined)
      return { state: "not_done", message: waiting };
    if (!mayAnswerLater(error)) throw error;
    const waited = milliseconds(clock.now().getTime() - Date.parse(evidence.asked_at));
    if (waited < seconds(payload.deadline_seconds))
      return { state: "unknown", message: error.message, cause: causeOfError(error) };
    const names = evidence.lacking.map(({ id }) => id).join(", ");
    const why = `no answer for ${describeDuration(waited)}: ${error.message}; nothing was written to ${names}`;
    throw StepFailure.of(causeOfError(error), why, "fail");
  }
  return { state: "not_done", message: waiting };
}

/** All batches leave at the same moment. What one of them comes to changes nothing for the others. */
async function submitAll(context: ActingFirst): Promise<Receipt> {
  const manager = requireManager(context);
  const { evidence, payload, log } = context;
  const batches = await Promise.all(
    FIRMWARE_DEVICES.map(async (device) => {
      const lacking = evidence.lacking.filter((one) => one.device === device);
      return {
        device,
        nodes: await nodesOf(context, lacking),
        files: await filesOf(context, payload[device], lacking),
      };
    }),
  );
  const sent = batches.filter(({ nodes }) => nodes.length > 0);
  const answers = await Promise.all(sent.map((batch) => submit(manager, batch, context.call)));
  for (const [at, { device, nodes }] of sent.entries())
    log(`[rack manager] batch of ${nodes.length} ${device}: ${answers[at]?.said ?? ""}\n`);
  return {
    jobs: Object.assign({}, ...answers.map(({ jobs }) => jobs)),
    refused: answers.flatMap(({ refused }) => refused),
  };
}

/** What any device of the kind lacks, in the order in which it is written. */
async function filesOf(
  { devices }: ActingFirst,
  { components }: FirmwarePlan[FirmwareDevice],
  lacking: readonly Lacking[],
): Promise<readonly ManagedFile[]> {
  const wanted = components.filter(({ component }) => lacking.some(({ lacks }) => lacks.includes(component)));
  const files = wanted.map(async ({ component, targets, digest }) => {
    const filename = await devices.fileName(digest);
    return (targets.length > 0 ? targets : [component]).map((target) => ({ target, filename }));
  });
  return (await Promise.all(files)).flat();
}

interface Batch {
  readonly device: FirmwareDevice;
  readonly nodes: readonly ManagedNode[];
  readonly files: readonly ManagedFile[];
}

interface Answered extends Receipt {
  readonly said: string;
}

const nameOf = (device: FirmwareDevice, id: string): string => `${DEVICE_KINDS[device]}/${id}`;

async function submit(manager: RackManager, { device, nodes, files }: Batch, call: CallContext): Promise<Answered> {
  try {
    const answer = [...(await manager.submitFirmware(nodes, files, call))];
    const jobs = answer.flatMap(([id, one]) => ("job" in one ? [[nameOf(device, id), one.job] as const] : []));
    const refused = answer.flatMap(([id, one]) => ("error" in one ? [{ id, why: one.error }] : []));
    return { jobs: Object.fromEntries(jobs), refused, said: `${jobs.length} jobs, ${refused.length} refused` };
  } catch (error) {
    if (!(error instanceof StepFailure) || error.code === "stopped" || call.signal.aborted) throw error;
    const why = messageOf(error);
    if (isSurelyRefused(error)) return { jobs: {}, refused: nodes.map(({ id }) => ({ id, why })), said: why };
    // It may have taken the batch all the same: the devices themselves tell.
    return { jobs: Object.fromEntries(nodes.map(({ id }) => [nameOf(device, id), null])), refused: [], said: why };
  }
}

const lostReceipt = ({ lacking }: Evidence): Receipt => ({
  jobs: Object.fromEntries(lacking.map(({ device, id }) => [nameOf(device, id), null])),
  refused: [],
});

type Begun = Omit<Acting, "receipt"> & { readonly receipt: Receipt };

const targetsOf = ({ evidence }: Pick<Acting, "evidence">, { jobs }: Receipt): readonly RunTarget[] =>
  evidence.lacking.flatMap(({ device, id }) =>
    Object.hasOwn(jobs, nameOf(device, id)) ? [{ kind: DEVICE_KINDS[device], id }] : [],
  );

/** A run for each device of the batches, which finds its job as if it had sent it itself. */
function startAll({ evidence, payload, receipt, clock, startRun }: Begun) {
  return evidence.lacking.flatMap(({ device, id, root, serial }) => {
    const job = receipt.jobs[nameOf(device, id)];
    if (job === undefined) return [];
    const child: NewChild = {
      target: { kind: DEVICE_KINDS[device], id },
      displayName: followFirmwareJob.kind,
      steps: stepsOn(payload, device),
      ...(device === "switch" && payload.awaits_fabric && { params: { awaits_fabric: "true" } }),
      begun: { evidence: { root, serial }, receipt: { job }, at: clock.now() },
    };
    return [startRun(child)];
  });
}

function stepsOn(payload: FirmwarePlan, device: FirmwareDevice) {
  const followed: FollowJobPayload = {
    firmware_id: payload.firmware_id,
    wanted: payload[device].components.map(({ component, version, targets }) => ({ component, version, targets })),
    settle_seconds: settlesWithin(seconds(payload.deadline_seconds)),
    activation: "none",
  };
  return [childStep(followFirmwareJob, followed, { timeoutSeconds: timeOn(payload, payload[device]) / 1_000 })];
}

function reportOf({ payload, evidence, receipt }: Acting, sum: Sum): ProbeReport {
  const why = describeFailed(sum, [...payload.unfit, ...evidence.unread, ...(receipt?.refused ?? [])]);
  const had = evidence.current === 0 ? "" : `; ${evidence.current} had it already`;
  if (why === undefined) return { state: "done", message: `${describeSum(sum)}${had}` };
  throw StepFailure.of(causeOfAll(payload, receipt, sum), why);
}

function causeOfAll({ unfit }: FirmwarePlan, receipt: Receipt | null, sum: Sum) {
  if (unfit.length > 0 || sum.failed.some(({ isUnproven }) => isUnproven))
    return { code: "firmware_unproven", facts: { at: "rack_manager" } } as const;
  if (sum.failed.length === 0 && (receipt?.refused.length ?? 0) > 0)
    return { code: "refused_by_device", facts: { at: "rack_manager" } } as const;
  return causeOf(sum);
}
