import { need } from "../../capabilities/provider.ts";
import { AppError } from "../../kernel/errors.ts";
import { systemClock } from "../../kernel/time/clock.ts";
import { type Duration, seconds } from "../../kernel/time/duration.ts";
import type { Database } from "../../store/postgres/database.ts";
import type { RunParts } from "../run-deps.ts";
import type { WiredTarget } from "../run-targets.ts";
import type { ThingParts } from "../things/thing.ts";
import { shareReads } from "./shared-reads.ts";

const LONGEST_MS = 10_000;

/**
 * Reads the firmware of devices for callers, by the same way as the runs on them: a call that changes nothing, and that no lease is needed
 * for. Callers share the reads of a device, so that they keep neither its BMC nor the database from the runs.
 */
export function wireReadFirmware(
  db: Database,
  things: readonly ThingParts[],
  targets: readonly WiredTarget[],
  keepFor: Duration = seconds(10),
): NonNullable<RunParts["readFirmware"]> {
  const stores = new Map(things.map(({ store }) => [store.lifecycle.kind, store]));
  const wired = new Map(targets.map((target) => [target.kind.kind, target]));
  const readNow = async (kind: string, id: string) => {
    const target = wired.get(kind);
    const [found] = (await stores.get(kind)?.load(db, [id]))?.things ?? [];
    if (!target || !found) throw new AppError("not_found", `${kind} ${id} does not exist`);
    const thing = target.asSeen?.(found) ?? found;
    const { firmware } = need(target.providerOf(thing), ["firmware"]);
    const bmc = await target.bmcOf?.(thing);
    if (!bmc) throw new AppError("failed_precondition", `${kind} ${id} has no BMC`);
    return firmware.readInstalled(bmc, {
      signal: AbortSignal.timeout(LONGEST_MS),
      mayTouchDevice: (wanted) => wanted,
      subject: `${kind} ${id}`,
    });
  };
  const read = shareReads({
    clock: systemClock,
    keepFor,
    read: (key) => readNow(key.slice(0, key.indexOf("/")), key.slice(key.indexOf("/") + 1)),
  });
  return ({ kind, id }, signal) => read(`${kind}/${id}`, signal);
}
