import { isDeepStrictEqual } from "node:util";
import type { ExpectedDeviceRecord } from "../../store/expected-device/expected-devices.ts";
import type { Change } from "../../store/lifecycle/changes.ts";
import type { Transaction } from "../../store/postgres/database.ts";
import type { ServiceDeps } from "../call/deps.ts";
import { refuseHeld } from "../device/held.ts";
import type { ExpectedKind } from "./expected-kind.ts";
import type { Checked, ExpectedColumns, ExpectedInput } from "./input.ts";

export interface Updated<R extends ExpectedDeviceRecord, I extends ExpectedInput = ExpectedInput> {
  readonly checked: Checked<I>;
  readonly row: R;
}

/** A device that another works on stays where it is: in its rack, and at the address of its BMC. The caller holds the devices' locks. */
export async function refuseToMoveHeld<R extends ExpectedDeviceRecord, I extends ExpectedInput>(
  tx: Transaction,
  deps: ServiceDeps,
  kind: ExpectedKind<R, I>,
  updated: readonly Updated<R, I>[],
): Promise<void> {
  const places = new Map(
    updated.flatMap(({ checked, row }) => placeChange(kind, checked.row, row)).map(({ id, set }) => [id, set]),
  );
  if (places.size === 0) return;
  const devices = await kind.listDevices(tx, [...places.keys()]);
  const changing = (isOther: (device: PlacedDevice, place: Change["set"]) => boolean) =>
    devices
      .filter((device) => isOther(device, places.get(device.id) ?? {}))
      .map(({ id }) => ({ kind: kind.device, id }));
  const moved = changing(({ rackId }, { rack_id }) => rackId !== rack_id);
  await refuseHeld(tx, deps, moved, { action: "moved to another rack", field: "rack_id" });
  // Whoever works on the device would go on at another one, and read there how the first one does.
  const readdressed = changing(
    ({ bmc }, { bmc_address, bmc_port }) => bmc.address !== bmc_address || bmc.port !== bmc_port,
  );
  await refuseHeld(tx, deps, readdressed, { action: "moved to another address", field: "bmc_ip_address" });
  const ownMoved = updated.filter(({ checked, row }) => !isSameOwnPlace(kind, checked.row, row));
  const held = ownMoved.flatMap(({ row }) => (row.existing ? [{ kind: kind.device, id: row.existing.id }] : []));
  await refuseHeld(tx, deps, held, { action: "moved to another address", field: kind.fields.list });
}

type PlacedDevice = Awaited<ReturnType<ExpectedKind<never, never>["listDevices"]>>[number];

/** What an update of a row changes about where its device is; empty: nothing. */
export function placeChange<R extends ExpectedDeviceRecord, I extends ExpectedInput>(
  kind: OwnPlace<R, I>,
  wanted: ExpectedColumns,
  row: R,
): Pick<Change, "id" | "type" | "data" | "set">[] {
  const { existing, bmc, rackId } = row;
  const { bmc_address, bmc_port, rack_id } = wanted;
  if (!existing || bmc_address === null) return [];
  const own = kind.ownPlace?.(wanted) ?? {};
  if (isSameOwnPlace(kind, wanted, row) && bmc_address === bmc.address && bmc_port === bmc.port && rack_id === rackId)
    return [];
  const place = { bmc_address, bmc_port, rack_id, ...own };
  return [{ id: existing.id, type: "place_changed", data: place, set: place }];
}

type OwnPlace<R extends ExpectedDeviceRecord, I extends ExpectedInput> = Pick<ExpectedKind<R, I>, "ownPlace" | "ownOf">;

function isSameOwnPlace<R extends ExpectedDeviceRecord, I extends ExpectedInput>(
  { ownPlace, ownOf }: OwnPlace<R, I>,
  wanted: ExpectedColumns,
  row: R,
): boolean {
  const known = ownOf?.(row) ?? {};
  return Object.entries(ownPlace?.(wanted) ?? {}).every(([column, to]) => isDeepStrictEqual(known[column], to));
}
