import type { Duration } from "../kernel/time/duration.ts";
import type { CallContext } from "./call.ts";
import type { SshTarget } from "./ssh-target.ts";

export interface RemoteScript {
  /** Sent to `sh -s`. Written by us or shipped: never put together from what a user gave. */
  readonly script: string;
  /** What users give travels here, as environment variables. Names as in `sh`. */
  readonly env: Readonly<Record<string, string>>;
  readonly timeout: Duration;
  /** It needs the rights of root: signed in as another account it uses sudo, where that asks for no password. */
  readonly asRoot?: true;
  /** Told of output as it comes, up to the provider's cap; beyond it, once, that there is more. */
  readonly onOutput?: (text: Uint8Array, stream: "stdout" | "stderr") => void;
}

export interface RemoteExit {
  /** Null when a signal ended it. */
  readonly code: number | null;
  readonly signal: string | null;
  /** The beginning of what it wrote to stdout. */
  readonly output: string;
}

/**
 * Running things on a machine's operating system.
 *
 * A script that ends, however it ends, is an answer; only not getting one is a failure. When the connection breaks or the time is
 * up, the script may still run over there: whoever needs to know leaves marks and looks for them.
 *
 * @throws StepFailure "retry" when the machine cannot be reached, "fail" when it does not accept us, "intervene" when it shows
 * another host key than the pinned one.
 */
export interface RemoteExec {
  run(target: SshTarget, script: RemoteScript, call: CallContext): Promise<RemoteExit>;
  /** The key that it shows now, type and key, whatever is pinned. Nothing is sent to it. */
  readHostKey(target: SshTarget, call: CallContext): Promise<string>;
  /** A small file, whole; undefined when there is none. `hostKey` is the key that the machine showed. */
  readFile(
    target: SshTarget,
    path: string,
    call: CallContext,
  ): Promise<{ readonly text: string | undefined; readonly hostKey: string }>;
}
