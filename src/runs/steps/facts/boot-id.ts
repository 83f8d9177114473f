import type { CallContext } from "../../../capabilities/call.ts";
import { isSilence } from "../../../capabilities/device-failure.ts";
import type { RemoteExec } from "../../../capabilities/remote-exec.ts";
import type { SshTarget } from "../../../capabilities/ssh-target.ts";

const BOOT_ID = "/proc/sys/kernel/random/boot_id";

/** Another one after each boot; undefined while no system answers, which is what a machine on its way up looks like. */
export async function readBootId(exec: RemoteExec, ssh: SshTarget, call: CallContext): Promise<string | undefined> {
  const text = await whileUp(() => exec.readFile(ssh, BOOT_ID, call));
  return text?.text?.trim() || undefined;
}

/** Undefined when nobody answers, or not now; everything else that goes wrong is thrown. */
export async function whileUp<T>(ask: () => Promise<T>): Promise<T | undefined> {
  try {
    return await ask();
  } catch (error) {
    if (isSilence(error)) return undefined;
    throw error;
  }
}
