import { AppError } from "../../kernel/errors.ts";
import { parseRackId } from "../../kernel/ids.ts";
import { rackLifecycle } from "../../lifecycles/rack/lifecycle.ts";
import type { ThingKey } from "../../store/lifecycle/things.ts";
import type { Queryable } from "../../store/postgres/database.ts";
import { listRacks, type RackRecord } from "../../store/rack/racks.ts";

export const RACK_KIND = rackLifecycle.kind;
export const rackKey = (id: string): ThingKey => ({ kind: RACK_KIND, id });

/** @throws AppError not_found */
export async function findRack(db: Queryable, id: string, field = "rack_id"): Promise<RackRecord> {
  const [rack] = await listRacks(db, { ids: [parseRackId(id, field)] });
  if (!rack) throw new AppError("not_found", `rack ${id} does not exist`, { field, next: "millwright rack list" });
  return rack;
}

export function refuseDeleted({ id, deletedAt }: RackRecord): void {
  if (deletedAt !== null)
    throw new AppError("failed_precondition", `rack ${id} is marked for deletion; maintenance is not possible`, {
      field: "rack_id",
    });
}
