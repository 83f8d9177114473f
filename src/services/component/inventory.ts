import { findPlacedDevices } from "../../store/component/devices.ts";
import type { ServiceDeps } from "../call/deps.ts";
import { type ComponentKind, type ComponentTarget, checkTarget, unknownComponent } from "./component-ids.ts";
import { type ComponentOutcome, refused, succeeded } from "./results.ts";

/** Which of the devices there are. What is known of each, its own service tells. */
export async function readComponentInventory(
  deps: ServiceDeps,
  target: ComponentTarget & { readonly kind: ComponentKind },
): Promise<readonly ComponentOutcome[]> {
  const ids = checkTarget(deps, target);
  const devices = await findPlacedDevices(deps.db, target.kind, ids);
  return ids.map((id) => (devices.has(id) ? succeeded(id) : refused(id, unknownComponent(target.kind, id))));
}
