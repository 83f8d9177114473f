import type { BmcTarget } from "../../../capabilities/bmc-target.ts";
import type { InstalledFirmware } from "../../../capabilities/rack/firmware.ts";
import { AppError, StepFailure } from "../../../kernel/errors.ts";
import type { JsonObject } from "../../../kernel/lifecycle.ts";
import { minutes } from "../../../kernel/time/duration.ts";
import type { Activation } from "../../../lifecycles/rack-firmware/rack-firmware.ts";
import { type Acted, type ActingContext, defineStepOn, type ProbeReport } from "../../model/step.ts";
import { describeVersions, isAt, partsFor, type WantedFirmware } from "./firmware-parts.ts";
import type { OnDevice } from "./on-device.ts";
import { acceptedFacts, askRestarted, type KnownBmc, knowBmc, patiently, unknownIfSilent } from "./reach-bmc.ts";

export type ActivateFirmwarePayload = {
  /** All that must be shown at the end. */
  readonly wanted: readonly WantedFirmware[];
  readonly activation: Exclude<Activation, "none">;
  /** How long a device that has restarted gets to show the versions. */
  readonly settle_seconds: number;
};

type Evidence = KnownBmc & {
  /** Paths of the parts, in the order of `wanted`. */
  readonly parts: readonly (readonly string[])[];
  /** What tells one start of the BMC, or of the host, from the next; null where nothing does. */
  readonly started: string | null;
};

type Receipt = {
  /** The device answered the order. Absent: the order may not have left. */
  readonly accepted?: boolean;
  /** A power cycle has two halves: the device was read off. */
  readonly was_off?: boolean;
  /** When it was first seen to have restarted. */
  readonly restarted_at?: string;
  readonly certificate?: string;
};

type Needs = "firmware" | "manager";
type Uses = "inventory" | "system" | "power" | "reset";
type Acting = ActingContext<ActivateFirmwarePayload, Evidence, Needs, Uses, Receipt, OnDevice>;
type Context = Omit<Acting, "evidence" | "receipt">;

const RESTARTS_WITHIN = minutes(15);

/**
 * Has firmware run that was written, by the restart that it takes, and proves all versions: the proof of the whole update. A device
 * that shows them already is not restarted.
 */
export const activateFirmware = defineStepOn<OnDevice>()({
  kind: "activate_firmware",
  needs: ["firmware", "manager"],
  mayUse: ["inventory", "system", "power", "reset"],
  alsoNeeds: ({ activation }: ActivateFirmwarePayload) =>
    activation === "host_reset" ? ["reset"] : activation === "power_cycle" ? ["power"] : [],
  defaults: { timeout: minutes(30), maxRetries: 0 },
  fromOutside: true,
  reboots: true,
  parse: parseActivate,
  residue: ({ activation }) =>
    activation === "power_cycle" ? "the device may be switched off" : "the device may still restart",

  async before(context): Promise<Evidence> {
    const { can, call, payload } = context;
    const target = await context.bmc();
    return patiently(call, async () => {
      const installed = await can.firmware.readInstalled(target, call);
      return {
        parts: payload.wanted.map((each) => partsFor(installed, each).map(({ path }) => path)),
        started: await readStart(context, target),
        ...(await knowBmc(context, target)),
      };
    });
  },

  async act(context): Promise<Acted<Receipt>> {
    const { can, call, payload, log } = context;
    const target = await context.bmc();
    can.manager.expectRestart(target, new Date(context.clock.now().getTime() + RESTARTS_WITHIN));
    if (payload.activation === "bmc_reset") await can.manager.resetManager(target, call);
    if (payload.activation === "host_reset") await can.reset?.resetPower(target, "forced", call);
    if (payload.activation === "power_cycle") await can.power?.setPower(target, "off", call);
    log(`[firmware] the device accepted a ${payload.activation.replace("_", " ")}\n`);
    return { receipt: { accepted: true } };
  },

  async probe(context): Promise<ProbeReport> {
    const { receipt, hasNotBegun, actingAt = null } = context;
    const hasBegun = receipt !== null || (actingAt !== null && hasNotBegun !== true);
    return hasBegun ? unknownIfSilent(() => probeBegun(context)) : probeBefore(context);
  },

  /** The second half of a power cycle: that the device was off is on record before it is switched on. */
  async carryOn({ can, call, receipt, bmc }: Acting) {
    if (receipt?.was_off !== true) return { receipt: { ...receipt, was_off: true } };
    await can.power?.setPower(await bmc(), "on", call);
    return undefined;
  },

  /** A restart is over by itself; a device in the middle of a power cycle would stay off. */
  async undo({ payload, can, call, bmc }: Acting) {
    if (payload.activation !== "power_cycle" || !can.power) return undefined;
    const target = await bmc();
    await can.power.setPower(target, "on", call);
    const power = await can.power.readPower(target, call);
    return power === "on" ? undefined : { goesOn: `the device is being switched on, and reports power ${power}` };
  },
});

async function readStart({ can, call, payload }: Context, target: BmcTarget): Promise<string | null> {
  if (payload.activation === "bmc_reset") return can.manager.readStart(target, call);
  return (await can.system?.readBoot(target, call))?.lastReset ?? null;
}

interface Missing {
  readonly wanted: WantedFirmware;
  readonly parts: readonly InstalledFirmware[];
}

/** What does not show its version. */
async function findMissing(context: Acting, target: BmcTarget): Promise<readonly Missing[]> {
  const { evidence, payload, can, call } = context;
  const missing: Missing[] = [];
  for (const [at, wanted] of payload.wanted.entries()) {
    const parts = await can.firmware.readInstalled(target, call, evidence.parts[at] ?? []);
    if (!isAt(parts, wanted.version)) missing.push({ wanted, parts });
  }
  return missing;
}

const describe = (missing: readonly Missing[]): string =>
  missing
    .map(({ wanted, parts }) => `${wanted.component} ${describeVersions(parts)}, wanted ${wanted.version}`)
    .join("; ");

async function probeBefore(context: Acting): Promise<ProbeReport> {
  const target = await context.bmc();
  const missing = await patiently(context.call, () => findMissing(context, target));
  return missing.length === 0
    ? proven(context)
    : { state: "not_done", message: `the device shows ${describe(missing)}` };
}

const proven = ({ payload }: Pick<Acting, "payload">): ProbeReport => ({
  state: "done",
  message: `the device shows ${payload.wanted.map(({ component, version }) => `${component} ${version}`).join(", ")}`,
  verdict: "proven",
});

async function probeBegun(context: Acting): Promise<ProbeReport> {
  const { can, clock, evidence, receipt, payload } = context;
  const { answer: seen, certificate } = await askRestarted(
    context,
    evidence,
    receipt?.certificate ?? null,
    async (target): Promise<ProbeReport> => {
      can.manager.expectRestart(target, new Date(clock.now().getTime() + RESTARTS_WITHIN));
      const halfway = payload.activation === "power_cycle" ? await probeCycle(context, target) : undefined;
      if (halfway) return halfway;
      const missing = await findMissing(context, target);
      return missing.length === 0 ? proven(context) : judgeMissing(context, target, missing);
    },
  );
  const kept = seen.receipt ?? receipt;
  return {
    ...seen,
    ...((kept !== null || certificate !== null) && {
      receipt: { ...kept, ...(certificate !== null && { certificate }) },
    }),
    ...(seen.state === "done" && acceptedFacts(certificate)),
  };
}

/** Undefined once the device was off and is on again. */
async function probeCycle({ can, call, receipt }: Acting, target: BmcTarget): Promise<ProbeReport | undefined> {
  const power = await can.power?.readPower(target, call);
  if (power === "off") return { state: "halfway", message: "the device is off, and is to be switched on" };
  if (power === "on" && receipt?.was_off === true) return undefined;
  if (power === "on" && receipt === null)
    return { state: "not_done", message: "the device is on, and was not off yet" };
  return { state: power === "unknown" ? "unknown" : "in_progress", message: `the device reports power ${power}` };
}

async function judgeMissing(context: Acting, target: BmcTarget, missing: readonly Missing[]): Promise<ProbeReport> {
  const { evidence, receipt, payload, clock, actingAt = null } = context;
  const [first] = missing;
  const name = first?.wanted.component ?? "";
  const facts = {
    at: "bmc",
    name,
    expected: first?.wanted.version ?? "",
    shown: describeVersions(first?.parts ?? []),
  } as const;
  const message = `the device shows ${describe(missing)}`;
  const start = await readStart(context, target);
  const wasOff = receipt?.was_off === true;
  const canTell = wasOff || (start !== null && evidence.started !== null);
  const hasRestarted = wasOff || (canTell && start !== evidence.started);
  // The order's answer was lost, and the device has surely not restarted: it did not hear of it.
  if (receipt === null && canTell && !hasRestarted) return { state: "not_done", message };
  if (canTell && !hasRestarted) return { state: "in_progress", message: `${message}; it has not restarted yet` };
  // An order whose answer was lost left when it was announced, if it left at all.
  const orderedAt = !canTell && receipt === null && actingAt !== null ? actingAt : clock.now();
  const restartedAt = receipt?.restarted_at ?? orderedAt.toISOString();
  if (clock.now().getTime() - Date.parse(restartedAt) > payload.settle_seconds * 1_000) {
    // The process died around its order, and the device does not tell whether it restarted: by now it would have, and show the version.
    if (!canTell && receipt?.accepted !== true)
      return { state: "not_done", message, receipt: { restarted_at: restartedAt } };
    throw new StepFailure("firmware_not_applied", `the device has restarted, and shows ${describe(missing)}`, {
      facts,
    });
  }
  const cause = { code: "firmware_unproven", facts } as const;
  return { state: "in_progress", message, cause, receipt: { ...receipt, restarted_at: restartedAt } };
}

function parseActivate(payload: JsonObject, field: string): ActivateFirmwarePayload {
  if (Array.isArray(payload.wanted) && typeof payload.activation === "string")
    return payload as ActivateFirmwarePayload;
  throw new AppError("invalid_argument", `${field}: wanted and activation are required`, { field });
}
