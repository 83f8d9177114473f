import { setTimeout as pause } from "node:timers/promises";
import type { BmcTarget } from "../../../capabilities/bmc-target.ts";
import type { CallContext } from "../../../capabilities/call.ts";
import { DeviceFailure } from "../../../capabilities/device-failure.ts";
import type { Capabilities } from "../../../capabilities/provider.ts";
import { causeOf, StepFailure } from "../../../kernel/errors.ts";
import type { Thing } from "../../../kernel/lifecycle.ts";
import { milliseconds, seconds } from "../../../kernel/time/duration.ts";
import { type BackOff, pauseBefore } from "../../../kernel/time/retry.ts";
import type { Activation } from "../../../lifecycles/rack-firmware/rack-firmware.ts";
import type { ProbeReport } from "../../model/step.ts";
import type { OnDevice } from "./on-device.ts";

/** By what a BMC is known again that shows another certificate than before. Null where it did not say. */
export type KnownBmc = {
  /** The UUID of its service root, which it tells everybody. */
  readonly root: string | null;
  readonly serial: string | null;
};

type Identifies = Partial<Pick<Capabilities, "inventory" | "system">>;
type Can = Pick<Capabilities, "manager"> & Identifies;

export interface ReachBmc {
  bmc(): Promise<BmcTarget>;
  readonly can: Can;
  readonly call: CallContext;
}

interface Written {
  readonly component: string;
}

interface ReachRestarted extends ReachBmc, Pick<OnDevice, "acceptCertificate"> {
  readonly payload: { readonly activation: Activation } & (Written | { readonly wanted: readonly Written[] });
  readonly log: (text: string) => void;
}

/** What the firmware of a BMC is called: of a tray and a switch, and of a shelf. */
const OF_BMC: readonly string[] = ["bmc", "pmc"];

/** Only a BMC that runs other firmware by this step, or is restarted by it, has a reason to show another certificate. */
const restartsBmc = ({ payload }: ReachRestarted): boolean =>
  payload.activation === "bmc_reset" ||
  ("wanted" in payload ? payload.wanted : [payload]).some(({ component }) => OF_BMC.includes(component));

const serialOf = async ({ can, call }: ReachBmc, target: BmcTarget): Promise<string | null> =>
  (await (can.inventory ?? can.system)?.identify(target, call))?.serial ?? null;

interface Identified {
  /** As it is on record. */
  readonly target: Thing;
  readonly can: Identifies;
  readonly call: CallContext;
}

/** Before anything is begun. Addresses move: nothing is sent to a BMC that answers for another device. Returns the serial number. */
export async function confirmDevice({ target: thing, can, call }: Identified, bmc: BmcTarget): Promise<string | null> {
  const identity = await (can.inventory ?? can.system)?.identify(bmc, call);
  if (identity === undefined) return null; // it cannot be asked
  const { serial } = identity;
  const { serial: expected = null } = thing.facts as { readonly serial?: string | null };
  if (expected === null || serial === expected) return serial;
  const shown = serial === null ? "no serial number" : `serial number ${serial}`;
  throw new StepFailure(
    "wrong_identity",
    `the BMC at ${bmc.address} answers for ${shown}, but this device is ${expected}: check the address`,
    {
      disposition: "fail",
      facts: { at: "bmc", address: bmc.address, expected, ...(serial !== null && { shown: serial }) },
    },
  );
}

export async function knowBmc(context: ReachBmc & Identified, target: BmcTarget): Promise<KnownBmc> {
  const serial = await confirmDevice(context, target);
  const { uuid } = await context.can.manager.readRoot(target, context.call);
  return { root: uuid, serial };
}

export interface Reached<T> {
  readonly answer: T;
  /** The new certificate, where one was accepted. */
  readonly certificate: string | null;
}

/**
 * Asks a BMC after a flash. Where the flash was of the BMC itself, and the operator allows it (`bmc.accept_new_certificate_after_flash`),
 * one other certificate than the pinned one is accepted, of a BMC that is the same by what it tells everybody and then, signed in to,
 * by its serial number. Somebody in the middle can repeat both, and gets the password: hence the setting. Otherwise the certificate
 * is as wrong as at any time. `accepted` is the one that an earlier probe of the same step has accepted.
 */
export async function askRestarted<T>(
  context: ReachRestarted,
  known: KnownBmc,
  accepted: string | null,
  ask: (target: BmcTarget) => Promise<T>,
): Promise<Reached<T>> {
  const given = await context.bmc();
  const target = accepted === null ? given : pinnedTo(given, accepted);
  try {
    return { answer: await ask(target), certificate: accepted };
  } catch (error) {
    if (accepted !== null || !(error instanceof DeviceFailure) || error.code !== "certificate_changed") throw error;
    if (context.acceptCertificate === undefined || !restartsBmc(context)) throw error;
    const shown = await confirmSame(context, given, known, error);
    context.acceptCertificate(shown);
    context.log(`[firmware] the BMC shows a new certificate after its flash, which is accepted: ${shown}\n`);
    return { answer: await ask(pinnedTo(given, shown)), certificate: shown };
  }
}

const pinnedTo = (target: BmcTarget, fingerprint256: string): BmcTarget => ({
  ...target,
  trust: { mode: "pin", fingerprint256 },
});

/** The fingerprint that it shows now; `error` where it is not the same BMC. */
async function confirmSame(
  context: ReachBmc,
  given: BmcTarget,
  known: KnownBmc,
  error: DeviceFailure,
): Promise<string> {
  // Without credentials: they leave only once the BMC has said that it is the one that they are for.
  const open = { ...given, trust: { mode: "pin" } as const };
  const { uuid, certificateFingerprint } = await context.can.manager.readRoot(open, context.call);
  if (uuid === null || uuid !== known.root || certificateFingerprint === undefined) throw error;
  const serial = await serialOf(context, pinnedTo(given, certificateFingerprint));
  if (serial === null || serial !== known.serial) throw error;
  return certificateFingerprint;
}

/** Facts of the device, and what its history says, once a new certificate was accepted. */
export const acceptedFacts = (certificate: string | null): Pick<ProbeReport, "facts"> =>
  certificate === null ? {} : { facts: { certificateFingerprint: certificate } };

/**
 * Once something was begun, a device that does not answer, is busy, makes no sense or does not let us in tells nothing: it restarts,
 * or is about to. What the device says itself passes.
 */
export async function unknownIfSilent(
  ask: () => Promise<ProbeReport>,
  receipt?: ProbeReport["receipt"],
): Promise<ProbeReport> {
  try {
    return await ask();
  } catch (error) {
    if (!(error instanceof DeviceFailure)) throw error;
    return { state: "unknown", message: error.message, cause: causeOf(error), ...(receipt && { receipt }) };
  }
}

const TRIES = 4;
const BETWEEN: BackOff = { first: seconds(1), most: seconds(5) };

/** Before anything is begun: one lost answer of a BMC that is just slow does not fail its device. */
export async function patiently<T>({ signal }: CallContext, ask: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await ask();
    } catch (error) {
      const mayPass = error instanceof DeviceFailure && error.disposition === "retry" && tries < TRIES;
      if (!mayPass) throw error;
      const wait = milliseconds(Math.min(error.retryAfterMs ?? pauseBefore(tries, BETWEEN), BETWEEN.most));
      await pause(wait, undefined, { signal }).catch(() => {
        throw new StepFailure("stopped", "stopped while a device was asked", { cause: signal.reason });
      });
    }
  }
}
