import { DeviceFailure, isKeptOut } from "../../../capabilities/device-failure.ts";
import type { SshTarget } from "../../../capabilities/ssh-target.ts";
import { causeOf, StepFailure } from "../../../kernel/errors.ts";
import type { JsonObject } from "../../../kernel/lifecycle.ts";
import type { Machine } from "../../../lifecycles/machine/machine.ts";
import type { ProbeReport, StepContext } from "../../model/step.ts";
import type { Image } from "../../model/targets.ts";
import { readBootId, whileUp } from "./boot-id.ts";
import { type InstallStamp, parseStamp, STAMP_FILE } from "./install-stamp.ts";

/** What a machine shows of itself from inside. */
export interface Inside {
  readonly bootId: string | undefined;
  readonly stamp: InstallStamp | undefined;
  readonly hostKey: string;
  /** Where a run had moved the system of before it is no more: it answers where its owner says. */
  readonly isBackHome: boolean;
}

export const NOBODY: LookedInside = {};

type Looking = Pick<StepContext<unknown, "exec">, "can" | "targets" | "call" | "machine"> & {
  readonly evidence: { readonly token: string };
};

/** Neither of both while nobody answers. */
export interface LookedInside {
  readonly system?: Inside;
  /** Why whoever answers keeps us out: an installer may, and so may the system of before; the new one must not. */
  readonly refusal?: string;
}

/**
 * Whatever host key it shows, since a fresh system has a fresh one.
 *
 * A fresh system knows nothing of a network change that was made to the one before: it may be back where its owner says. Somebody
 * else may live there by now, so that only who shows the token is believed there.
 */
export async function lookInside(context: Looking): Promise<LookedInside> {
  const { machine, targets, evidence } = context;
  const ssh = { ...(await targets.ssh()), hostKey: null };
  const home = machine.spec.ssh?.address ?? ssh.address;
  const here = lookAt(context, ssh);
  here.catch(() => undefined); // whoever lives there now is of interest only if the system is not back
  const back = home === ssh.address ? NOBODY : await lookAt(context, { ...ssh, address: home }).catch(nobody);
  return back.system?.stamp?.token === evidence.token ? { system: { ...back.system, isBackHome: true } } : here;
}

async function lookAt({ can, call }: Looking, ssh: SshTarget): Promise<LookedInside> {
  try {
    const found = await whileUp(() => can.exec.readFile(ssh, STAMP_FILE, call));
    if (found === undefined) return NOBODY;
    const bootId = await readBootId(can.exec, ssh, call);
    return { system: { bootId, stamp: parseStamp(found.text), hostKey: found.hostKey, isBackHome: false } };
  } catch (error) {
    if (isKeptOut(error)) return { refusal: error.message };
    throw error;
  }
}

/** For people, behind what is waited for. */
export const butRefusing = (refusal: string | undefined): string =>
  refusal === undefined ? "" : `; who answers over SSH keeps us out, which an installer may: ${refusal}`;

/** Whatever is the matter with who lives there now. */
function nobody(error: unknown): LookedInside {
  if (error instanceof DeviceFailure) return NOBODY;
  throw error;
}

/** The token alone says that it came from this order; these say that it is the right system on the right machine. */
export function checkStamp(stamp: InstallStamp, machine: Machine, image: Pick<Image, "ref" | "digest">): void {
  if (stamp.digest !== image.digest)
    throw new StepFailure(
      "install_failed",
      `the machine came up with an image of digest ${stamp.digest || "(none)"}, but ${image.ref} is ${image.digest}: the medium at its location is another one`,
      {
        disposition: "fail",
        facts: { expected: image.digest, shown: stamp.digest },
      },
    );
  const serials = [machine.spec.serial, machine.facts.serial].filter((serial) => serial !== null);
  if (stamp.machine === machine.id || (stamp.serial !== "" && serials.includes(stamp.serial))) return;
  throw new StepFailure(
    "wrong_identity",
    `the installed system says that it is machine ${stamp.machine || "(none)"} with serial ${stamp.serial || "(none)"}, but this is ${machine.id}: check which machine answers at its addresses`,
    {
      disposition: "intervene",
      facts: { at: "ssh", expected: machine.id, shown: stamp.machine },
    },
  );
}

/** What a proven installation makes known of the machine. */
export const provenBy = (
  { ref, digest }: Pick<Image, "ref" | "digest">,
  system: Shown | undefined,
  { facts: before }: Pick<Machine, "facts">,
) =>
  ({
    state: "done",
    message: `${ref} is installed (${digest.slice(0, 19)}…)`,
    facts: {
      ...(system && { sshHostKey: system.hostKey }),
      ...(system?.bootId !== undefined && { bootId: system.bootId }),
      ...(system?.isBackHome && { sshMoved: null }),
      // Whatever it was a node of, and whatever key it showed: the system that was is gone.
      joinedCluster: null,
      leftCluster: before.joinedCluster ?? before.leftCluster,
      sshHostKeySeen: null,
    },
    conditions: [{ type: "Provisioned", status: true, reason: "ImageInstalled", message: ref }],
  }) as const;

/** What of it is kept. */
export type Shown = Pick<Inside, "hostKey" | "bootId" | "isBackHome">;

/** The system that has proved itself at an earlier look; null where it does so without showing itself. Undefined: none has yet. */
export const provenBefore = (receipt: JsonObject | null): Shown | null | undefined =>
  receipt?.proven as Shown | null | undefined;

/**
 * Whatever the device says to that: what is proven is not installed a second time. A machine that would install again at its next boot
 * is not handed out either, nor restarted by the steps that follow: once the time is over, a person is called.
 */
export const notPutAway = (
  ref: string,
  failure: DeviceFailure,
  receipt: JsonObject | null,
  system: Shown | undefined,
): ProbeReport => {
  const { bootId, hostKey = null, isBackHome = false } = system ?? {};
  const shown = hostKey && { hostKey, ...(bootId !== undefined && { bootId }), isBackHome };
  return {
    state: "unknown",
    message: `${ref} is installed, but ${failure.message}`,
    cause: causeOf(failure),
    receipt: { ...receipt, proven: shown },
    callsPerson: true,
  };
};
