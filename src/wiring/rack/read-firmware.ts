import { need } from "../../capabilities/provider.ts";
import { AppError } from "../../kernel/errors.ts";
import type { Database } from "../../store/postgres/database.ts";
import type { RunParts } from "../run-deps.ts";
import type { WiredTarget } from "../run-targets.ts";
import type { ThingParts } from "../things/thing.ts";

const LONGEST_MS = 10_000;

/** Reads the firmware of devices for callers, by the same way as the runs on them: a call that changes nothing, and that no lease is needed for. */
export function wireReadFirmware(
  db: Database,
  things: readonly ThingParts[],
  targets: readonly WiredTarget[],
): NonNullable<RunParts["readFirmware"]> {
  const stores = new Map(things.map(({ store }) => [store.lifecycle.kind, store]));
  const wired = new Map(targets.map((target) => [target.kind.kind, target]));
  return async ({ kind, id }, signal) => {
    const target = wired.get(kind);
    const [found] = (await stores.get(kind)?.load(db, [id]))?.things ?? [];
    if (!target || !found) throw new AppError("not_found", `${kind} ${id} does not exist`);
    const thing = target.asSeen?.(found) ?? found;
    const { firmware } = need(target.providerOf(thing), ["firmware"]);
    const bmc = await target.bmcOf?.(thing);
    if (!bmc) throw new AppError("failed_precondition", `${kind} ${id} has no BMC`);
    return firmware.readInstalled(bmc, {
      signal: AbortSignal.any([signal, AbortSignal.timeout(LONGEST_MS)]),
      mayTouchDevice: (wanted) => wanted,
      subject: `${kind} ${id}`,
    });
  };
}
