import { randomBytes } from "node:crypto";
import type { BootOverride } from "../../capabilities/boot-device.ts";
import { failureOf, isKeptOut } from "../../capabilities/device-failure.ts";
import type { Imaging, InstallOrder } from "../../capabilities/imaging.ts";
import { StepFailure } from "../../kernel/errors.ts";
import { minutes } from "../../kernel/time/duration.ts";
import type { Machine } from "../../lifecycles/machine/machine.ts";
import { type Payloads, parsePayload } from "../model/plan/payloads.ts";
import { type ActingContext, defineStep, type ProbeAnswer, readProbe, type StepContext } from "../model/step.ts";
import { provesWithoutSsh } from "../model/targets.ts";
import { chooseSeed, type SeedEvidence } from "../seeds/seed-choice.ts";
import { BOOT_SOURCE_FREE, installerMark } from "../seeds/seed-place.ts";
import { readBootId, whileUp } from "./facts/boot-id.ts";
import { NO_EFFECT, notInstalled, silent } from "./facts/in-the-way.ts";
import { type InstallStamp, parseStamp, printStamp, STAMP_FILE } from "./facts/install-stamp.ts";
import {
  butRefusing,
  checkStamp,
  type Inside,
  lookInside,
  notPutAway,
  provenBefore,
  provenBy,
  type Shown,
} from "./facts/installed-system.ts";
import { actOverNetwork, announceOverNetwork, probeOverNetwork, undoOverNetwork } from "./repave-over-network.ts";

type Evidence = {
  /** Single use; made before anything is done, so that nobody can have it from an earlier installation. */
  readonly token: string;
  readonly digest: string;
  readonly location: string;
  /** Absent in what older servers noted: an ISO. */
  readonly kind?: "iso" | "disk" | "netboot";
  readonly proof?: "token" | "ssh";
  readonly seed?: SeedEvidence;
  readonly bootId: string | null;
  readonly lastReset: string | null;
  /** What the BMC said of the boot. Absent in what older servers noted. */
  readonly progress?: string;
};
type Needed = "system" | "exec";
type Used = "imaging" | "netInstall" | "boot" | "reset";
type Context = StepContext<Payloads["repave"], Needed, Used>;
type Acting = ActingContext<Payloads["repave"], Evidence, Needed, Used>;

/**
 * After a restart: by then firmware has read its boot source, where nothing tells that the installer has begun. Too early, and the machine
 * boots from its disk in every attempt; too late, and a short installer runs once more.
 */
const READ_BY_FIRMWARE = minutes(3);
/**
 * The same where something will tell, or speaks against it: an installer that calls home says when it has begun, and a large machine is
 * longer than three minutes in its self-test. Time decides only where the installer reaches nobody, or the BMC's word is an old one.
 */
const TOLD_WITHIN = minutes(15);
/** In the receipt: since the restart the BMC has shown the machine in its self-test. */
const SELF_TEST_SEEN = "selfTestSeen";
/** How long a BMC may take to insert the medium, before the restart: where that was announced, and nothing tells when it came. */
const INSERTED_WITHIN = minutes(2);

/**
 * Installs an operating system. Done when the machine answers over SSH with a system that shows the token of this very
 * installation, the image's digest and its own name or serial number; the host key that it shows then is pinned from there on.
 *
 * Until then any host key is taken, since a fresh system has a fresh one: signing in by key gives nothing away, and whoever is
 * not the machine does not know the token.
 *
 * The image says how: from a medium that the BMC offers, or over the server's own boot path.
 */
export const repave = defineStep({
  kind: "repave",
  // Which of the ways to install is needed, the image says (IMAGE_NEEDS).
  needs: ["system", "exec"],
  mayUse: ["imaging", "netInstall", "boot", "reset"],
  defaults: { timeout: minutes(30), maxRetries: 1 },
  reboots: true,
  replacesSystem: true,
  endsIn: "READY",
  parse: parsePayload.repave,
  refersTo: ({ image_ref, cloud_init_ref }) => [
    { kind: "image", ref: image_ref },
    ...(cloud_init_ref === "" ? [] : [{ kind: "cloud_init", ref: cloud_init_ref } as const]),
  ],

  async before(context: Context): Promise<Evidence> {
    const { payload, can, targets, call, machine, runId } = context;
    const image = await targets.image(payload.image_ref);
    const { digest, location, kind = "iso", proof = "ssh" } = image;
    const token = randomBytes(24).toString("hex");
    const choosing = { imaging: can.imaging, targets, call, runId, token, serial: serialOf(machine) };
    const seed = await chooseSeed(image, choosing);
    const { lastReset, progress } = await can.system.readBoot(await targets.bmc(), call);
    const goesWithoutSsh = provesWithoutSsh({ kind, proof }) && machine.spec.ssh === null;
    const bootId = goesWithoutSsh ? null : await bootIdBefore(context);
    return { token, digest, location, kind, proof, ...(seed && { seed }), bootId, lastReset, progress };
  },

  announces: async (context: Acting) => (isOverNetwork(context) ? announceOverNetwork(context) : []),

  async act(context: Acting) {
    if (isOverNetwork(context)) return actOverNetwork(context);
    const { payload, targets, call, log, clock } = context;
    const bmc = await targets.bmc();
    const order = orderOf(context);
    const imaging = imagingOf(context);
    await imaging.prepare(bmc, order, call);
    log(`[repave] the medium of ${payload.image_ref} is inserted and the next boot source\n`);
    await imaging.start(bmc, order, call);
    log("[repave] the BMC accepted the restart into it\n");
    // That the BMC accepted it: absent where its answer was lost, and where older servers acted.
    return { receipt: { restartedAt: clock.now().toISOString() } };
  },

  async probe(context: Acting): Promise<ProbeAnswer> {
    if (isOverNetwork(context)) return probeOverNetwork(context);
    const { can, targets, call, evidence, receipt } = context;
    const proven = provenBefore(receipt);
    if (proven) return putAway(context, proven);
    const bmc = await targets.bmc();
    // Before anything else: a short installer restarts the machine before a system that is not there yet was waited for.
    const mark = installerMark(evidence.token);
    const isSeen = context.installerSeen === mark;
    const isFree = receipt?.[BOOT_SOURCE_FREE] === mark;
    const keeps = isSeen && !isFree ? await endSeenOverride(context) : undefined;
    // Written at once: the installer waits for it, and may restart the machine as soon as it is answered.
    if (keeps === "") return freedFor(mark, context);
    const { system, refusal } = await lookInside(context);
    if (system?.stamp?.token === evidence.token) return installed(context, system.stamp, system);
    checkMedium(context);
    const outside = await whileUp(async () => ({
      boot: await can.system.readBoot(bmc, call),
      imaging: await imagingOf(context).readProgress(bmc, orderOf(context), call),
      override: await can.boot?.readBootOverride(bmc, call),
    }));
    if (outside === undefined) return { state: "unknown", message: "the BMC does not answer", cause: silent("bmc") };
    const seen: Seen = {
      evidence,
      bootId: system?.bootId,
      lastReset: outside.boot.lastReset,
      imaging: outside.imaging,
      doing: outside.boot.progress,
      wasAccepted: context.receipt !== null,
      ...(refusal !== undefined && { refusal }),
    };
    const report = progressOfInstall(seen);
    const note = isSeen ? (keeps ?? "") : await endStuckOverride(context, seen, outside.override);
    return withReceipt(context, seen, withNote(report, note));
  },

  /** Another installation's token says nothing; the pinned host key, the image's digest and the machine's own name do. */
  async observe({ payload, machine, evidence, can, targets, call }: Acting): Promise<ProbeAnswer> {
    const ssh = await targets.ssh();
    if (ssh.hostKey === null)
      return {
        state: "not_done",
        message: "the machine's host key is not known, so another host could answer in its place",
        cause: { code: "host_key_unknown", facts: { at: "ssh" } },
      };
    const stamp = parseStamp((await can.exec.readFile(ssh, STAMP_FILE, call)).text);
    if (stamp === undefined)
      return { state: "not_done", message: "the system does not say that it was installed from an image" };
    checkStamp(stamp, machine, { ref: payload.image_ref, digest: evidence.digest });
    return {
      state: "done",
      message: `${payload.image_ref} is installed already (${evidence.digest.slice(0, 19)}…)`,
      conditions: [{ type: "Provisioned", status: true, reason: "ImageInstalled", message: payload.image_ref }],
    };
  },

  async undo(context: Acting) {
    if (isOverNetwork(context)) await undoOverNetwork(context);
    else {
      const stays = await imagingOf(context).cleanUp(await context.targets.bmc(), orderOf(context), context.call);
      if (stays !== undefined) return { stays };
    }
    return undefined;
  },
  undoIsPartial: true,
  residue: ({ image_ref }) => `the installation of ${image_ref} may have begun: what was on the disk may be lost`,
});

const isOverNetwork = ({ evidence }: Acting): boolean => evidence.kind === "netboot";

function imagingOf({ can: { imaging } }: Acting): Imaging {
  if (imaging) return imaging;
  throw new StepFailure(
    "not_on_this_server",
    "the machine's provider has no medium to install from: choose an image of kind netboot",
    {
      disposition: "fail",
      facts: { what: "capability", name: "imaging" },
    },
  );
}

/** The installer waits for a medium that it is not given any more. */
function checkMedium({ mediumRefused, evidence }: Acting): void {
  if (mediumRefused?.order === installerMark(evidence.token)) throw new StepFailure("image_unfit", mediumRefused.why);
}

/** A system that answers by key alone: a fresh host key cannot be known, and a password would be shown to whoever answers. */
async function bootIdBefore({ can, targets, call }: Context): Promise<string | null> {
  const ssh = await targets.ssh();
  if ("password" in ssh.credentials)
    throw new StepFailure(
      "credentials_missing",
      "an installation is proved over SSH, to a host whose key is new: give the machine a private key to sign in with, since a password could be sent to a wrong host",
      {
        facts: { at: "ssh" },
      },
    );
  try {
    return (await readBootId(can.exec, { ...ssh, hostKey: null }, call)) ?? null;
  } catch (error) {
    // A system into which nobody gets is what is to be replaced.
    if (isKeptOut(error)) return null;
    throw error;
  }
}

const serialOf = ({ spec, facts }: Machine): string => spec.serial ?? facts.serial ?? "";

function orderOf({ payload, machine, evidence: { location, token, digest, kind, seed } }: Acting): InstallOrder {
  const stamp = { image: payload.image_ref, digest, machine: machine.id, serial: serialOf(machine), token };
  const isInImage = seed?.inImage !== undefined;
  return {
    location: isInImage ? seed.url : location,
    cloudInitRef: payload.cloud_init_ref,
    token,
    digest,
    kind: kind === "disk" ? "disk" : "iso",
    ...(isInImage
      ? { hasSeedInside: true as const }
      : seed !== undefined && seed.url !== "" && { seed: { url: seed.url } }),
    stamp: { path: STAMP_FILE, text: printStamp(stamp) },
  };
}

async function installed(context: Acting, stamp: InstallStamp, system: Inside): Promise<ProbeAnswer> {
  const { payload, machine, evidence } = context;
  checkStamp(stamp, machine, { ref: payload.image_ref, digest: evidence.digest });
  return putAway(context, system);
}

async function putAway(context: Acting, system: Shown): Promise<ProbeAnswer> {
  const { payload, evidence, targets, call, receipt } = context;
  const bmc = await targets.bmc();
  let stays: string | undefined;
  const failure = await failureOf(async () => {
    stays = await imagingOf(context).cleanUp(bmc, orderOf(context), call);
  });
  if (failure !== undefined) return notPutAway(payload.image_ref, failure, receipt, system);
  const proven = provenBy({ ref: payload.image_ref, digest: evidence.digest }, system, context.machine);
  return stays === undefined ? proven : { ...proven, message: `${proven.message}; ${stays}` };
}

interface Seen {
  readonly evidence: Evidence;
  /** Undefined while no system answers. */
  readonly bootId: string | undefined;
  readonly lastReset: string | null;
  readonly imaging: { readonly inserted: boolean; readonly armed: boolean };
  readonly doing: string;
  /** The BMC accepted the restart. */
  readonly wasAccepted: boolean;
  /** Why whoever answers over SSH keeps us out. */
  readonly refusal?: string;
}

/** What is seen of an installation that has not proved itself yet. Pure, and a table of its own in the tests. */
export function progressOfInstall(seen: Seen): ProbeAnswer {
  const { evidence, bootId, doing, refusal } = seen;
  const isSystemOfBefore = bootId !== undefined && bootId === evidence.bootId;
  if (!wasReset(seen))
    return {
      state: "not_done",
      message: "the machine has not been restarted into the installation medium",
      cause: NO_EFFECT,
    };
  if (bootId === undefined || isSystemOfBefore)
    return {
      state: "in_progress",
      message: `installing (the BMC says: ${doing})${butRefusing(refusal)}`,
      cause: notInstalled(doing),
    };
  throw new StepFailure(
    "install_failed",
    "the machine came up with a system that is not from this installation: it did not boot from the medium, or the installation failed",
  );
}

const tellsOfResets = ({ evidence, lastReset }: Seen): boolean => evidence.lastReset !== null && lastReset !== null;

const wasReset = (seen: Seen): boolean =>
  tellsOfResets(seen) ? seen.lastReset !== seen.evidence.lastReset : wentDownForIt(seen);

/**
 * For BMCs that do not tell when they were reset: the system that was up is gone. Where none was, the medium's turn to boot is over, or
 * the BMC accepted the restart: one that keeps "once" as "always" never shows more.
 */
const wentDownForIt = ({ evidence, bootId, imaging: { inserted, armed }, wasAccepted }: Seen): boolean =>
  inserted && bootId !== evidence.bootId && (evidence.bootId === null ? !armed || wasAccepted : true);

/**
 * A BMC that keeps "once" as "always" would install again and again: the override is cleared once the firmware has read it. Before that
 * the machine would boot from its disk.
 */
async function endStuckOverride(context: Acting, seen: Seen, override: BootOverride | undefined): Promise<string> {
  return isStuck(override) && hasReadBootSource(context, seen) ? endOverride(context) : "";
}

const isStuck = (override: BootOverride | undefined): boolean =>
  override?.source === "cd" && override.lasts === "always";

/**
 * Empty once no further boot goes to the medium; undefined where the BMC does not answer. A boot source that is called "once" is left: a
 * report may come from somebody else who knows the way, before the firmware has read it.
 */
async function endSeenOverride(context: Acting): Promise<string | undefined> {
  const { can, targets, call } = context;
  if (can.boot === undefined) return "";
  const override = await whileUp(async () => can.boot?.readBootOverride(await targets.bmc(), call));
  if (override === undefined) return undefined;
  return isStuck(override) ? endOverride(context) : "";
}

const freedFor = (mark: string, { receipt }: Acting): ProbeAnswer => ({
  state: "in_progress",
  message: "installing: the installer has begun",
  cause: notInstalled(),
  receipt: { ...receipt, [BOOT_SOURCE_FREE]: mark },
});

async function endOverride({ can, targets, call, log }: Acting): Promise<string> {
  const kept = await failureOf(async () => can.boot?.clearBootOverride(await targets.bmc(), call));
  if (kept !== undefined)
    return `the BMC keeps the medium as boot source, and the machine installs again at each boot until it is ejected: ${kept.message}`;
  log("[repave] the BMC keeps the boot source for every boot: it was cleared, so that not every boot installs\n");
  return "";
}

/**
 * A machine that ran before, was reset and now boots has read it, and so has one that has left its self-test. "running" alone tells
 * nothing: the register of many BMCs keeps what it said of the boot before until the firmware says something else. Otherwise time
 * tells, unless the machine is known not to have been reset.
 */
function hasReadBootSource(context: Acting, seen: Seen): boolean {
  const { evidence, bootId, doing } = seen;
  const isStillUp = bootId !== undefined && bootId === evidence.bootId;
  if (tellsOfResets(seen) ? !wasReset(seen) : isStillUp) return false;
  const isSeenToBoot = tellsOfResets(seen) && evidence.progress === "running" && doing === "booting";
  const hasLeftSelfTest = context.receipt?.[SELF_TEST_SEEN] === true && (doing === "booting" || doing === "running");
  if (isSeenToBoot || hasLeftSelfTest) return true;
  const isBeforeBoot = doing === "starting" || doing === "off";
  const within = isBeforeBoot || callsHome(evidence) ? TOLD_WITHIN : READ_BY_FIRMWARE;
  return context.clock.now().getTime() >= restartedBy(context) + within;
}

/** Ignition has no word for it. */
const callsHome = ({ seed }: Evidence): boolean => seed !== undefined && seed.format !== "ignition";

const withNote = (report: ProbeAnswer, note: string): ProbeAnswer =>
  note === "" ? report : { ...readProbe(report), message: `${readProbe(report).message ?? ""}; ${note}` };

/** A self-test that the BMC showed before the restart may be an old word of its register. */
function withReceipt({ receipt }: Acting, seen: Seen, report: ProbeAnswer): ProbeAnswer {
  const isSeen = seen.doing === "starting" && seen.evidence.progress !== "starting" && wasReset(seen);
  if (!isSeen || receipt?.[SELF_TEST_SEEN] === true) return report;
  return { ...readProbe(report), receipt: { ...receipt, [SELF_TEST_SEEN]: true } };
}

/** When the restart was commanded, at the latest; never, where it was not. */
function restartedBy({ receipt, actingAt, hasNotBegun }: Acting): number {
  if (typeof receipt?.restartedAt === "string") return Date.parse(receipt.restartedAt);
  return actingAt == null || hasNotBegun ? Number.POSITIVE_INFINITY : actingAt.getTime() + INSERTED_WITHIN;
}
