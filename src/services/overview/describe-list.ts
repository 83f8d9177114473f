import { type FieldType, operatorsOf, type TypeName, typeNameOf, wordsOf } from "../../kernel/filter/fields.ts";
import { listingOf, type OverviewDeps } from "./listings.ts";

export interface ListFieldInfo {
  readonly name: string;
  readonly type: TypeName;
  readonly operators: readonly string[];
  /** Empty where any value will do. */
  readonly values: readonly string[];
  readonly sorts: boolean;
  readonly groups: boolean;
  readonly doc: string;
}

/** What the list of a kind can be filtered, sorted and grouped by. */
export function describeList(deps: OverviewDeps, kind: string): readonly ListFieldInfo[] {
  const { fields } = listingOf(deps, kind);
  return Object.entries(fields).map(([name, { type, sort, doc }]) => ({
    ...{ name, type: typeNameOf(type), values: wordsOf(type) ?? [], doc },
    operators: operatorsOf(type).map((operator) => operator.toUpperCase()),
    sorts: sort !== undefined,
    groups: isGrouping(type),
  }));
}

const isGrouping = (type: FieldType): boolean => typeNameOf(type) !== "time";
