import type { FabricTarget } from "../../capabilities/rack/fabric.ts";
import { createBatcher } from "../../kernel/batcher.ts";
import { AppError, StepFailure } from "../../kernel/errors.ts";
import { nvosAddressOf, type Switch } from "../../lifecycles/switch/switch.ts";
import type { SecretStore } from "../../store/access/secrets.ts";
import { type BmcCredentials, getOsCredentials } from "../../store/device/bmc-credentials.ts";
import type { Database } from "../../store/postgres/database.ts";
import { findSwitches } from "../../store/switch/switches.ts";

/**
 * Where the operating systems of switches are, and how to sign in: with one query for all that ask at the same time.
 *
 * @throws StepFailure "endpoint_missing" or "credentials_missing", for the function that it returns.
 */
export function wireFabricTargets({
  db,
  secrets,
}: {
  readonly db: Database;
  readonly secrets: SecretStore;
}): (switchId: string) => Promise<FabricTarget> {
  const switches = createBatcher<string, Switch | undefined>({
    most: 500,
    atOnce: 2,
    run: (ids) => findSwitches(db, ids),
  });
  const credentials = createBatcher<string, BmcCredentials | AppError>({
    most: 500,
    atOnce: 2,
    run: (macs) => getOsCredentials(db, secrets, macs),
  });
  return async (id) => {
    const found = await switches.submit(id);
    const place = found && placeOf(found);
    if (!place) {
      throw new StepFailure(
        "endpoint_missing",
        `it is not on record where the operating system of switch ${id} is reached: its BMC does not report it; millwright expected-switch set-nvos-address sets it`,
        { facts: { at: "switch_os" } },
      );
    }
    const account = await credentials.submit(found.bmc.mac);
    if (account instanceof AppError)
      throw new StepFailure("credentials_missing", account.message, { facts: { at: "switch_os", name: id } });
    return { ...place, ...account };
  };
}

/** The expected switch may name the port; otherwise both answer at the same one, which is 443 nearly everywhere. */
function placeOf(device: Switch): Omit<FabricTarget, "username" | "password"> | undefined {
  const { facts, bmc } = device;
  const known = nvosAddressOf(device);
  if (known === null) return undefined;
  const [, host, port] = /^\[?([^\]]+?)\]?(?::(\d{1,5}))?$/.exec(known) ?? [];
  const isIpv6 = known.split(":").length > 2 && !known.startsWith("[");
  const pinned = facts.nvosCertificateFingerprint;
  return {
    address: isIpv6 ? known : (host ?? known),
    port: port === undefined || isIpv6 ? bmc.port : Number(port),
    scheme: bmc.scheme,
    trust: bmc.trust === "pin" && pinned !== null ? { mode: "pin", fingerprint256: pinned } : { mode: bmc.trust },
    noun: "switch OS",
  };
}
