import { type DeviceCause, DeviceFailure } from "../../capabilities/device-failure.ts";
import { signInEndpoint } from "../../capabilities/sign-in-ledger.ts";

type Options = NonNullable<ConstructorParameters<typeof DeviceFailure>[3]>;

/** Work on a BMC failed: with the address that was called among the facts. */
export const bmcFailure = (
  code: DeviceCause,
  target: { readonly address: string; readonly port: number },
  message: string,
  options: Options = {},
): DeviceFailure =>
  new DeviceFailure(code, "bmc", message, {
    ...options,
    facts: { address: signInEndpoint(target), ...options.facts },
  });
