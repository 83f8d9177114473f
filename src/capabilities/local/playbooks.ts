import type { SshTarget } from "../ssh-target.ts";
import type { StreamCall } from "../stream.ts";

/** A playbook of the server's own scripts, for one machine. */
export interface Play {
  /** As plans name it. */
  readonly ref: string;
  readonly text: string;
  /** The name of the machine in the inventory. */
  readonly machineId: string;
  /** What users give. Values only: nothing in them is ever evaluated on our side. */
  readonly args: Readonly<Record<string, string>>;
  /** Told of output as it comes, up to the provider's cap; beyond it, once, that there is more. */
  readonly onOutput: (text: Uint8Array, stream: "stdout" | "stderr") => void;
}

/**
 * Running playbooks against a machine. They run on our side, and sign in to the machine alone, which must show its pinned host key.
 *
 * A play that ends, however it ends, is an answer. It goes on only while the stream's lease is ours: when the stream ends, when this process
 * ends and when it stands still, the play is ended at once. What it had the machine do may go on there.
 *
 * @throws StepFailure when the machine cannot be reached, or shows another host key than the pinned one.
 */
export interface Playbooks {
  /** The exit code; null when a signal ended it. */
  run(target: SshTarget, play: Play, stream: StreamCall): Promise<number | null>;
}
