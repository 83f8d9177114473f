import { AppError } from "../../kernel/errors.ts";
import { parseMac } from "../../kernel/ids.ts";
import { parseEndpoint } from "../../lifecycles/machine/endpoint.ts";
import { listExpectedSwitches } from "../../store/expected-switch/expected-switches.ts";
import { recordChange } from "../../store/lifecycle/changes.ts";
import { announce } from "../../store/lifecycle/journal.ts";
import { lockThings } from "../../store/lifecycle/locks.ts";
import { storeOf } from "../../store/lifecycle/things.ts";
import * as work from "../../store/lifecycle/work.ts";
import type { Caller } from "../call/caller.ts";
import type { ServiceDeps } from "../call/deps.ts";
import { doneBy } from "../call/initiator.ts";
import { refuseHeld } from "../device/held.ts";

export interface SetOsAddress {
  readonly bmcMac: string;
  /** Host or host:port; empty: as the BMC of the switch reports. */
  readonly osAddress: string;
}

/** Of the rows that have one, the row with this BMC alone where it is given. */
export async function listOsAddresses(
  { db }: ServiceDeps,
  bmcMac: string,
): Promise<readonly { readonly bmcMacAddress: string; readonly osAddress: string }[]> {
  const rows = await listExpectedSwitches(db, bmcMac === "" ? {} : { bmcMac: parseMac(bmcMac, "bmc_mac_address") });
  return rows.flatMap(({ bmc, nvosAddress }) =>
    nvosAddress === null ? [] : [{ bmcMacAddress: bmc.mac, osAddress: nvosAddress }],
  );
}

const ROW = "expected_switch";
const DEVICE = "switch";
const ATTEMPTS = 5;

/**
 * Sets where the operating system of an expected switch is reached. Its password is sent there, so that this is checked, and refused while
 * somebody works on the switch, as the address of a BMC is. A certificate that is pinned stays, and only an administrator may accept
 * another: until then, another system at the new address gets no password. Where none is pinned yet, the first system that answers there
 * is believed, as with BMCs.
 */
export async function setOsAddress(deps: ServiceDeps, caller: Caller, input: SetOsAddress): Promise<void> {
  const mac = parseMac(input.bmcMac, "bmc_mac_address");
  const text = input.osAddress.trim();
  if (text !== "") parseEndpoint(text, "os_address");
  const nvosAddress = text === "" ? null : text;
  for (let attempt = 1; attempt <= ATTEMPTS; attempt += 1) {
    const isDone = await deps.db.transaction(async (tx) => {
      const find = async () => (await listExpectedSwitches(tx, { bmcMac: mac }))[0];
      const before = await find();
      if (!before)
        throw new AppError("not_found", `there is no expected switch with BMC ${mac}`, {
          field: "bmc_mac_address",
          next: "millwright expected-switch list",
        });
      const keys = [
        { kind: ROW, id: before.id },
        ...(before.existing ? [{ kind: DEVICE, id: before.existing.id }] : []),
      ];
      await lockThings(tx, keys);
      const row = await find();
      if (row?.id !== before.id || row.existing?.id !== before.existing?.id) return false;
      if (row.nvosAddress === nvosAddress) return true;
      const [, ...devices] = keys;
      await refuseHeld(tx, deps, devices, { action: "moved to another address", field: "os_address" });
      const change = { ...doneBy(caller), set: { nvos_address: nvosAddress } };
      const changed = { nvos_address: { from: row.nvosAddress, to: nvosAddress } };
      await recordChange(tx, storeOf(deps.stores, ROW), { id: row.id, type: "updated", data: { changed }, ...change });
      for (const { id } of devices) {
        const data = { nvos_address: nvosAddress };
        await recordChange(tx, storeOf(deps.stores, DEVICE), { id, type: "place_changed", data, ...change });
      }
      await work.wake(tx, keys);
      announce(tx);
      return true;
    });
    if (isDone) return;
  }
  throw new AppError("conflict", `expected switch ${mac} keeps changing; call again`);
}
