import type { Capabilities, Provider } from "../../capabilities/provider.ts";
import { type ConnectionsOptions, SshConnections } from "./connections.ts";
import { createRemoteExec, type RemoteExecOptions } from "./remote-exec.ts";

export interface SshProviderOptions extends ConnectionsOptions, RemoteExecOptions {}

export interface SshProvider extends Provider {
  readonly can: Pick<Capabilities, "exec">;
  /** Drops all connections. */
  close(): void;
}

/** Operating systems reached over SSH, also by way of jump hosts. */
export function createSshProvider(options: SshProviderOptions = {}): SshProvider {
  const connections = new SshConnections(options);
  return {
    name: "ssh",
    can: { exec: createRemoteExec(connections, options) },
    close: () => connections.close(),
  };
}
