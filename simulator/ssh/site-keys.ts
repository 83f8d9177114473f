import type { Machine } from "../devices/machine.ts";
import type { SeededValues } from "../seeded-values.ts";
import { ed25519Key, type SshKey } from "./ed25519-key.ts";

/** All SSH keys of the site. They follow from the seed and are made when first asked for. */
export interface SiteKeys {
  /** The key that opens every machine and the bastion. */
  readonly operator: SshKey;
  readonly bastionHost: SshKey;
  /** A machine has another host key after each installation. */
  hostKey(machine: Machine): SshKey;
  /** The key of whoever sits between the client and the machine. */
  impostorKey(machine: Machine): SshKey;
}

export function createSiteKeys(seeded: SeededValues): SiteKeys {
  const made = new Map<string, SshKey>();
  const key = (name: string): SshKey => {
    const before = made.get(name);
    if (before !== undefined) return before;
    const fresh = ed25519Key(seeded.hex(`ssh-key/${name}`, 64));
    made.set(name, fresh);
    return fresh;
  };
  return {
    get operator() {
      return key("operator");
    },
    get bastionHost() {
      return key("bastion");
    },
    hostKey: (machine) => key(`${machine.spec.id}/${machine.state.os?.number ?? "none"}`),
    impostorKey: (machine) => key(`${machine.spec.id}/impostor`),
  };
}
