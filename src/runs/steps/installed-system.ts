import { StepFailure } from "../../kernel/errors.ts";
import type { Machine } from "../../lifecycles/machine/machine.ts";
import type { StepContext } from "../step.ts";
import type { Image } from "../targets.ts";
import { readBootId, whileUp } from "./boot-id.ts";
import { type InstallStamp, parseStamp, STAMP_FILE } from "./install-stamp.ts";

/** What a machine shows of itself from inside. */
export interface Inside {
  readonly bootId: string | undefined;
  readonly stamp: InstallStamp | undefined;
  readonly hostKey: string;
}

/** Whatever host key it shows, since a fresh system has a fresh one. Undefined while no system answers. */
export async function lookInside({
  can,
  targets,
  call,
}: Pick<StepContext<unknown, "exec">, "can" | "targets" | "call">): Promise<Inside | undefined> {
  const ssh = { ...(await targets.ssh()), hostKey: null };
  const found = await whileUp(() => can.exec.readFile(ssh, STAMP_FILE, call));
  if (found === undefined) return undefined;
  const bootId = await readBootId(can.exec, ssh, call);
  return { bootId, stamp: parseStamp(found.text), hostKey: found.hostKey };
}

/** The token alone says that it came from this order; these say that it is the right system on the right machine. */
export function checkStamp(stamp: InstallStamp, machine: Machine, image: Pick<Image, "ref" | "digest">): void {
  if (stamp.digest !== image.digest)
    throw new StepFailure(
      "fail",
      `the machine came up with an image of digest ${stamp.digest || "(none)"}, but ${image.ref} is ${image.digest}: the medium at its location is another one`,
    );
  const serials = [machine.spec.serial, machine.facts.serial].filter((serial) => serial !== null);
  if (stamp.machine === machine.id || (stamp.serial !== "" && serials.includes(stamp.serial))) return;
  throw new StepFailure(
    "intervene",
    `the installed system says that it is machine ${stamp.machine || "(none)"} with serial ${stamp.serial || "(none)"}, but this is ${machine.id}: check which machine answers at its addresses`,
  );
}

/** What a proven installation makes known of the machine. */
export const provenBy = (
  { ref, digest }: Pick<Image, "ref" | "digest">,
  system: Pick<Inside, "hostKey" | "bootId"> | undefined,
) =>
  ({
    state: "done",
    message: `${ref} is installed (${digest.slice(0, 19)}…)`,
    facts: {
      ...(system && { sshHostKey: system.hostKey }),
      ...(system?.bootId !== undefined && { bootId: system.bootId }),
      // Whatever it was a node of, and whatever key it showed: the system that was is gone.
      joinedCluster: null,
      sshHostKeySeen: null,
    },
    conditions: [{ type: "Provisioned", status: true, reason: "ImageInstalled", message: ref }],
  }) as const;
