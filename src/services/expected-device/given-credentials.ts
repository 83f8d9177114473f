import { type CredentialPlace, NOWHERE, placeOfBmc } from "../../capabilities/credential-place.ts";
import { putBmcCredentials } from "../../store/device/bmc-credentials.ts";
import type { ExpectedDeviceRecord } from "../../store/expected-device/expected-devices.ts";
import type { Transaction } from "../../store/postgres/database.ts";
import type { ServiceDeps } from "../call/deps.ts";
import type { ExpectedKind } from "./expected-kind.ts";
import type { Checked, ExpectedInput } from "./input.ts";

/** A row as it will be, with the device that has its BMC. */
export interface GivenRow<I extends ExpectedInput> {
  readonly checked: Checked<I>;
  readonly deviceId: string | undefined;
}

/**
 * Keeps the passwords that the rows bring, each for the address that its row has: a message that carries both gives them together. A
 * row without an address speaks of the device that is on record. The caller holds the locks of the BMCs.
 */
export async function putGivenCredentials<R extends ExpectedDeviceRecord, I extends ExpectedInput>(
  kind: Pick<ExpectedKind<R, I>, "listDevices">,
  tx: Transaction,
  { secrets }: Pick<ServiceDeps, "secrets">,
  rows: readonly GivenRow<I>[],
): Promise<void> {
  const given = rows.filter(({ checked }) => checked.password !== undefined);
  if (given.length === 0) return;
  const devices = new Map(
    (
      await kind.listDevices(
        tx,
        given.flatMap(({ deviceId }) => deviceId ?? []),
      )
    ).map(({ id, bmc }) => [id, bmc]),
  );
  for (const { checked, deviceId } of given) {
    const { mac, username, password = "", row } = checked;
    const place = placeOf(row, deviceId === undefined ? undefined : devices.get(deviceId));
    await putBmcCredentials(tx, secrets, { mac, place, username, password }, { withAddress: row.bmc_address !== null });
  }
}

type Bmc = Parameters<typeof placeOfBmc>[0];

/** As the explorer, and the device that it makes, speak to the BMC. */
function placeOf({ bmc_address: address, bmc_port: port }: Checked["row"], device: Bmc | undefined): CredentialPlace {
  if (address === null) return device === undefined ? NOWHERE : placeOfBmc(device);
  return placeOfBmc({ address, port: port ?? 443, scheme: device?.scheme ?? "https", trust: device?.trust ?? "pin" });
}
