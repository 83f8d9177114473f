import type { FabricTarget } from "../../capabilities/rack/fabric.ts";
import { createBatcher } from "../../kernel/batcher.ts";
import { AppError, StepFailure } from "../../kernel/errors.ts";
import { nvosEndpointOf, nvosPlaceOf } from "../../lifecycles/switch/nvos-place.ts";
import { nvosAddressOf, type Switch } from "../../lifecycles/switch/switch.ts";
import { noCredentials } from "../../store/access/no-credentials.ts";
import type { SecretStore } from "../../store/access/secrets.ts";
import { type BmcCredentials, type PlacedMac, signInToOs } from "../../store/device/bmc-credentials.ts";
import type { Database } from "../../store/postgres/database.ts";
import { findSwitches } from "../../store/switch/switches.ts";

/**
 * Where the operating systems of switches are, and how to sign in: with one query for all that ask at the same time.
 *
 * @throws StepFailure "endpoint_missing", "credentials_missing" or "credentials_not_for_this_address", for the function that it returns.
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
  const credentials = createBatcher<PlacedMac, BmcCredentials | AppError>({
    most: 500,
    atOnce: 2,
    run: (systems) => signInToOs(db, secrets, systems),
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
    const { mac } = found.bmc;
    const account = await credentials.submit({ mac, place: nvosPlaceOf(found.givenNvosAddress, found.bmc) });
    if (account instanceof AppError) throw noCredentials(account, { at: "switch_os", name: id });
    return { ...place, ...account };
  };
}

function placeOf(device: Switch): Omit<FabricTarget, "username" | "password"> | undefined {
  const { facts, bmc } = device;
  const known = nvosAddressOf(device);
  if (known === null) return undefined;
  const pinned = facts.nvosCertificateFingerprint;
  return {
    ...nvosEndpointOf(known, bmc.port),
    scheme: bmc.scheme,
    trust: bmc.trust === "pin" && pinned !== null ? { mode: "pin", fingerprint256: pinned } : { mode: bmc.trust },
    noun: "switch OS",
  };
}
