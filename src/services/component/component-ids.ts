import { AppError } from "../../kernel/errors.ts";
import { parseMachineId, parsePowerShelfId, parseRackId, parseSwitchId } from "../../kernel/ids.ts";
import type { ComponentKind } from "../../store/component/devices.ts";
import type { ServiceDeps } from "../call/deps.ts";
import { checkIdList } from "../call/id-list.ts";

export type { ComponentKind } from "../../store/component/devices.ts";

/** What a call is about: devices of one kind, or racks. */
export interface ComponentTarget {
  readonly kind: ComponentKind | "rack";
  readonly ids: readonly string[];
}

export const NOUNS = { machine: "machine", switch: "switch", power_shelf: "power shelf", rack: "rack" } as const;
const FIELDS = {
  machine: "machine_ids",
  switch: "switch_ids",
  power_shelf: "power_shelf_ids",
  rack: "rack_ids",
} as const;
const PARSERS = {
  machine: parseMachineId,
  switch: parseSwitchId,
  power_shelf: parsePowerShelfId,
  rack: parseRackId,
} as const;

/** Well-formed, each once, and no more than one call may name. */
export const checkTarget = ({ maxFindByIds }: ServiceDeps, { kind, ids }: ComponentTarget): readonly string[] =>
  checkIdList<string>(ids, { field: FIELDS[kind], most: maxFindByIds, parse: PARSERS[kind] });

export const unknownComponent = (kind: ComponentTarget["kind"], id: string): AppError =>
  new AppError("not_found", `${NOUNS[kind]} ${id} does not exist`, { field: FIELDS[kind] });
