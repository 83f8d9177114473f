import type { BmcTarget } from "../../capabilities/bmc-target.ts";
import { DeviceFailure } from "../../capabilities/device-failure.ts";
import { keyOf } from "../transport/bmc-gateway.ts";

/** Where a node is in Ironic. */
export interface NodePlace {
  /** What stands before `/v1`: empty, unless Ironic shares its address with others. */
  readonly root: string;
  /** UUID or name, as it was given. */
  readonly node: string;
}

const PLACE = /^((?:\/[A-Za-z0-9._~-]+)*)\/v1\/nodes\/([A-Za-z0-9._~-]+)$/;

/** From the path of the machine's endpoint, which is the node's own address in Ironic. */
export function nodePlaceOf({ path = "", ...target }: BmcTarget): NodePlace {
  const [, root, node] = PLACE.exec(path) ?? [];
  if (root !== undefined && node !== undefined) return { root, node };
  throw new DeviceFailure(
    "protocol",
    "bmc",
    `${keyOf(target)} names no node: give spec.bmc_endpoint the address of the node in Ironic, like https://ironic.example:6385/v1/nodes/NODE`,
    { disposition: "fail" },
  );
}
