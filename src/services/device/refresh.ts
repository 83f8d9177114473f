import { announce } from "../../store/lifecycle/journal.ts";
import { lockThings } from "../../store/lifecycle/locks.ts";
import * as work from "../../store/lifecycle/work.ts";
import type { ServiceDeps } from "../call/deps.ts";
import { type DeviceName, findDevice, nameDevice } from "./device.ts";

/** Makes a device due for a pass now. Repeating it is harmless. */
export async function refreshDevice(deps: ServiceDeps, name: DeviceName): Promise<void> {
  const device = nameDevice(deps, name);
  await deps.db.transaction(async (tx) => {
    await lockThings(tx, [device.key]);
    await findDevice(tx, device);
    await work.wake(tx, [device.key]);
    announce(tx);
  });
}
