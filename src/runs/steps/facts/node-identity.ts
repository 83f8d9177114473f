import type { NodeIdentity } from "../../../capabilities/cluster.ts";
import { type Machine, sshAddressOf } from "../../../lifecycles/machine/machine.ts";
import type { StepContext } from "../../model/step.ts";
import { whileUp } from "./boot-id.ts";

const PRODUCT_UUID = "/sys/class/dmi/id/product_uuid";

/** By what the machine's node is found: what the hardware says of itself, from outside or from inside. */
export async function readNodeIdentity({
  machine,
  can,
  targets,
  call,
}: StepContext<unknown, never, "system" | "exec">): Promise<NodeIdentity> {
  const { system: inspect, exec } = can;
  const outside =
    inspect === undefined || machine.spec.bmc === null
      ? undefined
      : await whileUp(async () => inspect.identify(await targets.bmc(), call));
  const inside =
    exec === undefined || machine.spec.ssh === null || outside?.systemUuid != null
      ? undefined
      : await whileUp(async () => exec.readFile(await targets.ssh(), PRODUCT_UUID, call));
  const address = sshAddressOf(machine);
  return {
    systemUuid: outside?.systemUuid ?? inside?.text?.trim().toLowerCase() ?? null,
    serial: outside?.serial ?? machine.spec.serial ?? machine.facts.serial,
    addresses: address === null ? [] : [address],
  };
}

/** Of a machine without a BMC nobody else says what its system UUID is, by which its node is looked for later on. */
export const learntBy = (
  { systemUuid }: Pick<NodeIdentity, "systemUuid">,
  { spec }: Pick<Machine, "spec">,
): { readonly systemUuid?: string } => (systemUuid === null || spec.bmc !== null ? {} : { systemUuid });

export const hasMark = ({ systemUuid, serial, addresses }: NodeIdentity): boolean =>
  systemUuid !== null || serial !== null || addresses.length > 0;
