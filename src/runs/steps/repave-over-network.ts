import { createHash } from "node:crypto";
import type { BootOverride } from "../../capabilities/boot-device.ts";
import { type DeviceFailure, failureOf, isRefusal, isSilence } from "../../capabilities/device-failure.ts";
import type { NetInstall, NetInstallOrder, NetInstallSeen } from "../../capabilities/net-install.ts";
import type { Capabilities } from "../../capabilities/provider.ts";
import { type Effect, move, order, require } from "../../kernel/effects.ts";
import { StepFailure } from "../../kernel/errors.ts";
import { installLifecycle } from "../../lifecycles/install/lifecycle.ts";
import { machineLifecycle } from "../../lifecycles/machine/lifecycle.ts";
import type { Payloads } from "../model/plan/payloads.ts";
import type { Acted, ActingContext, ProbeAnswer } from "../model/step.ts";
import type { SeedEvidence } from "../seeds/seed-choice.ts";
import { whileUp } from "./facts/boot-id.ts";
import { NO_EFFECT, notInstalled, silent } from "./facts/in-the-way.ts";
import { printStamp } from "./facts/install-stamp.ts";
import {
  butRefusing,
  checkStamp,
  type Inside,
  type LookedInside,
  lookInside,
  NOBODY,
  notPutAway,
  provenBefore,
  provenBy,
  type Shown,
} from "./facts/installed-system.ts";

/** What was noted before an installation over the network. */
export type NetworkEvidence = {
  readonly token: string;
  readonly digest: string;
  /** The workflow. */
  readonly location: string;
  readonly proof?: "token" | "ssh";
  readonly seed?: SeedEvidence;
  readonly bootId: string | null;
  readonly lastReset: string | null;
};
type Acting = ActingContext<Payloads["repave"], NetworkEvidence, "system" | "exec", "boot" | "reset" | "netInstall">;
type Needs = Pick<Capabilities, "boot" | "reset"> & { readonly netInstall: NetInstall };

function needsOf({ can: { boot, reset, netInstall } }: Acting): Needs {
  if (boot && reset && netInstall) return { boot, reset, netInstall };
  throw new StepFailure("not_on_this_server", "the machine's provider cannot install over the network", {
    disposition: "fail",
    facts: { what: "capability", name: "netInstall" },
  });
}

const orderOf = ({ payload, machine, runId, evidence }: Acting): NetInstallOrder => ({
  machineId: machine.id,
  runId,
  orderId: createHash("sha256").update(evidence.token).digest("hex"),
  stamp: printStamp({
    image: payload.image_ref,
    digest: evidence.digest,
    machine: machine.id,
    serial: machine.spec.serial ?? machine.facts.serial ?? "",
    token: evidence.token,
  }),
  workflowId: evidence.location,
  digest: evidence.digest,
  mac: machine.spec.macs[0] ?? machine.facts.macs?.[0] ?? null,
});

/** The order comes first: a machine that boots before its order is on record goes to its disk. */
export async function announceOverNetwork(context: Acting): Promise<readonly Effect[]> {
  const { machine, log, evidence } = context;
  const what = orderOf(context);
  await needsOf(context).netInstall.check(what);
  log(`[repave] workflow ${evidence.location} is to be installed at the next boot from the network\n`);
  // Whose address it is must not change while the order is placed.
  return [require(machineLifecycle, machine.id), order(installLifecycle, machine.id, what)];
}

export async function actOverNetwork(context: Acting): Promise<Acted> {
  const { targets, call, log, clock } = context;
  const { boot, reset } = needsOf(context);
  const bmc = await targets.bmc();
  // Set by who knows how this machine boots from the network.
  const { source } = await boot.readBootOverride(bmc, call);
  if (source !== "http") await boot.setBootOverride(bmc, "pxe", call);
  await reset.resetPower(bmc, "forced", call);
  log("[repave] the BMC accepted the restart, with the network as the next boot source\n");
  return { receipt: { restartedAt: clock.now().toISOString() } };
}

export async function probeOverNetwork(context: Acting): Promise<ProbeAnswer> {
  const { netInstall } = needsOf(context);
  const seen = await netInstall.read(orderOf(context));
  switch (seen.state) {
    case "absent":
      return { state: "not_done", message: "the installation is not ordered" };
    case "ordered":
      return whetherRestarted(context);
    case "begun":
      return installing(context, seen);
    case "installing": {
      if (!isUnreported(context)) return installing(context, seen);
      await endStuckOverride(context);
      return prove(context, { ...seen, awaitsProof: true });
    }
    case "failed":
      throw new StepFailure("install_failed", seen.message);
    case "installed":
      return prove(context, seen);
  }
}

async function installing(context: Acting, { message }: NetInstallSeen): Promise<ProbeAnswer> {
  const note = await endStuckOverride(context);
  return { state: "in_progress", message: `${message}${note}`, cause: notInstalled() };
}

/** An ordinary installer reads a seed and reports nothing: only the system that it leaves tells that it is done. */
const isUnreported = ({ evidence }: Acting): boolean => evidence.seed !== undefined && evidence.proof !== "token";

/** Best effort, since a machine that was not installed may well go on as it is. The order itself ends with the run. */
export async function undoOverNetwork(context: Acting): Promise<void> {
  await needsOf(context).boot.clearBootOverride(await context.targets.bmc(), context.call);
}

/** Nothing was handed out yet: has the machine gone down for it, and did it come up in another way? */
async function whetherRestarted(context: Acting): Promise<ProbeAnswer> {
  const { can, call, evidence, targets, receipt, hasNotBegun = false } = context;
  const { boot } = needsOf(context);
  const bmc = await targets.bmc();
  const outside = await whileUp(async () => ({
    lastReset: (await can.system.readBoot(bmc, call)).lastReset,
    override: await boot.readBootOverride(bmc, call),
  }));
  if (outside === undefined) return { state: "unknown", message: "the BMC does not answer", cause: silent("bmc") };
  const bootId = (await insideIfAny(context)).system?.bootId;
  const tells = evidence.lastReset !== null && outside.lastReset !== null;
  const wentDown = tells
    ? outside.lastReset !== evidence.lastReset
    : evidence.bootId === null
      ? // A boot source that is used up looks like one that was never set; one that is kept for ever shows nothing at all.
        (!isNetwork(outside.override) && !hasNotBegun) || receipt !== null
      : bootId !== evidence.bootId;
  if (!wentDown)
    return {
      state: "not_done",
      message: "the machine has not been restarted to boot from the network",
      cause: NO_EFFECT,
    };
  if (bootId === undefined || bootId === evidence.bootId)
    return {
      state: "in_progress",
      message: "restarted; it has not asked for its boot script yet",
      cause: notInstalled(),
    };
  throw new StepFailure(
    "install_failed",
    "the machine came up without having booted from the network: check that its network card boots, and that the DHCP server names our boot file",
  );
}

const isNetwork = ({ source }: BootOverride): boolean => source === "pxe" || source === "http";

/** A machine that boots from the network for ever asks us each time, and is sent on to its disk: that is no failure, and told. */
const keptSource = ({ message }: DeviceFailure): string =>
  `; the BMC keeps the network as boot source, and the machine asks for its boot script at each boot: ${message}`;

/** A BMC that keeps "once" as "always" would have it boot from the network for ever. Who does not answer now is asked at the next look. */
async function endStuckOverride(context: Acting): Promise<string> {
  const { targets, call } = context;
  const { boot } = needsOf(context);
  const bmc = await targets.bmc();
  const failure = await failureOf(async () => {
    const override = await boot.readBootOverride(bmc, call);
    if (isNetwork(override) && override.lasts === "always") await boot.clearBootOverride(bmc, call);
  });
  if (failure === undefined) return "";
  return isSilence(failure) ? "; its BMC does not answer" : keptSource(failure);
}

const insideIfAny = async (context: Acting): Promise<LookedInside> =>
  context.machine.spec.ssh === null ? NOBODY : lookInside(context);

/**
 * token: it was reported complete by whoever had the script of this very boot; where the machine is reached over SSH, the system
 * that comes up then shows the host key that is pinned. ssh: the system itself shows the token.
 */
async function prove(context: Acting, seen: NetInstallSeen): Promise<ProbeAnswer> {
  const { payload, machine, evidence, receipt } = context;
  const before = provenBefore(receipt);
  if (before !== undefined) return bootAsBefore(context, seen, before ?? undefined);
  const image = { ref: payload.image_ref, digest: evidence.digest };
  const byToken = evidence.proof === "token";
  if (byToken && !seen.tokenShown)
    throw new StepFailure(
      "install_failed",
      "the report that completed the installation did not carry the token of its boot: let the installer send the token (millwright.token), or give the image success_proof ssh",
      { disposition: "fail" },
    );
  const { system, refusal } = await insideIfAny(context);
  if (byToken ? machine.spec.ssh !== null && !isFresh(system, evidence) : system?.stamp?.token !== evidence.token)
    return {
      state: "in_progress",
      message: `${seen.state === "installed" ? "installed" : seen.message}; the new system has not shown itself over SSH yet${butRefusing(refusal)}`,
      cause: notInstalled(),
    };
  if (!byToken && system?.stamp) checkStamp(system.stamp, machine, image);
  return bootAsBefore(context, seen, system);
}

async function bootAsBefore(context: Acting, seen: NetInstallSeen, system: Shown | undefined): Promise<ProbeAnswer> {
  const { payload, evidence, targets, call, receipt } = context;
  const bmc = await targets.bmc();
  const failure = await failureOf(() => needsOf(context).boot.clearBootOverride(bmc, call));
  if (failure !== undefined && !isRefusal(failure)) return notPutAway(payload.image_ref, failure, receipt, system);
  const image = { ref: payload.image_ref, digest: evidence.digest };
  const done = provenBy(image, system, context.machine);
  const message = failure === undefined ? done.message : `${done.message}${keptSource(failure)}`;
  return { ...done, message, effects: seen.awaitsProof ? [proven(context)] : [] };
}

const isFresh = (system: Inside | undefined, { bootId }: NetworkEvidence): boolean =>
  system?.bootId !== undefined && system.bootId !== bootId;

const proven = ({ machine, payload }: Acting) =>
  move(installLifecycle, machine.id, "repave_proven", { message: `${payload.image_ref} has proved itself` });
