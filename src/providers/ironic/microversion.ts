import { DeviceFailure } from "../../capabilities/device-failure.ts";
import { textAt } from "../transport/device-json.ts";

/** Ironic's API grows by microversions `1.N`; what is asked for decides what is answered. */
export interface Microversion {
  readonly minor: number;
}

/** What we know of: 1.82 is Ironic 21.4, 1.89 brought virtual media. A newer server still speaks it. */
const NEWEST_KNOWN = 89;
/** Faults of nodes are told since 1.42, and much that we need is older. */
const OLDEST_USABLE = 42;

/** From when on Ironic has what we make use of where we can. */
export const SINCE = { indicators: 63, virtualMedia: 89 } as const;

const MINOR = /^1\.(\d{1,4})$/;
const minorOf = (text: string | undefined): number | undefined => {
  const [, minor] = MINOR.exec(text ?? "") ?? [];
  return minor === undefined ? undefined : Number(minor);
};

/** The newest that both sides know, from what the service says of itself at its root. */
export function chooseMicroversion(root: unknown, name: string): Microversion {
  const newest = minorOf(textAt(root, "default_version", "version"));
  const oldest = minorOf(textAt(root, "default_version", "min_version")) ?? 1;
  if (newest === undefined) {
    throw new DeviceFailure(
      "protocol",
      "bmc",
      `${name} does not say which versions of Ironic's API it speaks: is it Ironic? Give spec.bmc_endpoint the address of a node in Ironic`,
      { disposition: "fail" },
    );
  }
  const minor = Math.min(newest, NEWEST_KNOWN);
  if (minor >= OLDEST_USABLE && minor >= oldest) return { minor };
  throw new DeviceFailure(
    "protocol",
    "bmc",
    `${name} speaks versions 1.${oldest} to 1.${newest} of Ironic's API, and 1.${OLDEST_USABLE} to 1.${NEWEST_KNOWN} are known here`,
    { disposition: "fail" },
  );
}
