import type { CallContext } from "../../../capabilities/call.ts";
import type { RemoteExec } from "../../../capabilities/remote-exec.ts";
import type { SshTarget } from "../../../capabilities/ssh-target.ts";
import { seconds } from "../../../kernel/time/duration.ts";
import { whileUp } from "./boot-id.ts";

const ASK = `if command -v kubelet >/dev/null 2>&1; then kubelet --version; fi
`;

/** Of the kubelet on the machine's disk, as clusters write it (v1.33.0); undefined when there is none, or nobody answers. */
export async function readKubeletVersion(
  exec: RemoteExec,
  ssh: SshTarget,
  call: CallContext,
): Promise<string | undefined> {
  const exit = await whileUp(() => exec.run(ssh, { script: ASK, env: {}, timeout: seconds(15) }, call));
  return exit?.code === 0 ? /^Kubernetes (v\S+)$/m.exec(exit.output)?.[1] : undefined;
}
