import type { JsonObject } from "../../kernel/lifecycle.ts";
import { parseEndpoint, SSH_PORT, sshPlaceOf } from "../../lifecycles/machine/endpoint.ts";
import { sshAddressOf } from "../../lifecycles/machine/machine.ts";
import { moveSshCredentials } from "../../store/machine/credentials.ts";
import { type MachineRecord, type SpecRow, sshOf } from "../../store/machine/machines.ts";
import type { Transaction } from "../../store/postgres/database.ts";

/**
 * What was learnt before the owner said otherwise: keys that were seen or proved, the certificate of the BMC of before. What was
 * seen first is only as good as the address at which it was; what an installation proved is the machine's own wherever it is.
 */
export const outdatedBy = (machine: MachineRecord, changed: readonly string[]): JsonObject => ({
  ...(changed.includes("ssh_host_key") && { sshHostKey: null, sshHostKeySeen: null }),
  ...((changed.includes("bmc_endpoint") || changed.includes("bmc_trust")) && { certificateFingerprint: null }),
  // Those that another BMC reported are not its own.
  ...(changed.includes("bmc_endpoint") && machine.facts.macs !== null && { macs: null }),
});

/**
 * The key that was seen first stays with the credentials while the machine is elsewhere, and counts again when it comes back. Who but
 * says where a run has moved the machine takes the credentials along.
 */
export async function moveSsh(
  tx: Transaction,
  machine: MachineRecord,
  after: SpecRow,
  changed: readonly string[],
): Promise<JsonObject> {
  if (!changed.includes("ssh_endpoint") && !changed.includes("jump_hosts")) return {};
  const { spec, facts } = machine;
  const ssh = sshOf(after);
  const [from, to] = [sshPlaceOf(machine), sshPlaceOf({ spec: { ...spec, ssh } })];
  const isSame = !changed.includes("jump_hosts") && !isElsewhere(machine, after.ssh_endpoint);
  const pin = changed.includes("ssh_host_key") ? null : facts.sshHostKeySeen;
  const kept = await moveSshCredentials(tx, machine.id, { from, to, isSame, pin });
  if (isSame || changed.includes("ssh_host_key")) return {};
  return isElsewhere(machine, after.ssh_endpoint) ? { sshHostKeySeen: kept } : {};
}

/** Its owner may but say where a run has moved it to. */
function isElsewhere({ spec, facts }: MachineRecord, endpoint: string | null): boolean {
  if (endpoint === null || spec.ssh === null) return true;
  const { address, port } = parseEndpoint(endpoint, "machine.spec.ssh_endpoint");
  const ssh = { ...spec.ssh, address, port: port ?? SSH_PORT };
  return (
    ssh.port !== spec.ssh.port || sshAddressOf({ spec: { ...spec, ssh }, facts }) !== sshAddressOf({ spec, facts })
  );
}
